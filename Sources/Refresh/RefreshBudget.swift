// RefreshBudget.swift -- limits the cost of refreshing per minute and per day; a share is reserved for `refresh.keep`.
//
// Pure: the caller passes in the clock, in nanoseconds.

/// A budget for any 60 seconds and any 24 hours. It counts units: billing units, or transfers.
///
/// A unit counts for up to one second longer than a minute, and for up to five minutes longer than a day. A clock that
/// jumps ahead ages what was spent; one that goes back stands still. A budget takes about 3,000 octets, however much is
/// spent.
public struct RefreshBudget: Sendable {
  /// Which names a refresh is for.
  public enum Purpose: Sendable {
    /// Names in `refresh.keep`: they may spend the reserve and everything that is left besides.
    case keepList
    /// Names in use: they may spend everything but the reserve.
    case inUse
  }

  /// What was spent in one bucket of time; saved for the next start.
  public struct Spent: Sendable {
    /// The age of the bucket's beginning, in nanoseconds.
    public var age: Int64
    /// All units that were spent.
    public var units: Int
    /// Of those, the units for names in `refresh.keep`.
    public var keepListUnits: Int
  }

  /// A limit, and what is spent of it.
  private struct Window: Sendable {
    var limit: Int
    var all: SlidingWindow
    /// The part of `all` that names in use have spent.
    var inUse: SlidingWindow

    init(limit: Int, width: Int64, span: Int) {
      self.limit = limit
      all = SlidingWindow(limit: limit, width: width, span: span)
      inUse = all
    }

    /// Returns how much may be spent now; `reserve` is for names in `refresh.keep` only.
    mutating func room(_ purpose: Purpose, reserve: Int, now: Int64) -> Int {
      let left = limit - all.total(now: now)
      return purpose == .keepList ? left : min(left, limit - reserve - inUse.total(now: now))
    }

    mutating func count(_ units: Int, _ purpose: Purpose, now: Int64) {
      all.count(units, now: now)
      if purpose == .inUse { inUse.count(units, now: now) }
    }
  }

  private var minute: Window
  /// Uses a clock that is a day ahead, so that units spent before the machine started have a time too.
  private var day: Window

  private static let oneDay: Int64 = 86_400_000_000_000
  private static let dayWidth: Int64 = 300_000_000_000

  /// What the names in `refresh.keep` need at most, in units per minute; 0 if there are none. At most half of a limit
  /// is reserved for them.
  public var needOfKeepList = 0

  /// - Parameters:
  ///   - perMinute: units in any 60 s; 0 forbids all.
  ///   - perDay: units in any 24 h; 0 forbids all, nil sets no limit.
  /// - Precondition: neither is negative.
  public init(perMinute: Int, perDay: Int?) {
    minute = Window(limit: perMinute, width: 1_000_000_000, span: 60)
    day = Window(limit: perDay ?? Int(UInt32.max), width: RefreshBudget.dayWidth, span: 288)
  }

  /// Reserves half of a limit, but no more than is needed.
  private func reserve(_ limit: Int, minutes: Int) -> Int { min((limit + 1) / 2, needOfKeepList * minutes) }

  /// Returns how many units may be spent now for this purpose; negative if more is spent than the limits allow.
  public mutating func room(_ purpose: Purpose, now: Int64) -> Int {
    let reserves = (minute: reserve(minute.limit, minutes: 1), day: reserve(day.limit, minutes: 1440))
    return min(
      minute.room(purpose, reserve: reserves.minute, now: now),
      day.room(purpose, reserve: reserves.day, now: RefreshBudget.ahead(now)))
  }

  /// How much names in use may spend in a minute in which nothing else is spent.
  public var limitInUse: Int { minute.limit - reserve(minute.limit, minutes: 1) }

  /// Spends units. Returns false, and spends nothing, if fewer are left.
  public mutating func take(_ units: Int = 1, _ purpose: Purpose = .inUse, now: Int64) -> Bool {
    guard units <= room(purpose, now: now) else { return false }
    minute.count(units, purpose, now: now)
    day.count(units, purpose, now: RefreshBudget.ahead(now))
    return true
  }

  /// Returns what was spent in the last day, oldest bucket first, to be saved for the next start.
  public mutating func spentOfDay(now: Int64) -> [Spent] {
    let ahead = RefreshBudget.ahead(now)
    let inUse = Dictionary(uniqueKeysWithValues: day.inUse.events(now: ahead).map { ($0.begin, $0.count) })
    return day.all.events(now: ahead).map {
      Spent(age: max(ahead - $0.begin, 0), units: $0.count, keepListUnits: $0.count - inUse[$0.begin, default: 0])
    }
  }

  /// Counts what an earlier run of the daemon spent; ignores an age outside the last day.
  public mutating func restore(_ spent: Spent, now: Int64) {
    guard spent.age >= 0, spent.age <= RefreshBudget.oneDay + RefreshBudget.dayWidth else { return }
    let ahead = RefreshBudget.ahead(now)
    day.all.restore(spent.units, at: ahead - spent.age, now: ahead)
    day.inUse.restore(spent.units - min(max(spent.keepListUnits, 0), spent.units), at: ahead - spent.age, now: ahead)
  }

  private static func ahead(_ now: Int64) -> Int64 { min(now, .max - oneDay) + oneDay }
}

extension RefreshBudget.Spent {
  /// `keepList` is the part of `units` for names in `refresh.keep`, `age` is in nanoseconds.
  public init(_ units: Int, keepList: Int = 0, age: Int64) {
    self.init(age: age, units: units, keepListUnits: keepList)
  }
}
