// AccountUnits.swift -- connects one provider's billing units to the fleet's count.

import Fleet
import Upstreams

/// Reports one account's units to the fleet. Resolver's loop only.
package final class AccountUnits: UnitSharing {
  private weak var fleet: FleetLevel?
  private let account: String

  /// - Parameters:
  ///   - account: identifies the provider's account; contains no colon.
  ///   - isLimited: whether the provider has `units_per_day`; then the fleet's total is read before each lookup.
  package init(_ fleet: FleetLevel, account: String, isLimited: Bool) {
    self.fleet = fleet
    self.account = account
    if isLimited { fleet.limitedAccounts.insert(account) }
  }

  package func spent(own: Int, day: Int64) { fleet?.spent(own: own, day: day, of: account) }

  package func othersUnits(own: Int, day: Int64) -> Int { fleet?.othersUnits(own: own, day: day, of: account) ?? 0 }
}
