// HTTPDNSDaemon.swift -- the command line.

import ArgumentParser
import CProcess
import Configuration
import Glibc

/// The program's command line. Each subcommand is in a file of its own.
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
        name: "Watch",
        subcommands: [
          TopCommand.self, DashboardCommand.self, TailCommand.self, StatsCommand.self, ProvidersCommand.self,
          ListsCommand.self,
          SetsCommand.self,
          FleetCommand.self,
        ]),
      CommandGroup(
        name: "Cache",
        subcommands: [
          CacheCommand.self, FlushCommand.self, RefreshCommand.self, ReportCommand.self, ReportBadCommand.self,
        ]),
      CommandGroup(name: "Machine", subcommands: [SetupCommand.self, ProfileCommand.self, HealthcheckCommand.self]),
    ])

  /// Blocks signals early: one that arrives before the daemon can handle it must not end it.
  static func main() {
    process_occupy_standard_descriptors()
    process_check_output()
    ProcessEnvironment.disarm()
    // In all commands, because all of them read the same secrets.
    process_keep_memory_private()
    let arguments = Array(ProcessEnvironment.arguments.dropFirst())
    if arguments.first == RunCommand.configuration.commandName { AnsweredSignals.hold() }
    if let word = arguments.first, let meant = meant(by: word) {
      exit(withError: ValidationError("unknown subcommand '\(word)'; did you mean \(meant)?"))
    }
    main(arguments)
  }
}

extension HTTPDNSDaemon {
  /// The names that other programs have for the subcommands.
  private static let others = [
    "start": "run", "serve": "run", "daemon": "run", "test": "check", "validate": "check", "configtest": "check",
    "dig": "query", "lookup": "query", "resolve": "query", "ask": "query", "statistics": "stats", "watch": "top",
    "log": "tail", "follow": "tail", "clear": "flush", "purge": "flush", "diagnose": "doctor", "install": "setup",
  ]

  /// The subcommand, in quotes, that an unknown word probably stands for; nil if none is close.
  private static func meant(by word: String) -> String? {
    let names = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
    guard !names.contains(word), !word.hasPrefix("-") else { return nil }
    // Several commands show a status.
    if word == "status" { return "'stats', 'providers' or 'setup status'" }
    return (others[word] ?? closest(to: word, among: names)).map { "'\($0)'" }
  }
}

enum ProgramVersion {
  /// As `--version` prints it.
  static let text = "0.2.0"
}

/// The option `--config` of every subcommand.
struct ConfigurationOption: ParsableArguments {
  @Option(
    name: .customLong("config"),
    help: ArgumentHelp(
      "The configuration file. (default: $HTTPDNSD_CONFIG, or else \(Configuration.defaultPath))", valueName: "file"),
    completion: .file())
  var given: String?

  /// The path from the option or the environment, or the default one.
  var config: String { Configuration.path(given: given) }
}
