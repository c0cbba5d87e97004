// AcceptFailures.swift -- logs HTTP connections that cannot be accepted.

import EventLoop
import Glibc
import Logging
import Telemetry

enum AcceptFailures {
  /// Returns a failure handler that logs each reason at most once a minute.
  ///
  /// - Parameters:
  ///   - server: the name of the server for the log line.
  ///   - occasional: limits the rate, and counts the failures that it does not log.
  static func log(of server: String, _ occasional: OccasionalLog) -> (Int32) -> Void {
    { code in
      let text = "cannot accept a connection to \(server): \(String(cString: strerror(code)))"
      occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
    }
  }
}
