// AccountUnits.swift -- one provider's part in the units of a fleet.

import Upstreams

/// Passes a provider's units on to the fleet. Resolver's loop only.
package final class AccountUnits: UnitSharing {
  private weak var fleet: FleetLevel?
  private let account: String

  /// - Parameters:
  ///   - account: stands for the provider's account; without a colon.
  ///   - isLimited: whether the day's units have a limit.
  package init(_ fleet: FleetLevel, account: String, isLimited: Bool) {
    self.fleet = fleet
    self.account = account
    if isLimited { fleet.limitedAccounts.insert(account) }
  }

  package func spent(own: Int, day: Int64) { fleet?.spent(own: own, day: day, of: account) }

  package func othersUnits(own: Int, day: Int64) -> Int { fleet?.othersUnits(own: own, day: day, of: account) ?? 0 }
}
