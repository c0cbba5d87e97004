// AccountUnits.swift -- connects one provider's billing units to the fleet's count.

import Fleet
import Upstreams

/// Reports one account's units to the fleet. Resolver's loop only.
package final class AccountUnits: UnitSharing {
  private weak var units: UnitCounter?
  private let account: String

  /// - Parameters:
  ///   - account: identifies the provider's account; contains no colon.
  ///   - isLimited: whether the provider has `units_per_day`; then the fleet's total is read before each lookup.
  package init(_ units: UnitCounter, account: String, isLimited: Bool) {
    self.units = units
    self.account = account
    if isLimited { units.limitedAccounts.insert(account) }
  }

  package func spent(own: Int, day: Int64) { units?.spent(own: own, day: day, of: account) }

  package func othersUnits(own: Int, day: Int64) -> Int { units?.othersUnits(own: own, day: day, of: account) ?? 0 }
}
