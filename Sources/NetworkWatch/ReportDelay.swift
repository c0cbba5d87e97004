// ReportDelay.swift -- decides when to report a burst of events: at its end, or when it lasts too long.

import EventLoop

/// A burst of events. Has no clock of its own: the caller passes the time and sets the timer.
struct ReportDelay {
  /// A burst ends after this time without an event.
  static let quiet = Duration.milliseconds(500)
  /// The latest report after the first event of a burst, for a network that flaps continuously.
  static let longest = Duration.seconds(5)

  /// The time of the report; nil without a burst.
  private(set) var due: BootInstant?
  private var latest = BootInstant(nanoseconds: 0)

  /// Records an event.
  mutating func note(at now: BootInstant) {
    if due == nil { latest = now + ReportDelay.longest }
    due = min(now + ReportDelay.quiet, latest)
  }

  /// Ends the burst if its report is due; returns false if the burst continues, or without a burst.
  mutating func take(at now: BootInstant) -> Bool {
    guard let due, due <= now else { return false }
    self.due = nil
    return true
  }
}
