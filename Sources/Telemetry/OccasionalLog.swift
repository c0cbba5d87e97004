// OccasionalLog.swift -- a failure that repeats is logged once a minute, with how often it happened in between.

import Logging
import Synchronization

/// Passes on the first event of a reason and then at most one a minute. Any thread.
public final class OccasionalLog: Sendable {
  private struct Reason: Sendable {
    var lastLogged: Int64
    var suppressed = 0
  }

  private let logger: Logger
  private let recorder: FlightRecorder?
  private let reasons = Mutex<[String: Reason]>([:])

  /// Nanoseconds between two events of a reason.
  private static let pause: Int64 = 60_000_000_000
  /// A bound on memory: when so many reasons are known, all are forgotten.
  private static let mostReasons = 256

  /// Logs to `logger`.
  ///
  /// - Parameter recorder: gets what is left out of the log.
  public init(_ logger: Logger, recorder: FlightRecorder? = nil) {
    self.logger = logger
    self.recorder = recorder
  }

  /// Logs `message`, unless an event of that reason was logged less than a minute ago.
  ///
  /// - Parameter now: nanoseconds of a clock that never goes back.
  public func log(_ level: Logger.Level, reason: String, now: Int64, _ message: @autoclosure () -> String) {
    let suppressed: Int? = reasons.withLock { reasons in
      if let known = reasons[reason], now - known.lastLogged < OccasionalLog.pause {
        reasons[reason]?.suppressed += 1
        return nil
      }
      let count = reasons[reason]?.suppressed
      if count == nil, reasons.count >= OccasionalLog.mostReasons { reasons.removeAll() }
      reasons[reason] = Reason(lastLogged: now)
      return count ?? 0
    }
    guard let suppressed else {
      recorder?.record(.now, level, message())
      return
    }
    let again = suppressed > 0 ? " (and \(suppressed) times more in the last minute)" : ""
    logger.log(level: level, "\(message())\(again)")
  }
}
