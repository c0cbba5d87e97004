// FleetUnits.swift -- a provider's billing units of one day, summed over all daemons of a fleet.
//
// The store has one counter for each account and day. Every daemon adds what it has spent since it last did, and the reply is
// the fleet's total. If the store has lost its data, every daemon adds its whole count again.

import Files

/// What one daemon has to report of one provider, and what it knows of the fleet.
public struct FleetUnits: Sendable {
  /// What is added to the counter of a day.
  public struct Increment: Hashable, Sendable {
    /// Days since 1970.
    public var day: Int64
    /// Units.
    public var units: Int
    /// The number of losses of the store that are known.
    fileprivate var losses: Int
  }

  /// Days since 1970.
  public private(set) var day: Int64 = 0
  /// This daemon's units on that day.
  public private(set) var own = 0
  /// Those of them that the store has counted, or is about to.
  private var reported = 0
  private var losses = 0
  /// What was added and is not confirmed yet; nil for nothing.
  private var pending: Increment?
  /// The fleet's units on that day by the last reply; 0 before the first one.
  public private(set) var total = 0

  /// Creates a count of nothing.
  public init() {}

  /// Creates the count of a daemon that has reported before.
  ///
  /// - Parameters:
  ///   - counted: its units that the store has counted.
  ///   - day: the day that they are of.
  ///   - total: the fleet's units on that day, as far as this daemon knew.
  public init(counted: Int, day: Int64, total: Int = 0) {
    (self.day, own, reported, self.total) = (day, counted, counted, FleetUnits.believed(total))
  }

  /// This daemon's units on that day that the store has counted for certain.
  public var counted: Int { reported - (pending.map { $0.day == day && $0.losses == losses ? $0.units : 0 } ?? 0) }

  /// The day's units that count against the limit: the fleet's, or this daemon's own while it knows no better. What this
  /// daemon has spent since the last reply is added.
  public var spent: Int { max(own, total + max(0, own - reported) + (pending?.units ?? 0)) }

  /// Notes this daemon's count.
  ///
  /// - Parameters:
  ///   - own: its units on the day.
  ///   - day: days since 1970.
  public mutating func update(own: Int, day: Int64) {
    if day != self.day { (self.day, reported, total) = (day, 0, 0) }
    self.own = own
    // A count that was corrected downwards has nothing to take back.
    reported = min(reported, own)
  }

  /// Whether there is something to be added that is not on its way.
  private var hasMore: Bool { pending == nil && own > reported }

  /// What is to be added now; nil if there is nothing, or the last addition is not confirmed yet.
  public mutating func next() -> Increment? {
    guard hasMore else { return nil }
    let increment = Increment(day: day, units: own - reported, losses: losses)
    pending = increment
    reported = own
    return increment
  }

  /// The store has counted it.
  ///
  /// - Parameter total: the counter's value.
  public mutating func counted(_ increment: Increment, total: Int) {
    pending = nil
    guard increment.day == day, increment.losses == losses else { return }
    self.total = FleetUnits.believed(total)
  }

  /// The counter was read.
  ///
  /// - Parameters:
  ///   - total: its value.
  ///   - day: the day that it is of.
  public mutating func received(total: Int, day: Int64) {
    if day > self.day { update(own: 0, day: day) }
    if day == self.day { self.total = FleetUnits.believed(total) }
  }

  private static func believed(_ total: Int) -> Int { total.clamped(to: NumberRange.units) }

  /// It is not known whether the store has counted it: better twice than never.
  public mutating func failed(_ increment: Increment) {
    pending = nil
    guard increment.day == day, increment.losses == losses else { return }
    reported = max(0, reported - increment.units)
  }

  /// The store is another one than before, or has lost its data: what it has not counted is added again.
  ///
  /// - Parameter counted: this daemon's units on the day that it has counted.
  public mutating func storeLostData(counted: Int = 0) {
    losses += 1
    (reported, total) = (min(own, counted), 0)
  }
}
