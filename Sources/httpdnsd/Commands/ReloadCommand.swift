// ReloadCommand.swift -- `httpdnsd reload`: makes the running daemon read its configuration again.

import ArgumentParser
import Configuration
import Control
import Glibc

struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Reload the running daemon's configuration and report the result.",
    discussion: """
      The daemon reads the file that it was started with; a different file in --config is refused. The cache, the \
      sockets and queries in flight are not affected. If the file has a mistake, nothing changes and every mistake is \
      printed. SIGHUP does the same, but reports the result only in the log. If systemd calls the command \
      (ExecReload=) and no daemon listens on the control socket that the file names, it sends SIGHUP instead.

      Example: httpdnsd reload
      Example: httpdnsd reload --json

      Exit code 0: the file's configuration is in effect; 1: the daemon cannot be reached or refuses; 2: the file has \
      a mistake, and the configuration is unchanged; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  func run() throws {
    var path: String?
    // Mistakes in the file. The daemon is asked anyway: it refuses the file, and its log and status report them.
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
          // Without a file that was asked for, the default socket is only a guess.
          guard control.options.given != nil else { throw control.failure(error) }
          throw Console.failure(missing)
        }
        for mistake in mistakes { Console.error("\(mistake)") }
        guard case .notRunning = error, let process else { throw control.failure(error) }
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
      throw Console.failure("httpdnsd: process \(process): \(String(cString: strerror(errno)))")
    }
    print("sent SIGHUP to process \(process); its log has the result")
  }

  /// The daemon's process ID, which systemd passes to ExecReload= in MAINPID; nil outside of it.
  private static var systemdsProcess: pid_t? {
    getenv("MAINPID").flatMap { pid_t(String(cString: $0)) }.flatMap { $0 > 1 ? $0 : nil }
  }
}
