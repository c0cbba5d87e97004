// SleepDetector.swift -- detects from two clocks that the machine has slept.

import CNetlink

/// Compares a clock that continues while the machine sleeps with one that stops. Except for `init()` and `asleep()`,
/// the caller reads the clocks.
public struct SleepDetector: Sendable {
  /// A smaller difference between the clocks since the last comparison is ignored.
  public static let threshold = Duration.seconds(1)

  private var gap: Duration

  /// Starts with the current values of `CLOCK_BOOTTIME` and `CLOCK_MONOTONIC`, each since its own zero.
  public init(bootTime: Duration, monotonic: Duration) { gap = bootTime - monotonic }

  /// Returns how long the machine has slept since the last sleep that was returned; nil if it has not, or for up to a
  /// second only.
  ///
  /// Read the clocks in the order of the parameters: a thread that is delayed between the two then sees a difference
  /// that is too small, never one that is too large.
  public mutating func asleep(bootTime: Duration, monotonic: Duration) -> Duration? {
    let grown = bootTime - monotonic - gap
    guard grown > SleepDetector.threshold else { return nil }
    gap += grown
    return grown
  }
}

extension SleepDetector {
  /// Starts now.
  public init() {
    let bootTime = SleepDetector.read(CLOCK_BOOTTIME)
    self.init(bootTime: bootTime, monotonic: SleepDetector.read(CLOCK_MONOTONIC))
  }

  /// Reads the clocks and returns how long the machine has slept since the last sleep that was returned. Costs two
  /// reads of a clock without a system call.
  public mutating func asleep() -> Duration? {
    let bootTime = SleepDetector.read(CLOCK_BOOTTIME)
    return asleep(bootTime: bootTime, monotonic: SleepDetector.read(CLOCK_MONOTONIC))
  }

  private static func read(_ clock: clockid_t) -> Duration {
    var time = timespec()
    clock_gettime(clock, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
