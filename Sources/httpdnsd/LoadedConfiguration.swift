// LoadedConfiguration.swift -- reads the configuration for a subcommand, and reports all mistakes.

import ArgumentParser
import Configuration
import Files
import Forwarder
import Frontend
import Glibc
import Logging
import Telemetry

/// A configuration from a file, with a log as it configures it.
struct LoadedConfiguration {
  let configuration: Configuration
  let warnings: [Warning]
  /// The keys that name files with secrets; all the files are readable.
  let secretFiles: [String]
  /// The output that `log.level` and `log.format` apply to; in the daemon, with a flight recorder.
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
        LogThreshold(loaded.configuration.log.level), loaded.configuration.log.format, recorder: recorder)
    } catch {
      for warning in error.warnings { Console.error("warning: \(warning)") }
      for mistake in error.mistakes { Console.error("\(mistake)") }
      throw ExitCode.failure
    }
  }

  /// A logger that writes to stderr at the configured level.
  var logger: Logger { Logger(label: "httpdnsd") { [log] _ in StandardErrorLog(log) } }
}

/// Human-readable output to stdout and stderr.
enum Console {
  /// Returns a forwarder that answers this process's own questions and never listens.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr.
  static func forwarder(_ loaded: LoadedConfiguration) throws -> Forwarder {
    Process.prepare(loaded.configuration)
    // The result already includes the reason for a failure. log.level = "debug" shows more.
    var logger = loaded.logger
    let level = loaded.configuration.log.level
    logger.logLevel = level <= .debug ? level : .error
    do throws(StartError) {
      return try Forwarder(loaded.configuration, logger: logger)
    } catch {
      if case .other(let text) = error { Console.error("httpdnsd: \(text)") }
      throw ExitCode.failure
    }
  }

  /// Writes text to stdout without buffering; false if its reader is gone. Other errors end the program.
  static func print(_ text: String) -> Bool {
    signal(SIGPIPE, SIG_IGN)
    if DescriptorCalls.write(Array(text.utf8), to: STDOUT_FILENO) { return true }
    guard errno == EPIPE else { cannotWrite(errno) }
    return false
  }

  /// Ends the program because stdout cannot be written.
  static func cannotWrite(_ number: Int32) -> Never {
    error("httpdnsd: cannot write to standard output: \(String(cString: strerror(number)))")
    _exit(1)
  }

  /// Writes a line to stderr and returns the error to throw.
  static func failure(_ line: String) -> ExitCode {
    error(line)
    return .failure
  }

  /// Writes a line to stderr.
  static func error(_ line: String) {
    var line = line + "\n"
    line.withUTF8 { octets in _ = write(2, octets.baseAddress, octets.count) }
  }
}
