// AcceptFailures.swift -- the line in the log for HTTP connections that cannot be accepted.

import EventLoop
import Glibc
import Logging
import Telemetry

/// Connections to one of the daemon's HTTP servers that could not be accepted.
enum AcceptFailures {
  /// A handler for each failure, which logs a line a minute.
  ///
  /// - Parameters:
  ///   - server: the server, in the words of the configuration.
  ///   - occasional: counts failures that are too many for the log.
  static func log(of server: String, _ occasional: OccasionalLog) -> (Int32) -> Void {
    { code in
      let text = "cannot accept a connection to \(server): \(String(cString: strerror(code)))"
      occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
    }
  }
}
