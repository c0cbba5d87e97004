// RequestLimit.swift -- how many transfers a second and billing units a day a provider may be asked for.
//
// Pure: the clocks are passed in.

/// A token bucket: that many transfers a second, and no more than a second's worth at once.
public struct RequestLimit: Sendable {
  private let rate: Int64
  /// Billionths of a token.
  private var tokens: Int64
  private var last: Int64?

  /// A full bucket.
  ///
  /// - Parameter rate: transfers a second; 0 for no limit.
  public init(perSecond rate: Int) {
    self.rate = Int64(rate)
    tokens = Int64(rate) * billion
  }

  /// Takes a token; false where there is none.
  ///
  /// - Parameter now: nanoseconds of a clock that never goes back.
  public mutating func take(now: Int64) -> Bool {
    guard rate > 0 else { return true }
    let elapsed = min(now - (last ?? now), billion)
    last = now
    tokens = min(tokens + elapsed * rate, rate * billion)
    guard tokens >= billion else { return false }
    tokens -= billion
    return true
  }
}

/// What has been spent today, against what may be.
public struct UnitBudget: Hashable, Sendable {
  /// Units a day; 0 for no limit.
  public let perDay: Int
  /// The day, in days since 1970 (UTC), as far as it has been seen.
  public private(set) var day: Int64
  /// Units of that day.
  public private(set) var spent: Int

  /// A budget of which some may have been spent already.
  public init(perDay: Int, day: Int64 = 0, spent: Int = 0) {
    self.perDay = perDay
    self.day = day
    self.spent = spent
  }

  /// Whether there is something left.
  ///
  /// - Parameter unixTime: seconds since 1970. What was spent is forgotten when the day goes on, not when the clock is set
  ///   back.
  public mutating func isOpen(unixTime: Int64) -> Bool {
    turn(unixTime)
    return perDay == 0 || spent < perDay
  }

  /// Counts units.
  public mutating func spend(_ units: Int, unixTime: Int64) {
    turn(unixTime)
    spent += units
  }

  private mutating func turn(_ unixTime: Int64) {
    let today = unixTime / 86_400
    if today > day { spent = 0 }
    day = today
  }
}

private let billion: Int64 = 1_000_000_000
