// LogRetries.swift -- tries again what whoever reads the log did not take yet, and never in two chains at once.
//
// The loop that owns it only. A reader that takes a little at a time begins to be slow again and again.

/// Writes what waits of a log, in one chain of tries.
public final class LogRetries {
  private let attempt: () -> Bool
  private let schedule: (@escaping () -> Void) -> Void
  private var isScheduled = false

  /// Tries by which a log gets rid of what waits.
  ///
  /// - Parameters:
  ///   - attempt: writes what waits; whether nothing waits any more.
  ///   - schedule: calls what it is given once, after a pause, on this loop.
  public init(attempt: @escaping () -> Bool, schedule: @escaping (@escaping () -> Void) -> Void) {
    self.attempt = attempt
    self.schedule = schedule
  }

  /// Tries at once, and from then on until nothing waits. Where a try is due already, it does nothing.
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
