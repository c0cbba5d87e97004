// HTTPDNSDaemon.swift -- the command line.

import ArgumentParser

/// The program's command line; each subcommand has a file of its own.
@main
struct HTTPDNSDaemon: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "httpdnsd",
    abstract: "A nameserver for this machine that resolves through HTTPDNS.",
    version: ProgramVersion.text,
    subcommands: [
      RunCommand.self, CheckCommand.self, QueryCommand.self, DoctorCommand.self, StatsCommand.self, TopCommand.self,
      CacheCommand.self, FlushCommand.self, RefreshCommand.self, ReportBadCommand.self, ProvidersCommand.self,
    ])
}

/// The program's version.
enum ProgramVersion {
  /// As `--version` prints it; CHANGELOG.md says what came with it.
  static let text = "0.1.0"
}

/// `--config`, as every subcommand has it.
struct ConfigurationOption: ParsableArguments {
  @Option(name: .long, help: ArgumentHelp("The configuration file.", valueName: "file"))
  var config = "/etc/httpdnsd/httpdnsd.toml"
}
