// LoadedConfiguration.swift -- reads the configuration for a subcommand, or ends the program with every mistake.

import ArgumentParser
import Configuration
import Forwarder
import Glibc
import Logging
import Telemetry

/// The configuration of a file, with a logger of its level.
struct LoadedConfiguration {
  let configuration: Configuration
  let warnings: [Warning]
  /// `log.level`, for all loggers.
  let threshold: LogThreshold

  /// Reads `path`.
  ///
  /// - Throws: `ExitCode.failure`, after one line for each mistake has been written to stderr.
  init(path: String) throws {
    do throws(Mistakes) {
      let loaded = try Configuration.load(path: path)
      configuration = loaded.configuration
      warnings = loaded.warnings
      threshold = LogThreshold(Logger.Level(rawValue: loaded.configuration.log.level.rawValue) ?? .info)
    } catch {
      for warning in error.warnings { Console.error("warning: \(warning)") }
      for mistake in error.mistakes { Console.error("\(mistake)") }
      throw ExitCode.failure
    }
  }

  /// A logger that writes to stderr from the configured level on.
  var logger: Logger {
    Logger(label: "httpdnsd") { [threshold] _ in StandardErrorLog(threshold) }
  }
}

/// Lines for a person.
enum Console {
  /// A forwarder that is only asked and never listens.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr.
  static func forwarder(_ loaded: LoadedConfiguration) throws -> Forwarder {
    Process.prepare(loaded.configuration)
    do throws(StartError) {
      return try Forwarder(loaded.configuration, logger: loaded.logger)
    } catch {
      if case .other(let text) = error { Console.error("httpdnsd: \(text)") }
      throw ExitCode.failure
    }
  }

  /// Writes a line to stderr.
  static func error(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { octets in _ = write(2, octets.baseAddress, octets.count) }
  }
}
