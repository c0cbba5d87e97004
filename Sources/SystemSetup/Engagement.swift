// Engagement.swift -- hands the machine's names over to the running service, and gives them back when it stops.
//
// systemd-resolved and resolvconf would go on asking a server that is gone. What is written here is below /run, so that a
// machine that starts without the service finds its names as before.

import Glibc

/// The machine's names and the service: applied is what the journal says, engaged is what the service's state makes of it.
public struct Engagement {
  private let journal: Journal
  private let root: Root
  /// Runs a command of the machine's.
  var run: (SystemCommand) -> (status: Int32?, output: String)
  /// CLOCK_BOOTTIME in seconds.
  var now: () -> Int = {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return time.tv_sec
  }

  /// What the journal says, on this machine.
  ///
  /// - Parameter run: runs a command, and gives its exit code (nil where it did not start) and what it wrote.
  public init(
    _ journal: Journal, root: Root, run: @escaping (SystemCommand) -> (status: Int32?, output: String) = { $0.run() }
  ) {
    (self.journal, self.root, self.run) = (journal, root, run)
  }

  /// What is applied.
  public var method: SetupMethod { journal.method }

  /// A service that ran that long is expected to run again at once after a failure.
  static let steady = 10

  /// The machine asks httpdnsd from now on.
  ///
  /// - Parameter isService: whether the service calls, which has just become ready.
  /// - Returns: what went wrong, in words for a person.
  public func resume(isService: Bool) throws(SetupError) -> [String] {
    if isService { try put(.text("\(now())\n"), at: Place.readyMark) }
    switch journal.method {
    case .networkManager, .file: return []
    case .resolved:
      let wanted = FileState.text(Engagement.resolvedDropIn(journal.nameserver))
      guard try !root.state(of: Place.resolvedDropIn).isSame(as: wanted) else { return [] }
      try put(wanted, at: Place.resolvedDropIn)
      return reloadResolved()
    case .resolvconf:
      return tell(SystemCommand("resolvconf", "-a", Place.record, input: Engagement.record(journal.nameserver)))
    }
  }

  /// The machine asks as it did before setup, until `resume`.
  public func pause() throws(SetupError) -> [String] {
    switch journal.method {
    case .networkManager, .file: return []
    case .resolved:
      guard try root.state(of: Place.resolvedDropIn) != .absent else { return [] }
      try FileWriter(root: root).put(.absent, at: Place.resolvedDropIn)
      rmdir(root.real(Root.parent(of: Place.resolvedDropIn)))
      return reloadResolved()
    case .resolvconf: return tell(SystemCommand("resolvconf", "-d", Place.record))
    }
  }

  /// Whether the machine asks httpdnsd now; nil where that does not depend on the service.
  public var isEngaged: Bool? {
    switch journal.method {
    case .networkManager, .file: nil
    case .resolved: root.exists(Place.resolvedDropIn)
    case .resolvconf: ResolvconfKind.recordFolders.contains { root.exists("\($0)/\(Place.record)") }
    }
  }

  /// `pause` for the service that has ended. Where it will be back in a moment nothing is done: the names wait for it, and
  /// systemd-resolved is not restarted for nothing. A service that fails again and again is paused.
  ///
  /// - Parameter result: systemd's SERVICE_RESULT.
  public func pauseForService(result: String?) throws(SetupError) -> [String] {
    let since = root.text(of: Place.readyMark).flatMap { Int($0.prefix { $0 != "\n" }) }
    try FileWriter(root: root).put(.absent, at: Place.readyMark)
    let isSteady = since.map { now() - $0 >= Engagement.steady } ?? false
    let hasFailed = result != nil && result != "success"
    if hasFailed && isSteady || isRestarting() { return [] }
    return try pause()
  }

  /// What became of the file that follows the network.
  public enum Renewal: Hashable, Sendable {
    /// The network has other servers.
    case written(path: String)
    /// It is as it was.
    case same(path: String)
    /// The method has no such file.
    case unneeded(SetupMethod)
  }

  /// Rewrites the file that follows the network; `Installation.renew` has the lock for it.
  func renew() throws(SetupError) -> Renewal {
    switch journal.method {
    case .resolved, .file: return .unneeded(journal.method)
    case .networkManager:
      let servers = root.text(of: Following.networkManagerFile) ?? ""
      return try renew(Place.following, Following.resolver(journal.nameserver, servers))
    case .resolvconf: return try renew(Place.network, Following.network(root))
    }
  }

  private func renew(_ path: String, _ text: String) throws(SetupError) -> Renewal {
    guard root.text(of: path) != text else { return .same(path: path) }
    try FileWriter(root: root).put(.text(text), at: path)
    return .written(path: path)
  }

  /// Removes what lives below /run, for undo.
  public func forget() throws(SetupError) {
    try FileWriter(root: root).put(.absent, at: Place.readyMark)
    rmdir(root.real(Root.parent(of: Place.readyMark)))
  }

  /// Whether `systemctl restart` is in progress.
  private func isRestarting() -> Bool {
    run(SystemCommand("systemctl", "list-jobs", "--no-legend")).output.split(separator: "\n").contains { line in
      let fields = line.split(separator: " ")
      return fields.count > 2 && fields[1] == Place.unit && fields[2] == "restart"
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
      // A machine that shuts down restarts nothing.
      if run(SystemCommand("systemctl", "is-system-running")).output.hasPrefix("stopping") { return [] }
      // Or systemd might find that it was started too often, and leave the machine without it.
      _ = run(SystemCommand("systemctl", "reset-failed", "systemd-resolved.service"))
    }
    return tell(SystemCommand("systemctl", "try-reload-or-restart", "systemd-resolved.service"))
  }

  private func tell(_ command: SystemCommand) -> [String] {
    let status = run(command).status
    return status == 0 ? [] : ["`\(command)` failed\(status.map { " with exit code \($0)" } ?? "")"]
  }

  /// The drop-in for resolved.conf(5): all names (`~.`) go to this server before the links' own ones.
  static func resolvedDropIn(_ nameserver: Nameserver) -> String {
    """
    # Made by httpdnsd.service while it runs; `httpdnsd setup undo` ends that.
    [Resolve]
    DNS=\(nameserver.resolvedText)
    Domains=~.

    """
  }

  /// The record for resolvconf(8).
  static func record(_ nameserver: Nameserver) -> String { "nameserver \(nameserver.host)\n" }
}
