// RefresherSettings.swift -- the settings and the counters of the refresher.

import Refresh

/// The settings of the refresher.
package struct RefresherSettings {
  var timing: RefreshTiming
  var heat: HeatPolicy
  /// Billing units, of providers that bill.
  var unitsPerMinute: Int
  var unitsPerDay: Int
  /// Transfers to upstreams that bill nothing.
  var transfersPerMinute: Int
  /// Whether several names go in one transfer where the provider can.
  var batches: Bool

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

/// The counters of the refresher.
package struct RefreshCounters: Sendable, Equatable {
  /// Transfers, and questions to LocalDNS.
  package var transfers: UInt64 = 0
  /// Answers that came.
  package var answers: UInt64 = 0
  /// Questions without an answer.
  package var failures: UInt64 = 0
  /// Transfers that the budget forbade.
  package var overBudget: UInt64 = 0

  /// Creates counters of zero.
  package init() {}
}
