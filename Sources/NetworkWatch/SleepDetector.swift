// SleepDetector.swift -- finds out from two clocks that the machine has slept.

import CNetlink

/// Compares the clock that goes on while the machine sleeps with the one that does not. Pure: the caller reads the clocks.
public struct SleepDetector: Sendable {
  /// Clocks that are apart by no more than this since the last comparison mean nothing.
  public static let threshold = Duration.seconds(1)

  private var gap: Duration

  /// Begins with what the clocks say now: `CLOCK_BOOTTIME` and `CLOCK_MONOTONIC`, each since its own zero.
  public init(bootTime: Duration, monotonic: Duration) { gap = bootTime - monotonic }

  /// How long the machine has slept since the last call that returned a sleep; nil if it did not, or only for a moment.
  ///
  /// The clocks are to be read in the order of the parameters: a thread that is held up between the two makes their
  /// distance look too small, and never too large.
  public mutating func asleep(bootTime: Duration, monotonic: Duration) -> Duration? {
    let grown = bootTime - monotonic - gap
    guard grown > SleepDetector.threshold else { return nil }
    gap += grown
    return grown
  }
}

extension SleepDetector {
  /// Begins now.
  public init() {
    let bootTime = SleepDetector.read(CLOCK_BOOTTIME)
    self.init(bootTime: bootTime, monotonic: SleepDetector.read(CLOCK_MONOTONIC))
  }

  /// How long the machine has slept since it was last told here, by the clocks as they are: two reads without a system
  /// call.
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
