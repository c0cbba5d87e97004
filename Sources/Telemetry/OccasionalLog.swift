// OccasionalLog.swift -- logs a repeated event once a minute, with the number of repetitions.

import Logging
import Synchronization

/// Logs the first event of a reason, then at most once a minute the number of events since. Any thread.
public final class OccasionalLog: Sendable {
  /// Calls `action` at `deadline` with the current time; both use the clock of the events, in nanoseconds.
  public typealias Alarm = @Sendable (_ deadline: Int64, _ action: @escaping @Sendable (_ now: Int64) -> Void) -> Void

  private struct Reason: Sendable {
    /// The last logged event.
    var level: Logger.Level
    var text: String
    /// Its time by the clock of the events, and by the wall clock.
    var lastLogged: Int64
    var time = LogTime.now
    /// The number of events suppressed since.
    var suppressed = 0
    /// How many of those the recorder has been given.
    var recorded = 0

    var isReported: Bool { suppressed == recorded }
    var deadline: Int64 { lastLogged + OccasionalLog.pause }

    func line(of count: Int) -> String { "\(text) (\(count) times more since \(time.text))" }
  }

  private let logger: Logger
  private let recorder: FlightRecorder?
  private let alarm: Alarm
  private let reasons = Mutex<Reasons>(Reasons())

  private struct Reasons: Sendable {
    var known: [String: Reason] = [:]
    /// The time of the last removal of expired reasons.
    var lastCleared = Int64.min

    /// The key to count an event under: its reason or, if the table is full, the common one.
    mutating func key(_ reason: String, now: Int64) -> String {
      guard known[reason] == nil, known.count >= OccasionalLog.mostReasons else { return reason }
      if lastCleared == .min || now - lastCleared >= OccasionalLog.clearingPause {
        lastCleared = now
        known = known.filter { $0.value.suppressed > 0 || now < $0.value.deadline }
      }
      return known.count < OccasionalLog.mostReasons ? reason : OccasionalLog.common
    }
  }

  /// Nanoseconds between two log lines of one reason.
  private static let pause: Int64 = 60_000_000_000
  /// Bounds memory and the number of lines per minute: further reasons share one entry.
  private static let mostReasons = 256
  /// Nanoseconds between two scans for expired reasons.
  private static let clearingPause: Int64 = 1_000_000_000
  /// The shared reason of events that find the table full.
  private static let common = ""

  /// - Parameters:
  ///   - recorder: receives the counts that are not logged yet when `recordCounts` is called.
  ///   - alarm: called when the first event is suppressed, so that its count is logged at the end of the minute. Never set
  ///     while there is nothing to report.
  public init(_ logger: Logger, recorder: FlightRecorder? = nil, alarm: @escaping Alarm) {
    self.logger = logger
    self.recorder = recorder
    self.alarm = alarm
  }

  /// Logs `message`, unless an event of that reason was logged less than a minute ago. Then the event is counted, and the
  /// count is logged at the end of the minute.
  ///
  /// - Parameters:
  ///   - reason: the kind of event. It must not contain values that peers choose, such as a number in a reply: each event
  ///     would become a reason of its own.
  ///   - now: nanoseconds of a monotonic clock.
  public func log(_ level: Logger.Level, reason: String, now: Int64, _ message: @autoclosure () -> String) {
    let (key, line, deadline): (String, String?, Int64?) = reasons.withLock { reasons in
      let key = reasons.key(reason, now: now)
      let known = reasons.known[key]
      if let known, now < known.deadline {
        reasons.known[key]?.suppressed += 1
        return (key, nil, known.suppressed == 0 ? known.deadline : nil)
      }
      let text = message()
      reasons.known[key] = Reason(
        level: level, text: key == OccasionalLog.common ? "\(text), and other events" : text, lastLogged: now)
      guard let known, known.suppressed > 0 else { return (key, text, nil) }
      // The alarm is late, for example because the machine slept.
      return (key, known.line(of: known.suppressed + 1), nil)
    }
    if let line { logger.log(level: level, "\(line)") }
    if let deadline { alarm(deadline) { [weak self] in self?.logCount(of: key, now: $0) } }
  }

  /// Records the counts that are not logged yet; call it before a dump of the recorder.
  public func recordCounts() {
    guard let recorder else { return }
    let pending = reasons.withLock { reasons in
      let pending = reasons.known.filter { !$0.value.isReported }
      for (key, reason) in pending { reasons.known[key]?.recorded = reason.suppressed }
      return pending
    }
    for (_, reason) in pending.sorted(by: { $0.key < $1.key }) {
      recorder.record(.now, reason.level, reason.line(of: reason.suppressed))
    }
  }

  /// Logs the count at the end of a minute. Does nothing if a line since then began a new minute with its own alarm.
  private func logCount(of reason: String, now: Int64) {
    let known: Reason? = reasons.withLock { reasons in
      guard let known = reasons.known[reason], known.suppressed > 0, now >= known.deadline else { return nil }
      reasons.known[reason] = Reason(level: known.level, text: known.text, lastLogged: now)
      return known
    }
    if let known { logger.log(level: known.level, "\(known.line(of: known.suppressed))") }
  }
}
