// RefreshBudget.swift -- how much refreshing may cost, in any minute and in any day; a part is for names that are kept always.
//
// Pure: driven by a clock that is passed in, in nanoseconds.

/// A budget that holds in every minute and in every day, wherever they begin. It counts units: billing units, or transfers.
///
/// A unit counts for up to a second longer than a minute, and for up to five minutes longer than a day. A clock that
/// jumps ahead only lets what was spent grow old; one that goes back stands still. It takes about 3,000 octets, whatever
/// is spent.
public struct RefreshBudget: Sendable {
  /// Whom a refresh is for.
  public enum Purpose: Sendable {
    /// Names that are always kept fresh: what is reserved is theirs, and the rest as far as it is there.
    case kept
    /// Names that are in use: everything but the reserve.
    case inUse
  }

  /// What was spent in a stretch of time, for the program's next run.
  public struct Spent: Sendable {
    /// How long ago at most, in nanoseconds.
    public var age: Int64
    /// Units in all.
    public var units: Int
    /// Those for names that are always kept fresh.
    public var keptUnits: Int
  }

  /// The two limits, and what is spent of either.
  private struct Window: Sendable {
    var limit: Int
    var all: SlidingWindow
    /// Of that, what was for names in use.
    var inUse: SlidingWindow

    init(limit: Int, width: Int64, span: Int) {
      self.limit = limit
      all = SlidingWindow(limit: limit, width: width, span: span)
      inUse = all
    }

    /// What may be spent of it, of which `reserve` is for kept names alone.
    mutating func room(_ purpose: Purpose, reserve: Int, now: Int64) -> Int {
      let left = limit - all.total(now: now)
      return purpose == .kept ? left : min(left, limit - reserve - inUse.total(now: now))
    }

    mutating func count(_ units: Int, _ purpose: Purpose, now: Int64) {
      all.count(units, now: now)
      if purpose == .inUse { inUse.count(units, now: now) }
    }
  }

  private var minute: Window
  /// By a clock that is a day ahead: what was spent before the machine started has a time, too.
  private var day: Window

  private static let oneDay: Int64 = 86_400_000_000_000
  private static let dayWidth: Int64 = 300_000_000_000

  /// What the kept names of a service need at most, in units of a minute: no more than half is reserved for them. 0 where
  /// there are none.
  public var needOfKept = 0

  /// A budget of which nothing is spent.
  ///
  /// - Parameters:
  ///   - perMinute: units in any 60 s; 0 for none at all.
  ///   - perDay: units in any 24 h; 0 for none at all, nil for no limit.
  /// - Precondition: neither is negative.
  public init(perMinute: Int, perDay: Int?) {
    minute = Window(limit: perMinute, width: 1_000_000_000, span: 60)
    day = Window(limit: perDay ?? Int(UInt32.max), width: RefreshBudget.dayWidth, span: 288)
  }

  /// Half of what may be spent, but no more than is needed.
  private func reserve(_ limit: Int, minutes: Int) -> Int { min((limit + 1) / 2, needOfKept * minutes) }

  /// What may be spent now.
  public mutating func room(_ purpose: Purpose, now: Int64) -> Int {
    let reserves = (minute: reserve(minute.limit, minutes: 1), day: reserve(day.limit, minutes: 1440))
    return min(
      minute.room(purpose, reserve: reserves.minute, now: now),
      day.room(purpose, reserve: reserves.day, now: RefreshBudget.ahead(now)))
  }

  /// What names in use may spend in a minute, where nothing else is spent.
  public var limitInUse: Int { minute.limit - reserve(minute.limit, minutes: 1) }

  /// What they have spent in the last one.
  public mutating func spentInUse(now: Int64) -> Int { minute.inUse.total(now: now) }

  /// Spends units; false, and nothing is spent, where there are not so many.
  public mutating func take(_ units: Int = 1, _ purpose: Purpose = .inUse, now: Int64) -> Bool {
    guard units <= room(purpose, now: now) else { return false }
    minute.count(units, purpose, now: now)
    day.count(units, purpose, now: RefreshBudget.ahead(now))
    return true
  }

  /// When a unit for a kept name can be had again: `now` where it can at once, `Int64.max` where it never can.
  public mutating func nextOpening(now: Int64) -> Int64 {
    let opening = day.all.nextOpening(now: RefreshBudget.ahead(now))
    return max(minute.all.nextOpening(now: now), opening == .max ? .max : opening - RefreshBudget.oneDay)
  }

  /// What was spent in the day before now, for the program's next run.
  public mutating func spentOfDay(now: Int64) -> [Spent] {
    let ahead = RefreshBudget.ahead(now)
    let inUse = Dictionary(uniqueKeysWithValues: day.inUse.events(now: ahead).map { ($0.begin, $0.count) })
    return day.all.events(now: ahead).map {
      Spent(age: max(ahead - $0.begin, 0), units: $0.count, keptUnits: $0.count - inUse[$0.begin, default: 0])
    }
  }

  /// Counts what the program's last run has spent.
  public mutating func restore(_ spent: Spent, now: Int64) {
    guard spent.age >= 0, spent.age <= RefreshBudget.oneDay + RefreshBudget.dayWidth else { return }
    let ahead = RefreshBudget.ahead(now)
    day.all.restore(spent.units, at: ahead - spent.age, now: ahead)
    day.inUse.restore(spent.units - min(max(spent.keptUnits, 0), spent.units), at: ahead - spent.age, now: ahead)
  }

  private static func ahead(_ now: Int64) -> Int64 { min(now, .max - oneDay) + oneDay }
}

extension RefreshBudget.Spent {
  /// So many units, so long ago.
  public init(_ units: Int, kept: Int = 0, age: Int64) { self.init(age: age, units: units, keptUnits: kept) }
}
