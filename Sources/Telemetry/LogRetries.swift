// LogRetries.swift -- retries buffered log lines on a timer, never with two timers at once.
//
// Only on the loop that owns it. A reader that takes a little at a time falls behind again and again.

/// Writes the buffered lines of a log in one chain of retries.
public final class LogRetries {
  private let attempt: () -> Bool
  private let schedule: (@escaping () -> Void) -> Void
  private var isScheduled = false

  /// - Parameters:
  ///   - attempt: writes buffered lines; returns true when the buffer is empty.
  ///   - schedule: calls its argument once, after a pause, on this loop.
  public init(attempt: @escaping () -> Bool, schedule: @escaping (@escaping () -> Void) -> Void) {
    self.attempt = attempt
    self.schedule = schedule
  }

  /// Tries at once, then repeatedly until the buffer is empty. Does nothing if a retry is scheduled.
  public func begin() {
    guard !isScheduled, !attempt() else { return }
    isScheduled = true
    schedule { [weak self] in
      guard let self else { return }
      isScheduled = false
      begin()
    }
  }
}
