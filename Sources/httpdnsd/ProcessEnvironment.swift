// ProcessEnvironment.swift -- the command line, and variables of other libraries that change whom this program trusts or what
// it gives away.

import CProcess
import Glibc
import Logging

/// Variables that libraries read from the environment themselves.
enum ProcessEnvironment {
  /// Where libcurl and OpenSSL would write the keys of every connection.
  private static let keyLog = "SSLKEYLOGFILE"
  /// Where OpenSSL finds trusted authorities in the place of its own file and folder.
  private static let authorities = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
  nonisolated(unsafe) private static var hadKeyLog = false

  /// The command line. `CommandLine.arguments` is read from /proc, and is empty in a root that has none.
  static var arguments: [String] {
    var arguments: [String] = []
    while let argument = process_argument(arguments.count) { arguments.append(String(cString: argument)) }
    return arguments
  }

  /// Removes variables that would reveal secrets. To be called before there are threads and before any library reads them.
  static func disarm() {
    hadKeyLog = getenv(keyLog) != nil
    unsetenv(keyLog)
  }

  /// Says what was found.
  static func log(to logger: Logger) {
    if hadKeyLog { logger.warning("\(keyLog) is ignored: keys of TLS connections are never written to a file") }
    for name in authorities {
      guard let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty else { continue }
      logger.info("certificates: trusting the authorities of \(name)=\(value)")
    }
  }
}
