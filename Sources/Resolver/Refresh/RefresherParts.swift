// RefresherParts.swift -- what the refresher goes by, and what it has done so far.

import HTTPDNS
import Refresh

/// What the refreshing goes by.
package struct RefresherSettings {
  var timing: RefreshTiming
  var heat: HeatPolicy
  /// Billing units, of providers that bill.
  var unitsPerMinute: Int
  var unitsPerDay: Int
  /// Transfers to whoever bills nothing.
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

/// A question and the route that it takes.
package struct RoutedQuestion: Hashable, Sendable {
  var question: HTTPDNSQuestion
  var route: UInt16

  package init(question: HTTPDNSQuestion, route: UInt16) {
    self.question = question
    self.route = route
  }
}

/// Numbers about refreshing.
package struct RefreshCounters: Sendable, Equatable {
  /// Transfers, and questions to LocalDNS.
  package var transfers: UInt64 = 0
  /// Answers that came.
  package var answers: UInt64 = 0
  /// Questions that were asked in vain.
  package var failures: UInt64 = 0
  /// Transfers that the budget forbade.
  package var overBudget: UInt64 = 0

  /// Nothing so far.
  package init() {}
}
