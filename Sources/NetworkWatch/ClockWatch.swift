// ClockWatch.swift -- tells when the machine has slept, and when its wall clock was set.
//
// On the loop's thread only. It wakes up when the kernel has moved the wall clock, and never by itself.

import CNetlink
import EventLoop
import Glibc

/// Waits on a timer that the kernel cancels after a sleep and when the wall clock is set (timerfd_create(2),
/// `TFD_TIMER_CANCEL_ON_SET`). Ends with the object. Loop thread only.
public final class ClockWatch {
  /// How long the machine slept last, as far as it was noticed.
  public private(set) var lastSleep = Duration.zero

  private let descriptor: Int32
  private let changed: (NetworkChange) -> Void
  private var event: LoopEvent?
  private var detector: SleepDetector

  /// Calls `changed` with `.resume` or `.clockSet`, at once and never with both.
  ///
  /// - Throws: what the system refused.
  public convenience init(
    on loop: EventLoop, changed: @escaping (NetworkChange) -> Void
  ) throws(NetworkWatchError) {
    try self.init(on: loop, detector: SleepDetector(), changed: changed)
  }

  /// A watch that compares the clocks with what a detector has seen.
  init(
    on loop: EventLoop, detector: SleepDetector, changed: @escaping (NetworkChange) -> Void
  ) throws(NetworkWatchError) {
    self.detector = detector
    descriptor = wall_clock_timer_open()
    self.changed = changed
    guard descriptor >= 0, wall_clock_timer_arm(descriptor) == 0 else {
      throw NetworkWatchError(action: "wall clock timer", code: errno)
    }
    event = LoopEvent(on: loop, descriptor: descriptor, .read) { [unowned self] _ in readable() }
  }

  deinit {
    event = nil
    if descriptor >= 0 { close(descriptor) }
  }

  /// Looks whether the machine has slept, and reports it as if the timer had: for places that notice something odd, such as
  /// a timer that is late. Costs two reads of a clock.
  ///
  /// - Returns: whether it has.
  @discardableResult
  public func check() -> Bool {
    guard let asleep = detector.asleep() else { return false }
    lastSleep = asleep
    changed(.resume)
    return true
  }

  /// The kernel has moved the wall clock, which it does after a sleep as well.
  func wallClockMoved() {
    if !check() { changed(.clockSet) }
  }

  private func readable() {
    // A wall clock beyond the timer's end lets it expire, again and again.
    guard wall_clock_timer_was_cancelled(descriptor) == 1, wall_clock_timer_arm(descriptor) == 0 else {
      event = nil
      return
    }
    wallClockMoved()
  }
}
