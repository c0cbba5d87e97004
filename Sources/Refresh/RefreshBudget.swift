// RefreshBudget.swift -- how many transfers refreshing may cause, in any minute and in any day.
//
// Pure: driven by a clock that is passed in, in nanoseconds.

/// A budget that holds in every minute and in every day, wherever they begin.
///
/// A transfer counts for up to a second longer than a minute, and for up to five minutes longer than a day. A clock that
/// jumps ahead only lets what was spent grow old; one that goes back stands still. It takes about 1,400 octets, whatever
/// is spent.
public struct RefreshBudget: Sendable {
  private var minute: SlidingWindow
  /// By a clock that is a day ahead: what was spent before the machine started has a time, too.
  private var day: SlidingWindow

  private static let oneDay: Int64 = 86_400_000_000_000
  private static let dayWidth: Int64 = 300_000_000_000

  /// A budget of which nothing is spent.
  ///
  /// - Parameters:
  ///   - perMinute: transfers in any 60 s; 0 for none at all.
  ///   - perDay: transfers in any 24 h; 0 for none at all.
  /// - Precondition: neither is negative.
  public init(perMinute: Int, perDay: Int) {
    minute = SlidingWindow(limit: perMinute, width: 1_000_000_000, span: 60)
    day = SlidingWindow(limit: perDay, width: RefreshBudget.dayWidth, span: 288)
  }

  /// Spends a transfer; false, and nothing is spent, where none is left.
  public mutating func take(now: Int64) -> Bool {
    guard minute.isOpen(now: now), day.isOpen(now: RefreshBudget.ahead(now)) else { return false }
    minute.count()
    day.count()
    return true
  }

  /// When `take(now:)` will say yes again: `now` where it would at once, `Int64.max` where it never will.
  public mutating func nextOpening(now: Int64) -> Int64 {
    let opening = day.nextOpening(now: RefreshBudget.ahead(now))
    return max(minute.nextOpening(now: now), opening == .max ? .max : opening - RefreshBudget.oneDay)
  }

  /// Transfers of the day before now, for the program's next run: how many, and how long ago at most, in nanoseconds.
  public mutating func spentOfDay(now: Int64) -> [(age: Int64, transfers: Int)] {
    day.events(now: RefreshBudget.ahead(now)).map { (max(RefreshBudget.ahead(now) - $0.begin, 0), $0.count) }
  }

  /// Counts transfers of the program's last run, which were made so long ago.
  public mutating func restore(_ transfers: Int, age: Int64, now: Int64) {
    guard age >= 0, age <= RefreshBudget.oneDay + RefreshBudget.dayWidth else { return }
    day.restore(transfers, at: RefreshBudget.ahead(now) - age, now: RefreshBudget.ahead(now))
  }

  private static func ahead(_ now: Int64) -> Int64 { min(now, .max - oneDay) + oneDay }
}
