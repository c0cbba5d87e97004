// BootInstant.swift -- a point in time on the clock that continues while the machine sleeps.

import CEvent

/// A point in time on `CLOCK_BOOTTIME`.
public struct BootInstant: Comparable, Hashable, Sendable {
  /// Nanoseconds since the machine booted, including time asleep.
  public var nanoseconds: Int64

  @inlinable
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The current time, read from the kernel.
  public static var now: BootInstant {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return BootInstant(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec))
  }

  /// Whether the left one is earlier.
  @inlinable
  public static func < (left: BootInstant, right: BootInstant) -> Bool { left.nanoseconds < right.nanoseconds }

  /// This instant moved by a duration.
  @inlinable
  public static func + (left: BootInstant, right: Duration) -> BootInstant {
    BootInstant(nanoseconds: left.nanoseconds &+ right.nanoseconds)
  }

  /// The time from `right` to `left`.
  @inlinable
  public static func - (left: BootInstant, right: BootInstant) -> Duration {
    // Duration.nanoseconds checks for an overflow that 64 bits of nanoseconds cannot cause.
    Duration(attoseconds: Int128(left.nanoseconds &- right.nanoseconds) &* 1_000_000_000)
  }
}

extension Duration {
  /// The duration in nanoseconds, clamped to ±292 years.
  @inlinable
  public var nanoseconds: Int64 {
    // Less than nine seconds, as most are, need no division of 128 bits.
    let low = Int64(truncatingIfNeeded: attoseconds)
    return Int128(low) == attoseconds ? low / 1_000_000_000 : Int64(clamping: attoseconds / 1_000_000_000)
  }
}
