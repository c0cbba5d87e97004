// RefresherSettings.swift -- the settings and the counters of the refresher.

import Configuration
import EventLoop
import Refresh

package struct RefresherSettings {
  var timing: RefreshTiming
  var heat: HeatPolicy
  var limits: RefreshLimits
  /// Whether several names may share a transfer if the provider supports that.
  var batches: Bool

  /// A day with 0 units switches refreshing off.
  package init(timing: RefreshTiming, heat: HeatPolicy, limits: RefreshLimits, batches: Bool) {
    self.timing = timing
    self.heat = heat
    self.limits = limits
    self.batches = batches
  }

  package init(_ configuration: Configuration) {
    let refresh = configuration.refresh
    self.init(
      timing: RefreshTiming(
        fraction: refresh.at, minimumTTL: refresh.minTTL.nanoseconds, isShared: configuration.cache.redis != nil),
      heat: HeatPolicy(hotHits: refresh.hotHits, giveUpAfter: refresh.giveUpAfter),
      limits: RefreshLimits(
        unitsPerMinute: refresh.budgetPerMinute, unitsPerDay: refresh.budgetPerDay,
        transfersPerMinute: refresh.freePerMinute),
      batches: refresh.batch)
  }
}

/// What refreshing may cost.
package struct RefreshLimits: Equatable {
  /// Billing units per minute and per day, of providers that bill.
  var unitsPerMinute: Int
  var unitsPerDay: Int
  /// Transfers per minute to upstreams that do not bill; they have no limit per day.
  var transfersPerMinute: Int

  /// 0 per day allows nothing.
  package init(unitsPerMinute: Int, unitsPerDay: Int, transfersPerMinute: Int) {
    self.unitsPerMinute = unitsPerMinute
    self.unitsPerDay = unitsPerDay
    self.transfersPerMinute = transfersPerMinute
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

  package init() {}
}
