// Installation.swift -- applies a plan, and undoes it.
//
// The journal is complete on disk before the first change, and is removed after the last change is undone. If the
// process is killed in between, `undo` finds each path either as it was before or as the plan has it.

import Glibc

/// Applies and undoes setup on one machine.
public struct Installation {
  /// How undo treats files that were changed after setup.
  ///
  /// A file of another program without our nameserver is no change of ours: it stays as it is, except with `overwrite`.
  public enum Changed: Sendable {
    /// Undo nothing.
    case refuse
    /// Restore the state before setup.
    case overwrite
    /// Restore the state before setup and keep the changed file beside it, since without httpdnsd it may be useless.
    case setAside
  }

  /// What undo did.
  public struct Undone: Sendable {
    /// The journal of what was undone.
    public let journal: Journal
    /// The paths of the files that another program has replaced; they stay as they are.
    public internal(set) var left: [String] = []
    /// The files that were changed, and where their changed states are kept.
    public internal(set) var setAside: [(path: String, aside: String)] = []
  }

  /// Where the changed state of a file is kept; with a number behind it if an earlier one is there.
  ///
  /// Hooks are hidden: openresolv sources each file of its folder, executable or not, that `*` matches. NetworkManager
  /// and run-parts skip hidden files too.
  static func aside(of path: String) -> String {
    let folder = Root.parent(of: path)
    let isHook = SetupPaths.hooks.contains(path)
    return "\(folder)/\(isHook ? "." : "")\(path.dropFirst(folder.count + 1)).httpdnsd-changed"
  }

  let root: Root
  var patience = SetupLock.Patience()
  /// Called after a hook has found a setup and before it takes the lock; a test interferes there as another process
  /// could.
  var willLock: () -> Void = {}

  /// Reads nothing.
  public init(root: Root) { self.root = root }

  /// Reads the journal of the applied setup; nil if none is applied.
  ///
  /// - Throws: if it is damaged.
  public func journal() throws(SetupError) -> Journal? {
    guard case .file(let octets, _) = try root.state(of: SetupPaths.journal) else { return nil }
    guard let journal = Journal(octets: octets) else {
      throw .refused(
        """
        \(SetupPaths.journal) is damaged, so setup does not know the state before; `httpdnsd setup undo --force` removes \
        what setup has made, and keeps the journal as \(Installation.aside(of: SetupPaths.journal))
        """)
    }
    return journal
  }

  /// What is applied.
  public enum Application: Sendable {
    case journal(Journal)
    /// Something is applied, and only root may read what.
    case unreadable
    /// The journal is missing, but what setup has made is there.
    case lost(Remains)
  }

  /// Reads what is applied, as far as this user may; nil if nothing is.
  ///
  /// - Throws: if the journal is damaged.
  public func application() throws(SetupError) -> Application? {
    do throws(SetupError) {
      if let journal = try journal() { return .journal(journal) }
      return try remains().map { .lost($0) }
    } catch .system(_, _, EACCES) {
      return .unreadable
    } catch { throw error }
  }

  /// Removes what setup has made, as far as it can be recognised without a journal: files that say so, and the first
  /// nameserver of an /etc/resolv.conf that says so.
  ///
  /// - Parameter isForced: whether also to do it if the journal is damaged, not only if it is missing.
  /// - Returns: false, having done nothing, if the journal is sound, or if nothing is applied.
  public func abandon(isForced: Bool = false) throws(SetupError) -> Bool {
    var damaged: [UInt8]?
    if case .file(let octets, _) = try root.state(of: SetupPaths.journal) {
      guard isForced, Journal(octets: octets) == nil else { return false }
      damaged = octets
    } else if try remains() == nil {
      return false
    }
    let locks = [try SetupLock(root, .names, patience), try SetupLock(root, .files, patience)]
    defer { withExtendedLifetime(locks) {} }
    let writer = FileWriter(root: root)
    for path in made { try writer.put(.absent, at: path) }
    let resolver = try root.state(of: SetupPaths.resolver)
    if case .file(_, let attributes) = resolver, let text = ResolverText.withoutOurs(resolver.text ?? "") {
      try writer.put(.file(Array(text.utf8), attributes), at: SetupPaths.resolver)
    } else if case .link = resolver, root.destination(of: SetupPaths.resolver) == SetupPaths.following {
      let text = root.text(of: SetupPaths.resolver) ?? ""
      try writer.put(.text(ResolverText.withoutOurs(text) ?? text), at: SetupPaths.resolver)
    }
    for folder in [SetupPaths.unitFolder, Root.parent(of: SetupPaths.resolvedDropIn)] { rmdir(root.real(folder)) }
    try writer.put(.absent, at: SetupPaths.readyMark)
    rmdir(root.real(Root.parent(of: SetupPaths.readyMark)))
    if let damaged {
      _ = try keep(.file(damaged, FileAttributes(mode: 0o600)), of: SetupPaths.journal, writer)
      try writer.put(.absent, at: SetupPaths.journal)
    }
    removeFolder()
    return true
  }

  /// Makes all changes of a plan. If one fails, undoes those before it.
  ///
  /// - Throws: also if a setup is already applied, which then stays as it is.
  public func apply(_ plan: Plan) throws(SetupError) {
    let locks = [try SetupLock(root, .names, patience), try SetupLock(root, .files, patience)]
    defer { withExtendedLifetime(locks) {} }
    if let applied = try journal() {
      throw .refused("`setup \(applied.method.rawValue)` is applied already; run `httpdnsd setup undo` first")
    }
    if let remains = try remains() { throw .refused("\(remains)") }
    do throws(SetupError) {
      try begin(plan, FileWriter(root: root))
    } catch {
      _ = try? takeBack(nil, FileWriter(root: root))
      throw error
    }
  }

  /// Undoes the applied setup, even if the process that applied it was killed. Does nothing if there is nothing to
  /// undo.
  ///
  /// - Parameter release: stops name resolution through the service (`Engagement`) before anything else is undone, and
  ///   again if a hook has started it meanwhile.
  /// - Returns: nil if nothing was applied.
  @discardableResult
  public func undo(
    _ changed: Changed = .refuse, release: (Journal) throws(SetupError) -> Void = { _ throws(SetupError) in }
  ) throws(SetupError) -> Undone? {
    guard case .folder = try root.state(of: SetupPaths.state) else { return nil }
    let names = try SetupLock(root, .names, patience)
    defer { withExtendedLifetime(names) {} }
    if let journal = try journal() {
      try check(changed)
      try release(journal)
    }
    let files = try SetupLock(root, .files, patience)
    defer { withExtendedLifetime(files) {} }
    let undone = try takeBack(changed, FileWriter(root: root))
    if let undone, Engagement(undone.journal, root: root).isEngaged == true { try release(undone.journal) }
    return undone
  }

  /// Runs a hook on the applied setup, and blocks `apply` and `undo` meanwhile.
  ///
  /// - Returns: the result of `body`; nil if nothing is applied.
  public func whileApplied<Value>(_ body: (Journal) throws(SetupError) -> Value) throws(SetupError) -> Value? {
    try whileApplied(.names, body)
  }

  /// Rewrites the files that follow the network; `apply` and `undo` wait meanwhile. Also works if the command of a
  /// running hook calls this.
  ///
  /// - Returns: what was written; nil if nothing is applied.
  public func renew() throws(SetupError) -> Engagement.Renewal? {
    try whileApplied(.files) { journal throws(SetupError) in try Engagement(journal, root: root).renew() }
  }

  private func whileApplied<Value>(
    _ matter: SetupLock.Matter, _ body: (Journal) throws(SetupError) -> Value
  ) throws(SetupError) -> Value? {
    // Checked before locking, because locking creates the folder.
    guard try journal() != nil else { return nil }
    willLock()
    let lock = try SetupLock(root, matter, patience)
    defer { withExtendedLifetime(lock) {} }
    guard let journal = try journal() else {
      SetupLock.removeFolder(root, having: [matter])
      return nil
    }
    return try body(journal)
  }

  /// Throws if `undo` would be refused.
  func check(_ changed: Changed) throws(SetupError) {
    guard case .refuse = changed, let journal = try journal() else { return }
    let conflicts = try conflicts(of: journal)
    guard conflicts.isEmpty else { throw .changed(conflicts) }
  }

  /// Makes the changes of a plan; on failure, leaves those already made to the caller.
  func begin(_ plan: Plan, _ writer: FileWriter) throws(SetupError) {
    try writer.put(.file(Journal(plan).octets, FileAttributes(mode: 0o600)), at: SetupPaths.journal)
    for change in plan.changes {
      guard try root.state(of: change.path).isSame(as: change.before) else {
        throw .refused("\(change.path) was changed by another program meanwhile; nothing was changed")
      }
      try writer.put(change.after, at: change.path, isInPlace: change.kind == .overwrite)
    }
  }

  /// - Parameter changed: nil leaves all files that were changed meanwhile, as a failed `apply` does.
  @discardableResult
  func takeBack(_ changed: Changed?, _ writer: FileWriter) throws(SetupError) -> Undone? {
    writer.removeTemporary(of: SetupPaths.journal)
    guard let journal = try journal() else {
      removeFolder()
      return nil
    }
    if let changed { try check(changed) }
    var undone = Undone(journal: journal)
    for change in journal.changes.reversed() {
      writer.removeTemporary(of: change.path)
      switch try fate(of: change, journal) {
      case .changed where changed == nil: continue
      case .changed where changed == .setAside:
        if let aside = try setAside(change.path, writer) { undone.setAside.append((change.path, aside)) }
      case .foreign where changed != .overwrite:
        undone.left.append(change.path)
        continue
      case .known, .changed, .foreign: break
      }
      try restore(change, writer)
    }
    try writer.put(.absent, at: SetupPaths.journal)
    removeFolder()
    return undone
  }

  /// Keeps what is at a path beside it; returns where, or nil if nothing is there.
  private func setAside(_ path: String, _ writer: FileWriter) throws(SetupError) -> String? {
    switch try root.state(of: path) {
    case .file(let octets, var attributes):
      // No program is to run it.
      attributes.mode &= ~0o111
      return try keep(.file(octets, attributes), of: path, writer)
    case .link(let target): return try keep(.link(to: target), of: path, writer)
    case .absent, .folder, .other: return nil
    }
  }

  /// Puts a state at the first free name beside a path; one that is there already, as after a kill, is not kept twice.
  private func keep(_ state: FileState, of path: String, _ writer: FileWriter) throws(SetupError) -> String {
    var (aside, number) = (Installation.aside(of: path), 1)
    while true {
      let present = try root.state(of: aside)
      if present == .absent { try writer.put(state, at: aside) }
      if present == .absent || present.isSame(as: state) { return aside }
      number += 1
      aside = "\(Installation.aside(of: path)).\(number)"
    }
  }

  private func restore(_ change: Change, _ writer: FileWriter) throws(SetupError) {
    let current = try root.state(of: change.path)
    // A partly overwritten file may differ in its modification time only, so it must be equal in everything.
    if current == change.before || change.kind != .overwrite && current.isSame(as: change.before) { return }
    if case .folder = change.after, case .folder = current {
      do throws(SetupError) {
        try writer.put(.absent, at: change.path)
      } catch .system(_, _, let number) where number == ENOTEMPTY || number == EEXIST || number == EBUSY {
        // The folder holds files of others: keep it.
      }
      return
    }
    try writer.put(change.before, at: change.path, isInPlace: change.kind == .overwrite && current != .absent)
  }

  /// Returns the paths with a state that is neither the one before setup nor the one after it, nor another program's.
  func conflicts(of journal: Journal) throws(SetupError) -> [SetupError.Conflict] {
    var conflicts: [SetupError.Conflict] = []
    for change in journal.changes {
      guard case .changed = try fate(of: change, journal) else { continue }
      let difference = Change.difference(change.path, from: change.after, to: try root.state(of: change.path))
      conflicts.append(SetupError.Conflict(path: change.path, difference: difference))
    }
    return conflicts
  }

  /// What became of a path since setup.
  private enum Fate {
    /// It is as setup or a hook has left it, or as it was before.
    case known
    /// It was edited or replaced.
    case changed
    /// /etc/resolv.conf does not lead to httpdnsd any more, so that removing httpdnsd does not affect it: another program
    /// manages it now. What it has now is newer than what was there before setup.
    case foreign
  }

  private func fate(of change: Change, _ journal: Journal) throws(SetupError) -> Fate {
    guard try isChanged(change) else { return .known }
    return isForeign(change, journal) ? .foreign : .changed
  }

  private func isChanged(_ change: Change) throws(SetupError) -> Bool {
    let current = try root.state(of: change.path)
    if current.isSame(as: change.before) || current.isSame(as: change.after) { return false }
    if change.isInProgress(current) || change.isRewritten(current) { return false }
    // A removed folder or file of ours is no conflict: nothing is lost.
    if case .folder = change.after, current == .absent { return false }
    return true
  }

  private func isForeign(_ change: Change, _ journal: Journal) -> Bool {
    guard change.path == SetupPaths.resolver, let text = root.text(of: change.path) else { return false }
    let servers = ResolverText.servers(of: text)
    guard !servers.isEmpty, !servers.contains(journal.nameserver.host),
      !root.destination(of: change.path).hasPrefix(SetupPaths.state)
    else { return false }
    // Without a known owner, another address of this machine may be httpdnsd's as well.
    return (try? Manager.find(in: root)) != .known(.file) || servers.contains { !OwnAddress.contains($0) }
  }

  /// Removes what is left when nothing is applied: the folder and both locks, which the caller holds.
  private func removeFolder() { SetupLock.removeFolder(root, having: SetupLock.Matter.allCases) }
}

extension Change {
  /// Whether a process that was killed while it overwrote the file left this state: one content in full, followed by
  /// the rest of the other one.
  func isInProgress(_ current: FileState) -> Bool {
    guard kind == .overwrite, case .file(let old, _) = before, case .file(let new, _) = after,
      case .file(let octets, _) = current
    else { return false }
    return octets == new + old.dropFirst(new.count) || octets == old + new.dropFirst(old.count)
  }
}
