// HTTPDNSDaemon.swift -- the command line.

import ArgumentParser
import CProcess
import Configuration
import Glibc

/// The program's command line; each subcommand has a file of its own.
@main
struct HTTPDNSDaemon: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "httpdnsd",
    abstract: "A nameserver for this machine that resolves through HTTPDNS.",
    discussion: """
      Example: httpdnsd check && httpdnsd run
      Example: httpdnsd query www.example.com
      Example: httpdnsd setup
      """,
    version: ProgramVersion.text,
    groupedSubcommands: [
      CommandGroup(name: "Serve", subcommands: [RunCommand.self, CheckCommand.self, ReloadCommand.self]),
      CommandGroup(name: "Ask", subcommands: [QueryCommand.self, DoctorCommand.self]),
      CommandGroup(
        name: "Watch", subcommands: [TopCommand.self, TailCommand.self, StatsCommand.self, ProvidersCommand.self]),
      CommandGroup(
        name: "Cache",
        subcommands: [CacheCommand.self, FlushCommand.self, RefreshCommand.self, ReportBadCommand.self]),
      CommandGroup(name: "Machine", subcommands: [SetupCommand.self, HealthcheckCommand.self]),
    ])

  /// Before anything else: a signal may come before the daemon can handle it, and must not end it.
  static func main() {
    ProcessEnvironment.disarm()
    // Other commands read the same secrets.
    process_keep_memory_private()
    let arguments = Array(ProcessEnvironment.arguments.dropFirst())
    if arguments.first == RunCommand.configuration.commandName { AnsweredSignals.hold() }
    if let word = arguments.first, let meant = meant(by: word) {
      exit(withError: ValidationError("unknown subcommand '\(word)'; did you mean '\(meant)'?"))
    }
    main(arguments)
    // Output may still be buffered; failing to write it is a failure like any other.
    guard fflush(nil) == 0 else { Console.cannotWrite(errno) }
  }
}

extension HTTPDNSDaemon {
  /// What other programs call the subcommands.
  private static let others = [
    "start": "run", "serve": "run", "daemon": "run", "test": "check", "validate": "check", "configtest": "check",
    "dig": "query", "lookup": "query", "resolve": "query", "ask": "query", "status": "stats", "statistics": "stats",
    "watch": "top", "log": "tail", "follow": "tail",
    "clear": "flush", "purge": "flush", "diagnose": "doctor", "install": "setup",
  ]

  /// The subcommand that was probably meant by an unknown word; nil where none is close.
  private static func meant(by word: String) -> String? {
    let names = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    guard !names.contains(word), !word.hasPrefix("-") else { return nil }
    return others[word] ?? closest(to: word, among: names)
  }
}

/// The program's version.
enum ProgramVersion {
  /// As `--version` prints it; CHANGELOG.md says what came with it.
  static let text = "0.2.0"
}

/// `--config`, as every subcommand has it.
struct ConfigurationOption: ParsableArguments {
  @Option(
    name: .customLong("config"),
    help: ArgumentHelp(
      "The configuration file. (default: $HTTPDNSD_CONFIG, or else \(Configuration.defaultPath))", valueName: "file"),
    completion: .file())
  var given: String?

  /// The path of the file.
  var config: String { Configuration.path(given: given) }
}
