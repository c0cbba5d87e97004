// ProcessEnvironment.swift -- the command line, and variables of libraries that affect trust or secrets.

import CProcess
import Glibc
import Logging

/// Variables that libraries read from the environment themselves.
enum ProcessEnvironment {
  /// Names the file to which libcurl and OpenSSL would write the keys of every connection.
  private static let keyLog = "SSLKEYLOGFILE"
  /// Name the file and the folder of trusted authorities that OpenSSL uses instead of its own.
  private static let authorities = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
  nonisolated(unsafe) private static var hadKeyLog = false

  /// The command line. `CommandLine.arguments` reads it from /proc, and is empty if /proc is not mounted.
  static var arguments: [String] {
    var arguments: [String] = []
    while let argument = process_argument(arguments.count) { arguments.append(String(cString: argument)) }
    return arguments
  }

  /// Removes variables that would reveal secrets. Call it before there are threads and before a library reads them.
  static func disarm() {
    hadKeyLog = getenv(keyLog) != nil
    unsetenv(keyLog)
  }

  /// Logs the variables that were removed or that change trust.
  static func log(to logger: Logger) {
    if hadKeyLog { logger.warning("\(keyLog) is ignored: keys of TLS connections are never written to a file") }
    for name in authorities {
      guard let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty else { continue }
      logger.info("certificates: trusting the authorities of \(name)=\(value)")
    }
  }
}
