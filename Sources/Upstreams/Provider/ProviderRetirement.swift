// ProviderRetirement.swift -- a provider that a reload takes out, or puts another one in the place of.
//
// Resolver's loop only.

import EventLoop

/// A provider that counts its transfers. Whoever has its name after a reload is given the same counters.
protocol CountingUpstream: Upstream {
  var counters: ProviderCounters { get set }
}

extension HTTPDNSProvider: CountingUpstream {
  /// What is under way goes on. Who has the name from now on takes over the day's units, and pays for what
  /// is under way, and knows which questions were answered; failures are nothing to an heir whose settings may have been
  /// changed because of them.
  func retire(for heir: (any Upstream)?) {
    isRetired = true
    probeTimer?.cancel()
    probeTimer = nil
    guard let heir = heir as? HTTPDNSProvider else {
      ledger?.leave(name, budget)
      return
    }
    self.heir = heir
    heir.takeOver(budget)
    heir.good.inherit(good)
  }

  private func takeOver(_ budget: UnitBudget) {
    self.budget = UnitBudget(perDay: settings.unitsPerDay, day: budget.day, spent: budget.spent)
  }
}

extension TableProvider: CountingUpstream {}
