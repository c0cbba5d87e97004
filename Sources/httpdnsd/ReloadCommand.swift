// ReloadCommand.swift -- `httpdnsd reload`: the running daemon reads its configuration anew, and says what came of it.

import ArgumentParser
import Control
import Glibc

/// Lets the daemon read its configuration anew.
struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Let the running daemon read its configuration anew, and tell what came of it.",
    discussion: """
      The cache, the sockets and what is under way stay. A file with a mistake changes nothing: each mistake is told. \
      SIGHUP does the same, and tells only the log. Where there is no control socket and systemd calls (ExecReload=), \
      the daemon gets SIGHUP.

      Example: httpdnsd reload
      Example: httpdnsd reload --json

      Exit code 0: the configuration is what the file says; 1: the daemon cannot be reached or refuses; 2: the file has \
      a mistake, and the configuration is unchanged; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  func run() throws {
    guard control.isSwitchedOff(), let process = ReloadCommand.systemdsProcess else {
      return try control.tell { client, form throws(ControlClientError) in try client.reload(form) }
    }
    guard kill(process, SIGHUP) == 0 else {
      Console.error("httpdnsd: process \(process): \(String(cString: strerror(errno)))")
      throw ExitCode.failure
    }
    print("process \(process) was told to; its log has what comes of it")
  }

  /// The daemon's process, as systemd says it to ExecReload=.
  private static var systemdsProcess: pid_t? {
    getenv("MAINPID").flatMap { pid_t(String(cString: $0)) }.flatMap { $0 > 1 ? $0 : nil }
  }
}
