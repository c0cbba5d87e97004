// Engagement.swift -- makes the machine resolve names through the running service, and reverts that when it stops.
//
// Otherwise systemd-resolved and resolvconf would keep asking a server that has stopped. All files are below /run, so
// that a machine that boots without the service resolves names as before.

import Glibc

/// Whether name resolution goes to the service now. *Applied* is what the journal records; *engaged* depends on whether
/// the service runs.
public struct Engagement {
  private let journal: Journal
  private let root: Root
  /// Runs a system command; tests replace it.
  var run: (SystemCommand) -> (status: Int32?, output: String)
  /// Returns CLOCK_BOOTTIME in seconds; tests replace it.
  var now: () -> Int = {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return time.tv_sec
  }

  /// - Parameter run: runs a command and returns its exit code (nil if it did not start) and its output.
  public init(
    _ journal: Journal, root: Root, run: @escaping (SystemCommand) -> (status: Int32?, output: String) = { $0.run() }
  ) {
    (self.journal, self.root, self.run) = (journal, root, run)
  }

  /// The method that was applied.
  public var method: SetupMethod { journal.method }

  /// A service that ran for at least this time, in seconds, is expected to restart successfully after a failure.
  static let steady = 10

  /// Makes the machine ask httpdnsd.
  ///
  /// - Parameter isService: whether the service calls this, having just become ready.
  /// - Returns: human-readable problems; empty on success.
  public func resume(isService: Bool) throws(SetupError) -> [String] {
    if isService { try put(.text("\(now())\n"), at: SetupPaths.readyMark) }
    switch journal.method {
    case .networkManager, .file: return []
    case .resolved:
      let wanted = FileState.text(Engagement.resolvedDropIn(journal.nameserver))
      guard try !root.state(of: SetupPaths.resolvedDropIn).isSame(as: wanted) else { return [] }
      try put(wanted, at: SetupPaths.resolvedDropIn)
      return reloadResolved()
    case .resolvconf:
      return run(SystemCommand("resolvconf", "-a", SetupPaths.record, input: Engagement.record(journal.nameserver)))
    }
  }

  /// Makes the machine ask as before setup, until `resume`. Returns human-readable problems.
  public func pause() throws(SetupError) -> [String] {
    switch journal.method {
    case .networkManager, .file: return []
    case .resolved:
      guard try root.state(of: SetupPaths.resolvedDropIn) != .absent else { return [] }
      try FileWriter(root: root).put(.absent, at: SetupPaths.resolvedDropIn)
      rmdir(root.real(Root.parent(of: SetupPaths.resolvedDropIn)))
      return reloadResolved()
    case .resolvconf: return run(SystemCommand("resolvconf", "-d", SetupPaths.record))
    }
  }

  /// Whether the machine asks httpdnsd now; nil if that does not depend on the service.
  public var isEngaged: Bool? {
    switch journal.method {
    case .networkManager, .file: nil
    case .resolved: root.exists(SetupPaths.resolvedDropIn)
    case .resolvconf: ResolvconfKind.recordFolders.contains { root.exists("\($0)/\(SetupPaths.record)") }
    }
  }

  /// Pauses after the service has stopped. If it is about to restart, this does nothing: clients wait for it, and
  /// systemd-resolved is not restarted without need. A service that fails repeatedly is paused.
  ///
  /// - Parameter result: systemd's SERVICE_RESULT.
  public func pauseForService(result: String?) throws(SetupError) -> [String] {
    let since = root.text(of: SetupPaths.readyMark).flatMap { Int($0.prefix { $0 != "\n" }) }
    try FileWriter(root: root).put(.absent, at: SetupPaths.readyMark)
    let isSteady = since.map { now() - $0 >= Engagement.steady } ?? false
    let hasFailed = result != nil && result != "success"
    if hasFailed && isSteady || isRestarting() { return [] }
    return try pause()
  }

  /// The result of rewriting the file that follows the network.
  public enum Renewal: Hashable, Sendable {
    /// The network's servers have changed.
    case written(path: String)
    /// The file is up to date.
    case same(path: String)
    /// Another program or the administrator has replaced the file, which therefore stays as it is.
    case replaced(path: String)
    /// The method has no such file.
    case unneeded(SetupMethod)
  }

  /// Rewrites the file that follows the network; the caller, `Installation.renew`, holds its lock.
  func renew() throws(SetupError) -> Renewal {
    guard let change = journal.changes.first(where: { $0.kind == .ours }) else { return .unneeded(journal.method) }
    let current = try root.state(of: change.path)
    guard current == .absent || change.isRewritten(current) else { return .replaced(path: change.path) }
    let servers = root.text(of: FollowingFiles.networkManagerFile) ?? ""
    let isResolver = journal.method == .networkManager
    let text = change.withFirstLine(
      isResolver ? FollowingFiles.resolver(journal.nameserver, servers) : FollowingFiles.network(root))
    guard current.text != text else { return .same(path: change.path) }
    try FileWriter(root: root).put(.text(text), at: change.path)
    return .written(path: change.path)
  }

  /// Removes the files below /run, for undo.
  public func forget() throws(SetupError) {
    try FileWriter(root: root).put(.absent, at: SetupPaths.readyMark)
    rmdir(root.real(Root.parent(of: SetupPaths.readyMark)))
  }

  /// Whether `systemctl restart` is in progress.
  private func isRestarting() -> Bool {
    run(SystemCommand("systemctl", "list-jobs", "--no-legend")).output.split(separator: "\n").contains { line in
      let fields = line.split(separator: " ")
      return fields.count > 2 && fields[1] == SetupPaths.unit && fields[2] == "restart"
    }
  }

  private func put(_ state: FileState, at path: String) throws(SetupError) {
    for folder in [Root.parent(of: Root.parent(of: path)), Root.parent(of: path)] where !root.exists(folder) {
      try FileWriter(root: root).put(.folder(mode: 0o755), at: folder)
    }
    try FileWriter(root: root).put(state, at: path)
  }

  private func reloadResolved() -> [String] {
    if root.isMachine {
      // While the machine shuts down, nothing is restarted.
      if run(SystemCommand("systemctl", "is-system-running")).output.hasPrefix("stopping") { return [] }
      // Without this, systemd's start limit could leave the machine without systemd-resolved.
      _ = run(SystemCommand("systemctl", "reset-failed", "systemd-resolved.service"))
    }
    return run(SystemCommand("systemctl", "try-reload-or-restart", "systemd-resolved.service"))
  }

  private func run(_ command: SystemCommand) -> [String] {
    let status = run(command).status
    return status == 0 ? [] : ["`\(command)` failed\(status.map { " with exit code \($0)" } ?? "")"]
  }

  /// A shell command that pauses without httpdnsd. It does nothing if that was done before: systemd runs it after each start
  /// that fails, once a second, and each restart of systemd-resolved is a moment without names.
  static func lastResort(_ method: SetupMethod) -> String {
    // The service's umask is strict.
    guard method == .resolved else { return "{ umask 022; resolvconf -d \(SetupPaths.record); }" }
    return """
      if [ -e \(SetupPaths.resolvedDropIn) ]; then rm -f \(SetupPaths.resolvedDropIn); \
      systemctl reset-failed systemd-resolved.service; systemctl try-reload-or-restart systemd-resolved.service; fi
      """
  }

  /// The drop-in for resolved.conf(5): this server takes all names (`~.`) before the links' own servers.
  static func resolvedDropIn(_ nameserver: Nameserver) -> String {
    """
    # Made by httpdnsd.service while it runs, until `httpdnsd setup undo`.
    [Resolve]
    DNS=\(nameserver.resolvedText)
    Domains=~.

    """
  }

  /// The record for resolvconf(8).
  static func record(_ nameserver: Nameserver) -> String { "nameserver \(nameserver.host)\n" }
}
