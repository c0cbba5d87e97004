// ProcessEnvironment.swift -- the command line, and variables of other libraries that change whom this program trusts or what
// it gives away.

import CProcess
import Glibc
import Logging

/// What the libraries below read from the environment by themselves.
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

  /// Takes away what would give secrets away. To be called before there are threads, and before any library looks.
  static func disarm() {
    hadKeyLog = getenv(keyLog) != nil
    unsetenv(keyLog)
  }

  /// Says what was found.
  static func log(to logger: Logger) {
    if hadKeyLog { logger.warning("\(keyLog) is not used: the keys of TLS connections are not written to a file") }
    for name in authorities {
      guard let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty else { continue }
      logger.info("certificates: authorities of \(name)=\(value) are trusted")
    }
  }
}
