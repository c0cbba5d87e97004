// SharedUnits.swift -- a daily limit that counts for all daemons of a fleet.

import Configuration
import EventLoop

/// Adds up the units of an account over all daemons of a fleet. Resolver's loop only.
package protocol UnitSharing: AnyObject {
  /// Notes what this daemon has spent on a day, in days since 1970.
  func spent(own: Int, day: Int64)
  /// The units that the other daemons have spent on that day, as far as is known.
  func othersUnits(own: Int, day: Int64) -> Int
}

extension HTTPDNSProvider {
  func share(units: (any UnitSharing)?) {
    loop.assertCurrent()
    sharing = units
    guard let units, budget.spent > 0 else { return }
    units.spent(own: budget.spent, day: budget.day)
  }

  /// The units of the day that the other daemons of the fleet have spent; 0 without a limit.
  var othersUnits: Int {
    guard settings.unitsPerDay > 0, let sharing else { return 0 }
    // The day may have turned.
    _ = budget.isOpen(unixTime: loop.wallTime, now: loop.now.nanoseconds)
    return sharing.othersUnits(own: budget.spent, day: budget.day)
  }

  /// Whether the day has units left besides those of transfers in flight.
  var hasUnits: Bool {
    if let heir { return heir.hasUnits }
    return budget.isOpen(
      unixTime: loop.wallTime, now: loop.now.nanoseconds, reserve: unitsInFlight + othersUnits)
  }

  /// Whether a request may be sent once more, within `units_per_day` and `requests_per_second`; takes its share of the second.
  func maySend() -> Bool { heir?.maySend() ?? (hasUnits && limit.take(now: loop.now.nanoseconds)) }

  /// Whose limit it is, for messages.
  var limitOwner: String { sharing == nil ? "" : " for the fleet" }

  /// The highest milestone that the fleet's units have reached and that was not logged on this day; or nil.
  func newMilestone() -> Int? {
    guard settings.unitsPerDay > 0, sharing != nil else { return nil }
    let total = budget.spent + othersUnits
    if budget.day != milestone.day { milestone = (budget.day, 0) }
    let reached = UnitBudget.milestones.last { total >= max(1, settings.unitsPerDay * $0 / 100) } ?? 0
    guard reached > milestone.percent else { return nil }
    milestone.percent = reached
    return reached
  }
}
