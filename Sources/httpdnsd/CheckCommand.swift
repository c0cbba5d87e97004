// CheckCommand.swift -- `httpdnsd check`: every mistake of a configuration file in one go.

import ArgumentParser
import Configuration
import Control
import Forwarder

/// Checks a configuration file and does nothing else.
struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check a configuration file: prints every mistake, one a line; exit code 0 or 1.",
    discussion: "Without a mistake it shows what the present network changes: LocalDNS's resolvers, and search domains."
  )

  @OptionGroup var options: ConfigurationOption

  func run() throws {
    let loaded = try LoadedConfiguration(path: options.config)
    for warning in loaded.warnings { Console.error("warning: \(warning)") }
    if let problem = ControlSocket.problem(loaded.configuration.control) {
      Console.error("warning: \(options.config): \(problem)")
    }
    print("\(options.config): no mistakes")
    for line in NetworkView(loaded.configuration).lines { print(line) }
  }
}
