// RefresherSettings.swift -- the settings and the counters of the refresher.

import Refresh

/// The settings of the refresher.
package struct RefresherSettings {
  var timing: RefreshTiming
  var heat: HeatPolicy
  /// Billing units per minute and per day, of providers that bill.
  var unitsPerMinute: Int
  var unitsPerDay: Int
  /// Transfers per minute to upstreams that do not bill.
  var transfersPerMinute: Int
  /// Whether several names may share a transfer if the provider supports that.
  var batches: Bool

  /// Creates settings; a day with 0 units switches refreshing off.
  package init(
    timing: RefreshTiming, heat: HeatPolicy, unitsPerMinute: Int, unitsPerDay: Int, transfersPerMinute: Int,
    batches: Bool
  ) {
    self.timing = timing
    self.heat = heat
    self.unitsPerMinute = unitsPerMinute
    self.unitsPerDay = unitsPerDay
    self.transfersPerMinute = transfersPerMinute
    self.batches = batches
  }

  var limits: RefreshLimits {
    RefreshLimits(unitsPerMinute: unitsPerMinute, unitsPerDay: unitsPerDay, transfersPerMinute: transfersPerMinute)
  }
}

/// The counters of the refresher. They only grow.
package struct RefreshCounters: Sendable, Equatable {
  /// Transfers to providers, and questions to LocalDNS.
  package var transfers: UInt64 = 0
  /// Questions with a new answer.
  package var answers: UInt64 = 0
  /// Questions without an answer.
  package var failures: UInt64 = 0
  /// Transfers that the budget stopped, in whole or in part.
  package var overBudget: UInt64 = 0

  /// Creates counters of 0.
  package init() {}
}
