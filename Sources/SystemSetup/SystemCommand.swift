// SystemCommand.swift -- runs a program of the system to its end.

import Glibc

/// A command that tells another program of a change.
public struct SystemCommand: Hashable, Sendable, CustomStringConvertible {
  let arguments: [String]
  /// What it reads from its standard input.
  let input: String

  init(_ arguments: String..., input: String = "") { (self.arguments, self.input) = (arguments, input) }

  /// Whether the daemon's service runs on this machine.
  public static var isServiceActive: Bool { isActive(Place.unit) }

  /// Whether systemd holds the daemon's port on this machine, so that listen.addresses does not count.
  public static var isSocketActive: Bool { isActive(Place.socket) }

  /// Writes what that socket listens on, in lines such as `127.0.0.1:53 (Datagram)`.
  public static var socketAddresses: SystemCommand {
    SystemCommand("systemctl", "show", "--property=Listen", "--value", Place.socket)
  }

  private static func isActive(_ unit: String) -> Bool {
    // Without systemd its program would complain, and not know.
    Root().exists("/run/systemd/system") && SystemCommand("systemctl", "is-active", "--quiet", unit).run().status == 0
  }

  /// As a shell would take it.
  public var description: String {
    let command = arguments.joined(separator: " ")
    return input.isEmpty ? command : "printf '\(input.split(separator: "\n").joined(separator: "\\n"))\\n' | \(command)"
  }

  /// Where the system's programs are; a hook's PATH may be anything.
  private static let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]

  /// The file of a program; nil where the machine has none of that name.
  static func find(_ name: String, in root: Root = Root()) -> String? {
    folders.map { "\($0)/\(name)" }.first { root.exists($0) }
  }

  /// Runs it and waits for its end; its errors go where ours go.
  ///
  /// - Returns: its exit code (nil where it cannot be started or was killed), and what it wrote.
  @discardableResult
  public func run() -> (status: Int32?, output: String) {
    guard let path = SystemCommand.find(arguments[0]) else { return (nil, "") }
    var (toChild, fromChild): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
    guard pipe2(&toChild, O_CLOEXEC) == 0 else { return (nil, "") }
    guard pipe2(&fromChild, O_CLOEXEC) == 0 else {
      toChild.forEach { close($0) }
      return (nil, "")
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
    posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
    var words = arguments.map { strdup($0) } + [nil]
    defer { words.forEach { free($0) } }
    var pid: pid_t = 0
    let failure = posix_spawn(&pid, path, &actions, nil, &words, environ)
    close(toChild[0])
    close(fromChild[1])
    defer { close(fromChild[0]) }
    // A few lines: they fit into the pipe, whether anybody reads them or not.
    signal(SIGPIPE, SIG_IGN)
    _ = Array(input.utf8).withUnsafeBytes { write(toChild[1], $0.baseAddress, $0.count) }
    close(toChild[1])
    guard failure == 0 else { return (nil, "") }
    let output = SystemCommand.text(from: fromChild[0])
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return (status & 0x7F == 0 ? status >> 8 & 0xFF : nil, output)
  }

  private static func text(from descriptor: Int32) -> String {
    var octets: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return String(decoding: octets, as: UTF8.self) }
      octets += chunk[..<count]
    }
  }
}
