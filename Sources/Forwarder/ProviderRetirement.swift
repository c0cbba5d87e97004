// ProviderRetirement.swift -- a provider that a reload takes out, or puts another one in the place of.
//
// Resolver's loop only.

import EventLoop
import ProviderPool

extension HTTPDNSProvider {
  /// What is under way goes on. Who has the name from now on takes over the numbers and the day's units, and pays for what
  /// is under way; failures are nothing to an heir whose settings may have been changed because of them.
  func retire(for heir: (any Upstream)?) {
    isRetired = true
    probeTimer?.cancel()
    probeTimer = nil
    guard let heir = heir as? HTTPDNSProvider else {
      ledger?.leave(name, budget)
      return
    }
    self.heir = heir
    heir.takeOver(counters, budget)
  }

  private func takeOver(_ counters: ProviderCounters, _ budget: UnitBudget) {
    self.counters = counters
    self.budget = UnitBudget(perDay: settings.unitsPerDay, day: budget.day, spent: budget.spent)
  }
}
