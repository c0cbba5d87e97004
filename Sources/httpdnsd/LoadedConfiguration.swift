// LoadedConfiguration.swift -- reads the configuration for a subcommand, or ends the program with every mistake.

import ArgumentParser
import Configuration
import Forwarder
import Frontend
import Glibc
import Logging
import Telemetry

/// The configuration of a file, with a logger of its level.
struct LoadedConfiguration {
  let configuration: Configuration
  let warnings: [Warning]
  /// The keys that name files with secrets, which could be read.
  let secretFiles: [String]
  /// The output that `log.level` and `log.format` apply to; with a flight recorder in the daemon.
  let log: LogOutput

  /// Reads `path`.
  ///
  /// - Throws: `ExitCode.failure`, after one line for each mistake has been written to stderr.
  init(path: String, recorder: FlightRecorder? = nil) throws {
    do throws(Mistakes) {
      let loaded = try Configuration.load(path: path)
      configuration = loaded.configuration
      warnings = loaded.warnings
      secretFiles = loaded.secretFiles
      log = LogOutput(
        LogThreshold(Logger.Level(loaded.configuration.log.level)), LogFormat(loaded.configuration.log.format),
        recorder: recorder)
    } catch {
      for warning in error.warnings { Console.error("warning: \(warning)") }
      for mistake in error.mistakes { Console.error("\(mistake)") }
      throw ExitCode.failure
    }
  }

  /// A logger that writes to stderr from the configured level on.
  var logger: Logger {
    Logger(label: "httpdnsd") { [log] _ in StandardErrorLog(log) }
  }
}

extension Logger.Level {
  init(_ level: Configuration.LogLevel) { self = Logger.Level(rawValue: level.rawValue) ?? .info }
}

extension LogFormat {
  init(_ format: Configuration.LogFormat) {
    switch format {
    case .text: self = .text
    case .json: self = .json
    }
  }
}

/// Human-readable lines.
enum Console {
  /// A forwarder that is only asked and never listens.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr.
  static func forwarder(_ loaded: LoadedConfiguration) throws -> Forwarder {
    Process.prepare(loaded.configuration)
    // The answer itself says why there is none. log.level = "debug" shows more.
    var logger = loaded.logger
    let level = Logger.Level(loaded.configuration.log.level)
    logger.logLevel = level <= .debug ? level : .error
    do throws(StartError) {
      return try Forwarder(loaded.configuration, logger: logger)
    } catch {
      if case .other(let text) = error { Console.error("httpdnsd: \(text)") }
      throw ExitCode.failure
    }
  }

  /// Writes text to stdout at once; false where its reader has gone. Ends the program where it cannot be written.
  static func print(_ text: String) -> Bool {
    signal(SIGPIPE, SIG_IGN)
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count < 0 {
        guard errno == EPIPE else { cannotWrite(errno) }
        return false
      }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Ends the program: stdout takes nothing more.
  static func cannotWrite(_ number: Int32) -> Never {
    error("httpdnsd: cannot write to standard output: \(String(cString: strerror(number)))")
    _exit(1)
  }

  /// Writes a line to stderr.
  static func error(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { octets in _ = write(2, octets.baseAddress, octets.count) }
  }
}
