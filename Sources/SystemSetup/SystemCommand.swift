// SystemCommand.swift -- runs a system program and waits for it.

import Files
import Glibc

/// A system command, such as one that makes another program reload its configuration.
public struct SystemCommand: Hashable, Sendable, CustomStringConvertible {
  let arguments: [String]
  /// The text for its standard input.
  let input: String

  init(_ arguments: String..., input: String = "") { (self.arguments, self.input) = (arguments, input) }

  /// Whether the daemon's service is active on this machine. Blocks, like all that run a command.
  public static var isServiceActive: Bool { isActive(SetupPaths.unit) }

  /// Whether systemd listens for the daemon on this machine, which makes listen.addresses irrelevant.
  public static var isSocketActive: Bool { isActive(SetupPaths.socket) }

  /// Prints the addresses of that socket, in lines such as `127.0.0.1:53 (Datagram)`.
  public static var socketAddresses: SystemCommand {
    SystemCommand("systemctl", "show", "--property=Listen", "--value", SetupPaths.socket)
  }

  private static func isActive(_ unit: String) -> Bool {
    // Without a running systemd, systemctl would print an error.
    Root().exists("/run/systemd/system") && SystemCommand("systemctl", "is-active", "--quiet", unit).run().status == 0
  }

  /// The command in shell syntax, unquoted.
  public var description: String {
    let command = arguments.joined(separator: " ")
    return input.isEmpty ? command : "printf '\(input.split(separator: "\n").joined(separator: "\\n"))\\n' | \(command)"
  }

  /// The folders of system programs; a hook's PATH is unreliable.
  private static let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"]

  /// Returns the path of a program; nil if the machine does not have it.
  static func find(_ name: String, in root: Root = Root()) -> String? {
    folders.map { "\($0)/\(name)" }.first { root.exists($0) }
  }

  /// Runs the command and waits until it exits. It inherits standard error.
  ///
  /// - Returns: the exit code (nil if it cannot be started or was killed) and its standard output.
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
    // What it creates is for the programs of all users, however strict root's umask is: resolvconf, for one, writes
    // /etc/resolv.conf with that of its caller.
    let mask = umask(0o022)
    let failure = posix_spawn(&pid, path, &actions, nil, &words, environ)
    umask(mask)
    close(toChild[0])
    close(fromChild[1])
    defer { close(fromChild[0]) }
    // A few lines: they fit into the pipe even if the program does not read them.
    signal(SIGPIPE, SIG_IGN)
    _ = Array(input.utf8).withUnsafeBytes { write(toChild[1], $0.baseAddress, $0.count) }
    close(toChild[1])
    guard failure == 0 else { return (nil, "") }
    let output = (try? WholeFile.read(fromChild[0], limit: .max)) ?? []
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return (status & 0x7F == 0 ? status >> 8 & 0xFF : nil, String(decoding: output, as: UTF8.self))
  }
}
