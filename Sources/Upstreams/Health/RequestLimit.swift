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
    fill(now)
    guard tokens >= billion else { return false }
    tokens -= billion
    return true
  }

  /// Whether a token may be taken for what nobody waits for: half of a second's tokens are left to those who wait.
  public mutating func hasSpare(now: Int64) -> Bool {
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

/// What has been spent today, against what may be.
///
/// A day begins when the clock passes midnight, and not when it is set: a clock that jumps opens no second day. While it
/// says a day that is over already, units count on, and a new day begins after 24 hours of boot time.
public struct UnitBudget: Hashable, Sendable {
  /// Units a day; 0 for no limit.
  public let perDay: Int
  /// The latest day that has been seen, in days since 1970 (UTC).
  public private(set) var day: Int64
  /// Units of that day.
  public private(set) var spent: Int
  /// Units since counting began, as long as the clock has not said what day that was.
  private var undated = 0
  /// Whether the clock has said since counting began that it is `day`.
  private var isDated = false
  /// When the day began, or counting did, in nanoseconds of boot time.
  private var beginning: Int64?
  /// The wall clock at the last look, less boot time, in seconds.
  private var clockOffset: Int64 = 0

  /// More units than any provider sells in a day: what a file says beyond it is not believed.
  public static let mostUnits = 1_000_000_000_000
  /// Parts of a day's units, in per cent, that a person wants to hear of.
  public static let milestones = [50, 80, 100]
  /// Seconds by which a clock may be corrected in one step without being taken for set.
  private static let mostCorrection: Int64 = 3600
  private static let dayLength: Int64 = 86_400

  /// A budget of which some may have been spent already.
  public init(perDay: Int, day: Int64 = 0, spent: Int = 0) {
    self.perDay = perDay
    self.day = day
    self.spent = min(max(spent, 0), UnitBudget.mostUnits)
  }

  /// Whether there is something left.
  ///
  /// - Parameters:
  ///   - unixTime: seconds since 1970.
  ///   - now: nanoseconds of boot time.
  ///   - reserve: units that are not for the asking.
  public mutating func isOpen(unixTime: Int64, now: Int64, reserve: Int = 0) -> Bool {
    turn(unixTime, now)
    return perDay == 0 || spent < perDay - min(max(reserve, 0), perDay)
  }

  /// Counts units.
  ///
  /// - Returns: the highest of `milestones` that was reached by these units; nil where none was.
  @discardableResult
  public mutating func spend(_ units: Int, unixTime: Int64, now: Int64) -> Int? {
    turn(unixTime, now)
    let before = spent
    spent = min(spent + units, UnitBudget.mostUnits)
    undated = isDated ? 0 : min(undated + units, UnitBudget.mostUnits)
    guard perDay > 0 else { return nil }
    return UnitBudget.milestones.last { milestone in
      let threshold = max(1, perDay.multipliedReportingOverflow(by: milestone).partialValue / 100)
      return before < threshold && spent >= threshold
    }
  }

  private mutating func turn(_ unixTime: Int64, _ now: Int64) {
    let today = unixTime / UnitBudget.dayLength
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
      // A clock that was wrong until now may say so once; one that was right opens no second day by being set.
      if !wasSet || !isDated {
        begin(now, spent: wasSet ? undated : 0)
      }
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
