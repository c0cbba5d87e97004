// CheckCommand.swift -- `httpdnsd check`: every mistake of a configuration file in one go.

import ArgumentParser

/// Checks a configuration file and does nothing else.
struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check a configuration file: prints every mistake, one a line; exit code 0 or 1.")

  @OptionGroup var options: ConfigurationOption

  func run() throws {
    let loaded = try LoadedConfiguration(path: options.config)
    for warning in loaded.warnings { Console.error("warning: \(warning)") }
    print("\(options.config): no mistakes")
  }
}
