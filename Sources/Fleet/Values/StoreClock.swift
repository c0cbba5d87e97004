// StoreClock.swift -- estimates the store's clock, which all daemons of a fleet use for the age of a value.
//
// Pure: the caller passes in the time of the monotonic clock, in nanoseconds.

import Files

/// An estimate of the store's clock, from its replies to `TIME` and this machine's monotonic clock.
public struct StoreClock: Sendable {
  /// By how much the store's clock may differ from this machine's wall clock, in seconds. A store that reports a false
  /// time could extend the life of old answers.
  public static let mostDifference: Int64 = 300
  /// How long an estimate is used before it is measured again, in nanoseconds.
  public static let lifetime: Int64 = 3_600_000_000_000

  /// Smaller steps back are errors of the estimate, in milliseconds.
  public static let leastStep: Int64 = 1_000
  /// Longer steps back are capped at this, in milliseconds. It limits for how long values are refused after a step.
  public static let longestStep = 2_000 * mostDifference
  /// Valid times in milliseconds: until the year 9999.
  public static let times = NumberRange.milliseconds

  /// Milliseconds of the store's clock at 0 of the monotonic clock; nil if unknown.
  private var offset: Int64?
  /// The last known `offset`; survives `invalidate`, so that a step is noticed after a reconnection too.
  private var lastOffset: Int64?
  private var measuredAt: Int64 = 0
  /// By how many seconds the store's clock is ahead of this machine's wall clock; nil if unknown.
  public private(set) var difference: Int64?

  /// Updates the estimate from a reply to `TIME`.
  ///
  /// - Parameters:
  ///   - milliseconds: the time in the reply.
  ///   - sentAt: when `TIME` was sent, in nanoseconds. The store is assumed to have replied halfway between that and
  ///     `now`.
  ///   - now: nanoseconds of the monotonic clock.
  ///   - wallTime: seconds since 1970 by this machine's clock.
  /// - Returns: nil unless the clock went back by more than `leastStep`; then the time that it would show without the
  ///   step, at most `longestStep` from its new time. Values stored before that time seem younger than they are: the
  ///   caller must not use them.
  @discardableResult
  public mutating func update(milliseconds: Int64, sentAt: Int64, now: Int64, wallTime: Int64) -> Int64? {
    let found = milliseconds - (sentAt + (now - sentAt) / 2) / 1_000_000
    let before = lastOffset
    (offset, lastOffset) = (found, found)
    measuredAt = now
    difference = milliseconds / 1_000 - wallTime
    guard let before, before - found > StoreClock.leastStep else { return nil }
    return now / 1_000_000 + min(before, found + StoreClock.longestStep)
  }

  /// Discards the estimate: the connection is new, or the machine was suspended.
  public mutating func invalidate() { (offset, difference) = (nil, nil) }

  /// Milliseconds of the store's clock; nil if unknown.
  public func time(at now: Int64) -> Int64? { offset.map { $0 + now / 1_000_000 } }

  /// Whether the estimate is missing or older than `lifetime`.
  public func isDue(at now: Int64) -> Bool { offset == nil || now - measuredAt >= StoreClock.lifetime }

  /// Whether the store's clock differs by more than `mostDifference` from this machine's; false if unknown.
  public var isOff: Bool { difference.map { abs($0) > StoreClock.mostDifference } ?? false }
}
