// StoreClock.swift -- the store's clock, by which all daemons of a fleet agree on the age of a value.
//
// Pure: the caller passes in the monotonic clock, in nanoseconds.

import Files

/// An estimate of the store's clock, from its answers to `TIME` and our monotonic clock.
public struct StoreClock: Sendable {
  /// By how much the store's clock may differ from this machine's wall clock, in seconds: a store that lies about the time
  /// could make old answers live.
  public static let mostDifference: Int64 = 300
  /// How long an estimate counts, in nanoseconds.
  public static let lifetime: Int64 = 3_600_000_000_000

  /// Smaller steps are errors of the estimate, in milliseconds.
  public static let leastStep: Int64 = 1_000
  /// The longest step back that is believed, in milliseconds: of values from until then none is used.
  public static let longestStep = 2_000 * mostDifference
  /// Times that a clock may show, in milliseconds: until the year 9999.
  public static let times = NumberRange.milliseconds

  /// Milliseconds of the store's clock at 0 of the monotonic clock.
  private var offset: Int64?
  /// The same as it was last known.
  private var lastOffset: Int64?
  private var measuredAt: Int64 = 0
  /// By how many seconds the store's clock is ahead of this machine's; nil if it is not known.
  public private(set) var difference: Int64?

  /// Creates a clock that is not known yet.
  public init() {}

  /// Notes an answer to `TIME`.
  ///
  /// - Parameters:
  ///   - milliseconds: of the store's clock.
  ///   - sentAt: when it was asked, in nanoseconds; it is assumed to have answered halfway.
  ///   - now: nanoseconds of the monotonic clock.
  ///   - wallTime: seconds since 1970 by this machine.
  /// - Returns: the time that the clock would have now if it had not gone back; nil if it has not. By the clock as it is now
  ///   values from before that seem younger than they are.
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

  /// The clock has to be asked again: the connection is new, or this machine has slept.
  public mutating func invalidate() { (offset, difference) = (nil, nil) }

  /// Milliseconds of the store's clock; nil if it is not known.
  public func time(at now: Int64) -> Int64? { offset.map { $0 + now / 1_000_000 } }

  /// Whether the store has to be asked for its time.
  public func isDue(at now: Int64) -> Bool { offset == nil || now - measuredAt >= StoreClock.lifetime }

  /// Whether the store's clock is too far from this machine's.
  public var isOff: Bool { difference.map { abs($0) > StoreClock.mostDifference } ?? false }
}
