// ClockWatch.swift -- reports that the machine has slept or that its wall clock was set.
//
// On the loop's thread only. Wakes up only when the kernel changes the wall clock; it does not poll.

import CNetlink
import EventLoop
import Glibc

/// Waits on a timer that the kernel cancels after a sleep and when the wall clock is set (timerfd_create(2),
/// `TFD_TIMER_CANCEL_ON_SET`), until it is released. Loop thread only.
public final class ClockWatch {
  /// The length of the last detected sleep.
  public private(set) var lastSleep = Duration.zero

  private let descriptor: Int32
  private let changed: (NetworkChange) -> Void
  private var event: LoopEvent?
  private var detector: SleepDetector

  /// Calls `changed` with `.resume` or `.clockSet`, at once and never with both.
  ///
  /// - Throws: the error of the system call.
  public convenience init(on loop: EventLoop, changed: @escaping (NetworkChange) -> Void) throws(NetworkWatchError) {
    try self.init(on: loop, detector: SleepDetector(), changed: changed)
  }

  init(
    on loop: EventLoop, detector: SleepDetector, changed: @escaping (NetworkChange) -> Void
  ) throws(NetworkWatchError) {
    self.detector = detector
    descriptor = wall_clock_timer_open()
    self.changed = changed
    guard descriptor >= 0, wall_clock_timer_arm(descriptor) == 0 else {
      throw NetworkWatchError(action: "wall clock timer", code: errno)
    }
    event = LoopEvent(on: loop, descriptor: descriptor, .read, for: self) { $0.readable() }
  }

  deinit {
    event = nil
    if descriptor >= 0 { close(descriptor) }
  }

  /// Checks for a sleep and reports it like the timer does. Call it after other signs of a sleep, such as a late timer.
  /// Costs two reads of a clock.
  ///
  /// - Returns: whether the machine has slept.
  @discardableResult
  public func check() -> Bool {
    guard let asleep = detector.asleep() else { return false }
    lastSleep = asleep
    changed(.resume)
    return true
  }

  /// Called when the kernel has changed the wall clock, which it also does after a sleep.
  func wallClockMoved() {
    if !check() { changed(.clockSet) }
  }

  private func readable() {
    // If the wall clock is set beyond the timer's expiry, the timer fires continuously: stop watching.
    guard wall_clock_timer_was_cancelled(descriptor) == 1, wall_clock_timer_arm(descriptor) == 0 else {
      event = nil
      return
    }
    wallClockMoved()
  }
}
