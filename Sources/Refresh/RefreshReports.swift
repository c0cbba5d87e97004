// RefreshReports.swift -- what the refresher reports: its counters, and when entries are due.

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
}

/// When an entry is refreshed before it expires.
package enum RefreshPlan: Sendable, Equatable {
  /// Not at all, until a client asks after it has expired.
  case none
  /// Now: it is in flight, or waits for others to share a transfer.
  case inFlight
  /// After this time, regardless of hits: the name is in `refresh.keep`.
  case keepList(in: Duration)
  /// After this time: it is in use.
  case hot(in: Duration)
  /// After this time, if it has this many more hits by then.
  case ifHit(times: UInt32, in: Duration)
}
