// ReloadCommand.swift -- `httpdnsd reload`: the running daemon reads its configuration again, and reports the result.

import ArgumentParser
import Configuration
import Control
import Glibc

/// Has the daemon read its configuration again.
struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Reload the running daemon's configuration and report the result.",
    discussion: """
      The daemon reads the file that it was started with: --config with another one is refused. The cache, the sockets \
      and queries in flight stay. A file with a mistake changes nothing: each mistake is printed. SIGHUP does the same, \
      and only the log has the result. Called by systemd (ExecReload=) it uses SIGHUP if no daemon listens at the \
      control socket that the file names.

      Example: httpdnsd reload
      Example: httpdnsd reload --json

      Exit code 0: the configuration is what the file says; 1: the daemon cannot be reached or refuses; 2: the file has \
      a mistake, and the configuration is unchanged; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  func run() throws {
    var path: String?
    // Of a file that cannot be read as a whole. The daemon will refuse it, but is to know, and so are its log and status.
    var mistakes: [Mistake] = []
    do throws(Mistakes) {
      path = try control.find()
    } catch {
      (path, mistakes) = (Configuration.usualControl().socket, error.mistakes)
    }
    if let path {
      let answer: ControlAnswer
      do throws(ControlClientError) {
        let client = ControlClient(path: path, patience: ReloadCommand.patience)
        if let given = control.options.given, let file = try client.file(), !FilePath.isSame(given, file) {
          throw .refused("it reads \(file); --config only says where its socket is")
        }
        answer = try client.reload(control.form)
      } catch {
        let process = ReloadCommand.systemdsProcess
        if case .notRunning = error, process == nil, let missing = control.missingFile {
          Console.error("\(missing), and no daemon listens at \(path)")
          throw ExitCode.failure
        }
        for mistake in mistakes { Console.error("\(mistake)") }
        guard case .notRunning = error, let process else { throw ControlOptions.failure(error) }
        try hangUp(process)
        if mistakes.isEmpty { return }
        throw ControlOptions.nothing
      }
      return try control.show(answer)
    }
    guard let process = ReloadCommand.systemdsProcess else { throw control.switchedOff() }
    try hangUp(process)
  }

  /// Reading a list of millions of names takes seconds.
  private static let patience = Duration.seconds(60)

  private func hangUp(_ process: pid_t) throws {
    guard kill(process, SIGHUP) == 0 else {
      Console.error("httpdnsd: process \(process): \(String(cString: strerror(errno)))")
      throw ExitCode.failure
    }
    print("process \(process) got SIGHUP; its log has the result")
  }

  /// The daemon's process, as systemd says it to ExecReload=.
  private static var systemdsProcess: pid_t? {
    getenv("MAINPID").flatMap { pid_t(String(cString: $0)) }.flatMap { $0 > 1 ? $0 : nil }
  }
}
