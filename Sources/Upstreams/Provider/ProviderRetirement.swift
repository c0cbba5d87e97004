// ProviderRetirement.swift -- retires a provider that a reload removes or replaces.
//
// Resolver's loop only.

import Configuration
import EventLoop

extension HTTPDNSProvider {
  /// Transfers in flight finish. The heir takes over the day's units and pays for transfers in flight. It does not inherit
  /// failures, since the settings may have been changed because of them.
  func retire(for heir: (any Upstream)?) {
    loop.assertCurrent()
    isRetired = true
    serverTimer.cancel()
    guard let heir = heir as? HTTPDNSProvider else {
      ledger?.leave(name, budget)
      return
    }
    self.heir = heir
    heir.takeOver(budget)
    (heir.unitsInFlight, unitsInFlight) = (heir.unitsInFlight + unitsInFlight, 0)
  }

  /// Who pays for its transfers: itself, or the latest heir.
  var payer: HTTPDNSProvider { heir?.payer ?? self }

  private func takeOver(_ budget: UnitBudget) {
    self.budget = UnitBudget(perDay: settings.unitsPerDay, day: budget.day, spent: budget.spent)
    // The predecessor had no ledger if it had no limit.
    if budget.spent > 0 { ledger?.didSpend() }
  }
}
