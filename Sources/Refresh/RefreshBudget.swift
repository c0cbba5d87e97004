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
  private var day: SlidingWindow

  /// A budget of which nothing is spent.
  ///
  /// - Parameters:
  ///   - perMinute: transfers in any 60 s; 0 for none at all.
  ///   - perDay: transfers in any 24 h; 0 for none at all.
  /// - Precondition: neither is negative.
  public init(perMinute: Int, perDay: Int) {
    minute = SlidingWindow(limit: perMinute, width: 1_000_000_000, span: 60)
    day = SlidingWindow(limit: perDay, width: 300_000_000_000, span: 288)
  }

  /// Spends a transfer; false, and nothing is spent, where none is left.
  public mutating func take(now: Int64) -> Bool {
    guard minute.isOpen(now: now), day.isOpen(now: now) else { return false }
    minute.count()
    day.count()
    return true
  }

  /// When `take(now:)` will say yes again: `now` where it would at once, `Int64.max` where it never will.
  public mutating func nextOpening(now: Int64) -> Int64 {
    max(minute.nextOpening(now: now), day.nextOpening(now: now))
  }
}
