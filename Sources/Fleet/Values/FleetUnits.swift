// FleetUnits.swift -- a provider's billing units of one day, summed over all daemons of a fleet.
//
// The store has one counter per account and day. Each daemon adds the units that it has spent since its last increment;
// the reply is the fleet's total. If the store has lost its data, each daemon adds its whole count of the day again.

import Files

/// One account's units: this daemon's own, and the fleet's as far as this daemon knows.
public struct FleetUnits: Sendable {
  /// An addition to the counter of a day.
  public struct Increment: Hashable, Sendable {
    /// Days since 1970.
    public var day: Int64
    public var units: Int
    /// `FleetUnits.losses` when the increment was made.
    fileprivate var losses: Int
  }

  /// Days since 1970.
  public private(set) var day: Int64 = 0
  /// This daemon's units on that day.
  public private(set) var own = 0
  /// Those of `own` that the store has counted, or that are in flight.
  private var reported = 0
  /// How often the store has lost its data. Replies to increments from before a loss are ignored.
  private var losses = 0
  /// The increment in flight; nil for none.
  private var pending: Increment?
  /// The fleet's units on that day according to the last reply; 0 before the first one.
  public private(set) var total = 0

  /// Creates an empty count.
  public init() {}

  /// Creates the count of a daemon after a restart.
  ///
  /// - Parameters:
  ///   - counted: this daemon's units that the store has counted.
  ///   - day: days since 1970.
  ///   - total: the fleet's units on that day according to the last reply before the restart.
  public init(counted: Int, day: Int64, total: Int = 0) {
    (self.day, own, reported, self.total) = (day, counted, counted, FleetUnits.believed(total))
  }

  /// This daemon's units on that day that the store has confirmed.
  public var counted: Int { reported - (pending.map { $0.day == day && $0.losses == losses ? $0.units : 0 } ?? 0) }

  /// The day's units that count against the limit: the fleet's total and what this daemon has spent since the last
  /// reply, but at least this daemon's own.
  public var spent: Int { max(own, total + max(0, own - reported) + (pending?.units ?? 0)) }

  /// Sets this daemon's count; resets everything else if the day is another one.
  ///
  /// - Parameters:
  ///   - own: its units on the day.
  ///   - day: days since 1970.
  public mutating func update(own: Int, day: Int64) {
    if day != self.day { (self.day, reported, total) = (day, 0, 0) }
    self.own = own
    // After a correction downwards nothing is subtracted in the store.
    reported = min(reported, own)
  }

  /// Whether an increment can be sent: there are unreported units, and none is in flight.
  private var hasMore: Bool { pending == nil && own > reported }

  /// The increment to send now; nil if all units are reported or an increment is in flight. The caller must then call
  /// `counted(_:total:)` or `failed(_:)`.
  public mutating func next() -> Increment? {
    guard hasMore else { return nil }
    let increment = Increment(day: day, units: own - reported, losses: losses)
    pending = increment
    reported = own
    return increment
  }

  /// The store has confirmed an increment.
  ///
  /// - Parameter total: the counter's value.
  public mutating func counted(_ increment: Increment, total: Int) {
    pending = nil
    guard increment.day == day, increment.losses == losses else { return }
    self.total = FleetUnits.believed(total)
  }

  /// The counter was read; a later day replaces the current one.
  ///
  /// - Parameters:
  ///   - total: the counter's value.
  ///   - day: the counter's day.
  public mutating func received(total: Int, day: Int64) {
    if day > self.day { update(own: 0, day: day) }
    if day == self.day { self.total = FleetUnits.believed(total) }
  }

  /// The counter's value comes from the store and is untrusted: clamped, so that sums cannot overflow.
  private static func believed(_ total: Int) -> Int { total.clamped(to: NumberRange.units) }

  /// An increment got no valid reply, so it is unknown whether the store has counted it. It is added again: the
  /// limit holds if units are counted twice, but not if they are lost.
  public mutating func failed(_ increment: Increment) {
    pending = nil
    guard increment.day == day, increment.losses == losses else { return }
    reported = max(0, reported - increment.units)
  }

  /// The store was replaced or has lost its data: units that the new data does not contain are added again.
  ///
  /// - Parameter counted: this daemon's units on the day that the store has counted.
  public mutating func storeLostData(counted: Int = 0) {
    losses += 1
    (reported, total) = (min(own, counted), 0)
  }
}
