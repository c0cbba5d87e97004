// Installation.swift -- makes the changes of a plan, and takes them back.
//
// The journal is there, as a whole and on the disk, before the first change, and goes after the last one was taken back.
// Whatever ends the program meanwhile, `undo` finds each path as it was before or as the plan has it.

import Glibc

/// What setup has done to a machine.
public struct Installation {
  /// What happens to files that somebody has changed since.
  public enum Changed: Sendable {
    /// Nothing is undone at all.
    case refuse
    /// What was there before setup comes back.
    case overwrite
    /// They stay as they are; everything else is undone.
    case keep
  }

  let root: Root
  var patience = SetupLock.Patience()
  /// Called when a hook has found something applied and does not have the lock yet: there a test does what another program
  /// may do.
  var willLock: () -> Void = {}

  /// The machine with this root.
  public init(root: Root) { self.root = root }

  /// The journal of what is applied; nil where nothing is.
  ///
  /// - Throws: where it is damaged.
  public func journal() throws(SetupError) -> Journal? {
    guard case .file(let octets, _) = try root.state(of: Place.journal) else { return nil }
    guard let journal = Journal(octets: octets) else {
      throw .refused("\(Place.journal) is damaged, so that setup cannot tell what was there before")
    }
    return journal
  }

  /// Makes all changes of a plan. Where one of them fails, those before it are taken back.
  ///
  /// - Throws: also where something is applied already, which stays as it is.
  public func apply(_ plan: Plan) throws(SetupError) {
    let locks = [try SetupLock(root, .names, patience), try SetupLock(root, .files, patience)]
    defer { withExtendedLifetime(locks) {} }
    if let applied = try journal() {
      throw .refused("`setup \(applied.method.rawValue)` is applied already; `httpdnsd setup undo` takes it back first")
    }
    do throws(SetupError) {
      try begin(plan, FileWriter(root: root))
    } catch {
      // What somebody else is just changing is theirs.
      _ = try? takeBack(.keep, FileWriter(root: root))
      throw error
    }
  }

  /// Takes back what was applied, also where the program that did it was killed. Without anything to take back it does
  /// nothing.
  ///
  /// - Parameter release: gives the machine's names back (`Engagement`), before anything else is undone; and again where
  ///   a hook has taken them meanwhile.
  /// - Returns: what was taken back; nil where there was nothing.
  @discardableResult
  public func undo(
    _ changed: Changed = .refuse, release: (Journal) throws(SetupError) -> Void = { _ throws(SetupError) in }
  ) throws(SetupError) -> Journal? {
    guard case .folder = try root.state(of: Place.state) else { return nil }
    let names = try SetupLock(root, .names, patience)
    defer { withExtendedLifetime(names) {} }
    if let journal = try journal() {
      try check(changed)
      try release(journal)
    }
    let files = try SetupLock(root, .files, patience)
    defer { withExtendedLifetime(files) {} }
    let journal = try takeBack(changed, FileWriter(root: root))
    if let journal, Engagement(journal, root: root).isEngaged == true { try release(journal) }
    return journal
  }

  /// Does what a hook does to an applied setup, and keeps `apply` and `undo` out meanwhile.
  ///
  /// - Returns: what `body` returns; nil where nothing is applied.
  public func whileApplied<Value>(
    _ body: (Journal) throws(SetupError) -> Value
  ) throws(SetupError) -> Value? {
    try whileApplied(.names, body)
  }

  /// Rewrites the files that follow the network, and keeps `apply` and `undo` from them meanwhile; also while a hook is
  /// under way, whose command has called this.
  ///
  /// - Returns: what became of it; nil where nothing is applied.
  public func renew() throws(SetupError) -> Engagement.Renewal? {
    try whileApplied(.files) { journal throws(SetupError) in try Engagement(journal, root: root).renew() }
  }

  private func whileApplied<Value>(
    _ matter: SetupLock.Matter, _ body: (Journal) throws(SetupError) -> Value
  ) throws(SetupError) -> Value? {
    // Without the lock, which would make its folder.
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

  /// Looks whether `undo` would be refused.
  func check(_ changed: Changed) throws(SetupError) {
    guard case .refuse = changed, let journal = try journal() else { return }
    let conflicts = try conflicts(of: journal)
    guard conflicts.isEmpty else { throw .changed(conflicts) }
  }

  /// The changes of a plan without the way back.
  func begin(_ plan: Plan, _ writer: FileWriter) throws(SetupError) {
    try writer.put(.file(Journal(plan).octets, FileAttributes(mode: 0o600)), at: Place.journal)
    for change in plan.changes {
      guard try root.state(of: change.path).isSame(as: change.before) else {
        throw .refused("\(change.path) has just been changed by somebody else; nothing was changed")
      }
      try writer.put(change.after, at: change.path, isInPlace: change.kind == .overwrite)
    }
  }

  @discardableResult
  func takeBack(_ changed: Changed, _ writer: FileWriter) throws(SetupError) -> Journal? {
    writer.removeTemporary(of: Place.journal)
    guard let journal = try journal() else {
      removeFolder()
      return nil
    }
    let conflicts = try conflicts(of: journal)
    if case .refuse = changed, !conflicts.isEmpty { throw .changed(conflicts) }
    for change in journal.changes.reversed() {
      writer.removeTemporary(of: change.path)
      if case .keep = changed, conflicts.contains(where: { $0.path == change.path }) { continue }
      try restore(change, writer)
    }
    try writer.put(.absent, at: Place.journal)
    removeFolder()
    return journal
  }

  private func restore(_ change: Change, _ writer: FileWriter) throws(SetupError) {
    let current = try root.state(of: change.path)
    // What was overwritten half-way may lack nothing but its time.
    if current == change.before || change.kind != .overwrite && current.isSame(as: change.before) { return }
    if case .folder = change.after, case .folder = current {
      do throws(SetupError) {
        try writer.put(.absent, at: change.path)
      } catch .system(_, _, let number) where number == ENOTEMPTY || number == EEXIST || number == EBUSY {
        // Somebody has put something there: it is theirs now.
      }
      return
    }
    try writer.put(change.before, at: change.path, isInPlace: change.kind == .overwrite && current != .absent)
  }

  /// The paths that somebody has changed since.
  public func changedPaths(_ journal: Journal) throws(SetupError) -> [String] { try conflicts(of: journal).map(\.path) }

  /// Where there is neither what was there before nor what setup has put there.
  func conflicts(of journal: Journal) throws(SetupError) -> [SetupError.Conflict] {
    var conflicts: [SetupError.Conflict] = []
    for change in journal.changes where change.kind != .ours {
      let current = try root.state(of: change.path)
      if current.isSame(as: change.before) || current.isSame(as: change.after) || change.isUnderWay(current) {
        continue
      }
      // A folder of ours that is gone took nothing of anybody's with it.
      if case .folder = change.after, current == .absent { continue }
      let difference = Change.difference(change.path, from: change.after, to: current)
      conflicts.append(SetupError.Conflict(path: change.path, difference: difference))
    }
    return conflicts
  }

  /// What is left when nothing is applied: the folder and both locks, which the caller has.
  private func removeFolder() { SetupLock.removeFolder(root, having: SetupLock.Matter.allCases) }
}

extension Change {
  /// Whether a file was left like this by a program that was killed while it overwrote it: the one content is there as a
  /// whole, and behind it what is left of the other one.
  func isUnderWay(_ current: FileState) -> Bool {
    guard kind == .overwrite, case .file(let old, _) = before, case .file(let new, _) = after,
      case .file(let octets, _) = current
    else { return false }
    return octets == new + old.dropFirst(new.count) || octets == old + new.dropFirst(old.count)
  }
}
