// OccasionalLog.swift -- a failure that repeats is logged once a minute, with how often it happened in between.

import Logging
import Synchronization

/// Passes on the first event of a reason, and at most once a minute how often it has happened since. Any thread.
public final class OccasionalLog: Sendable {
  /// Calls back at a time, with the time at that moment; both by the clock of the events.
  public typealias Alarm = @Sendable (_ deadline: Int64, _ action: @escaping @Sendable (_ now: Int64) -> Void) -> Void

  private struct Reason: Sendable {
    /// The event that was logged last.
    var level: Logger.Level
    var text: String
    /// When that was, by the clock of the events and by that of the log.
    var lastLogged: Int64
    var time = LogTime.now
    /// How many have been left out since.
    var suppressed = 0
    /// How many of them the recorder knows of.
    var recorded = 0

    var isTold: Bool { suppressed == recorded }
    var deadline: Int64 { lastLogged + OccasionalLog.pause }

    func line(of count: Int) -> String { "\(text) (\(count) times more since \(time.text))" }
  }

  private let logger: Logger
  private let recorder: FlightRecorder?
  private let alarm: Alarm
  private let reasons = Mutex<Reasons>(Reasons())

  private struct Reasons: Sendable {
    var known: [String: Reason] = [:]
    /// When those that are over were forgotten last.
    var lastCleared = Int64.min

    /// The key that counts for a reason: its own, or the one of all for which there is no room.
    mutating func key(_ reason: String, now: Int64) -> String {
      guard known[reason] == nil, known.count >= OccasionalLog.mostReasons else { return reason }
      if lastCleared == .min || now - lastCleared >= OccasionalLog.clearingPause {
        lastCleared = now
        known = known.filter { $0.value.suppressed > 0 || now < $0.value.deadline }
      }
      return known.count < OccasionalLog.mostReasons ? reason : OccasionalLog.common
    }
  }

  /// Nanoseconds between two events of a reason.
  private static let pause: Int64 = 60_000_000_000
  /// A bound on memory, and on the lines of a minute: beyond it there is one reason for all.
  private static let mostReasons = 256
  /// Nanoseconds between two looks at all reasons for those whose minute is over.
  private static let clearingPause: Int64 = 1_000_000_000
  /// The reason of events for whose own there is no room.
  private static let common = ""

  /// Logs to `logger`.
  ///
  /// - Parameters:
  ///   - recorder: gets the counts that are not in the log yet, when `recordCounts` is called.
  ///   - alarm: set when an event is left out, for the line that tells of it; never while there is nothing to tell.
  public init(_ logger: Logger, recorder: FlightRecorder? = nil, alarm: @escaping Alarm) {
    self.logger = logger
    self.recorder = recorder
    self.alarm = alarm
  }

  /// Logs `message`, unless an event of that reason was logged less than a minute ago: then it is counted, and the end of
  /// the minute tells the count.
  ///
  /// - Parameters:
  ///   - reason: the kind of the event. What others choose, a number in a reply say, belongs into the message alone: it would
  ///     make a reason of each event.
  ///   - now: nanoseconds of a clock that never goes back.
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
      // The alarm is late, as after a sleep of the machine.
      return (key, known.line(of: known.suppressed + 1), nil)
    }
    if let line { logger.log(level: level, "\(line)") }
    if let deadline { alarm(deadline) { [weak self] in self?.tellCount(of: key, now: $0) } }
  }

  /// Gives the recorder the counts that the log does not have yet: before somebody reads it.
  public func recordCounts() {
    guard let recorder else { return }
    let news = reasons.withLock { reasons in
      let news = reasons.known.filter { !$0.value.isTold }
      for (key, reason) in news { reasons.known[key]?.recorded = reason.suppressed }
      return news
    }
    for (_, reason) in news.sorted(by: { $0.key < $1.key }) {
      recorder.record(.now, reason.level, reason.line(of: reason.suppressed))
    }
  }

  /// A minute is over, unless a line has come since and begun another one, which has an alarm of its own.
  private func tellCount(of reason: String, now: Int64) {
    let known: Reason? = reasons.withLock { reasons in
      guard let known = reasons.known[reason], known.suppressed > 0, now >= known.deadline else { return nil }
      reasons.known[reason] = Reason(level: known.level, text: known.text, lastLogged: now)
      return known
    }
    if let known { logger.log(level: known.level, "\(known.line(of: known.suppressed))") }
  }
}
