// ReportDelay.swift -- when a burst of events is reported: once it is over, or when it has lasted too long.

import EventLoop

/// A burst of events. Pure: the caller has the clock and the timer.
struct ReportDelay {
  /// A burst is over when nothing came for this time.
  static let quiet = Duration.milliseconds(500)
  /// A network that flaps without end is reported this long after each first event all the same.
  static let longest = Duration.seconds(5)

  /// When the burst is to be reported; nil when there is none.
  private(set) var due: BootInstant?
  private var latest = BootInstant(nanoseconds: 0)

  /// Something happened.
  mutating func note(at now: BootInstant) {
    if due == nil { latest = now + ReportDelay.longest }
    due = min(now + ReportDelay.quiet, latest)
  }

  /// Ends the burst if it is to be reported now; false if it goes on, or there is none.
  mutating func take(at now: BootInstant) -> Bool {
    guard let due, due <= now else { return false }
    self.due = nil
    return true
  }
}
