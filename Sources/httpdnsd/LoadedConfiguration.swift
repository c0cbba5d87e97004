// LoadedConfiguration.swift -- reads the configuration for a subcommand, or ends the program with every mistake.

import ArgumentParser
import Configuration
import Glibc
import Logging
import Telemetry

/// The configuration of a file, with a logger of its level.
struct LoadedConfiguration {
  let configuration: Configuration
  let warnings: [Warning]

  /// Reads `path`.
  ///
  /// - Throws: `ExitCode.failure`, after one line for each mistake has been written to stderr.
  init(path: String) throws {
    switch Configuration.load(path: path) {
    case .success(let loaded):
      configuration = loaded.configuration
      warnings = loaded.warnings
    case .failure(let mistakes):
      for warning in mistakes.warnings { Console.error("warning: \(warning)") }
      for mistake in mistakes.mistakes { Console.error("\(mistake)") }
      throw ExitCode.failure
    }
  }

  /// A logger that writes to stderr from the configured level on.
  var logger: Logger {
    let level = Logger.Level(rawValue: configuration.log.level.rawValue) ?? .info
    return Logger(label: "httpdnsd") { _ in StandardErrorLog(level: level) }
  }
}

/// Lines for a person.
enum Console {
  /// Writes a line to stderr.
  static func error(_ line: String) { fputs(line + "\n", stderr) }
}
