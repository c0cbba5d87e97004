// RequestLimit.swift -- limits transfers per second and billing units per day of a provider.
//
// Pure: times are parameters.

import Files

/// A token bucket of transfers that holds one second's worth.
package struct RequestLimit: Sendable {
  private let rate: Int64
  /// Billionths of a token.
  private var tokens: Int64
  private var last: Int64?

  /// Creates a full bucket.
  ///
  /// - Parameter rate: transfers per second; 0 for no limit.
  package init(perSecond rate: Int) {
    self.rate = Int64(rate)
    tokens = Int64(rate) * billion
  }

  /// Takes a token; returns false if no token is left.
  ///
  /// - Parameter now: nanoseconds of a monotonic clock.
  package mutating func take(now: Int64) -> Bool {
    guard rate > 0 else { return true }
    fill(now)
    guard tokens >= billion else { return false }
    tokens -= billion
    return true
  }

  /// Whether a token is available for background work, which leaves half of the bucket to clients.
  package mutating func hasSpare(now: Int64) -> Bool {
    guard rate > 0 else { return true }
    fill(now)
    return tokens - billion >= rate / 2 * billion
  }

  private mutating func fill(_ now: Int64) {
    let elapsed = min(now - (last ?? now), billion)
    last = now
    tokens = min(tokens + elapsed * rate, rate * billion)
  }
}

/// Billing units spent today, and their limit.
///
/// A day begins when the clock passes midnight, not when the clock is set, so that a jumping clock does not start a
/// second day. While the clock shows a past day, units keep counting, and a new day begins after 24 hours of boot time.
package struct UnitBudget: Hashable, Sendable {
  /// Units per day; 0 for no limit.
  package let perDay: Int
  /// The latest day seen, in days since 1970 (UTC).
  package private(set) var day: Int64
  /// Units spent on that day.
  package private(set) var spent: Int
  /// Units since the start of counting, while the day is not certain.
  private var undated = 0
  /// Whether the clock has shown `day` since the start of counting.
  private var isDated = false
  /// The start of the day, or of counting, in nanoseconds of boot time.
  private var beginning: Int64?
  /// The wall clock minus boot time at the last call, in seconds.
  private var clockOffset: Int64 = 0

  /// The percentages of a day's units that are reported.
  package static let milestones = [50, 80, 100]
  /// The largest step in seconds that counts as a correction of the clock, not as setting it.
  private static let mostCorrection: Int64 = 3600
  private static let dayLength: Int64 = 86_400

  /// Creates a budget, of which a part may be spent already.
  package init(perDay: Int, day: Int64 = 0, spent: Int = 0) {
    self.perDay = perDay
    self.day = day.clamped(to: NumberRange.days)
    self.spent = spent.clamped(to: NumberRange.units)
  }

  /// Whether units are left.
  ///
  /// - Parameters:
  ///   - unixTime: seconds since 1970.
  ///   - now: nanoseconds of boot time.
  ///   - reserve: units that must be left over.
  package mutating func isOpen(unixTime: Int64, now: Int64, reserve: Int = 0) -> Bool {
    turn(unixTime, now)
    return perDay == 0 || spent < perDay - min(max(reserve, 0), perDay)
  }

  /// Counts units.
  ///
  /// - Returns: the highest of `milestones` that these units reach; nil if they reach none.
  @discardableResult
  package mutating func spend(_ units: Int, unixTime: Int64, now: Int64) -> Int? {
    turn(unixTime, now)
    let before = spent
    spent = (spent + units).clamped(to: NumberRange.units)
    undated = isDated ? 0 : (undated + units).clamped(to: NumberRange.units)
    guard perDay > 0 else { return nil }
    return UnitBudget.milestones.last { milestone in
      let threshold = UnitBudget.threshold(milestone, of: perDay)
      return before < threshold && spent >= threshold
    }
  }

  /// The units at which a percentage of those of a day is reached.
  package static func threshold(_ percent: Int, of perDay: Int) -> Int {
    // Without a product that overflows.
    let (hundreds, rest) = perDay.quotientAndRemainder(dividingBy: 100)
    return hundreds * percent + (rest * percent + 99) / 100
  }

  private mutating func turn(_ unixTime: Int64, _ now: Int64) {
    let today = (unixTime / UnitBudget.dayLength).clamped(to: NumberRange.days)
    let offset = unixTime - now / 1_000_000_000
    defer {
      clockOffset = offset
      if today == day { isDated = true }
    }
    guard let beginning else {
      self.beginning = now
      if today > day { (day, spent) = (today, 0) }
      return
    }
    let wasSet = abs(offset - clockOffset) > UnitBudget.mostCorrection
    if today > day {
      // A wrong clock may be corrected once. Setting a clock that was right does not start a second day.
      if !wasSet || !isDated { begin(now, spent: wasSet ? undated : 0) }
      day = today
    }
    if now - beginning >= UnitBudget.dayLength * 1_000_000_000, self.beginning == beginning { begin(now, spent: 0) }
  }

  private mutating func begin(_ now: Int64, spent: Int) {
    beginning = now
    self.spent = spent
    undated = 0
  }
}

private let billion: Int64 = 1_000_000_000
