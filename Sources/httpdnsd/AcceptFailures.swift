// AcceptFailures.swift -- the line in the log for HTTP connections that cannot be accepted.

import EventLoop
import Glibc
import Logging
import Telemetry

/// Connections to one of the daemon's HTTP servers that could not be accepted.
enum AcceptFailures {
  /// What is told of each, and logs a line a minute.
  ///
  /// - Parameters:
  ///   - server: what the connections were to, in the words of the configuration.
  ///   - occasional: counts what is too much for the log.
  static func log(of server: String, _ occasional: OccasionalLog) -> (Int32) -> Void {
    { code in
      let text = "a connection to \(server) is not accepted: \(String(cString: strerror(code)))"
      occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
    }
  }
}
