// FleetReport.swift -- the state of the shared cache, for commands and metrics.

import Store

/// The state of the store, and of this daemon in the fleet.
package struct FleetReport: Sendable {
  /// The store's URL, without user and password.
  package var place = ""
  /// The state of the connection.
  package var store: StoreReport
  /// Counters since the start.
  package var counters = FleetCounters()
  /// Values that were dropped because the queue was full, or after an outage.
  package var droppedWrites: UInt64 = 0
  /// By how many seconds the store's clock is ahead of this machine's; nil if unknown.
  package var clockDifference: Int64?
  /// Whether the store is not used because its clock differs too much.
  package var isClockRefused = false
  /// Whether all flushes are read; otherwise the store is not used.
  package var knowsFlushes = false
  /// Why the last attempt to read flushes failed; nil if it succeeded.
  package var flushFailure: String?
  /// Whether values are sealed.
  package var hasSecret = false
  /// Whether `units_per_day` limits the fleet (`fleet.units`).
  package var sharesUnits = true
  /// This daemon's entry in the list of daemons.
  package var own: FleetMember
  /// The listed daemons, including this one, and the age of their last heartbeat in seconds; empty unless requested.
  package var members: [(member: FleetMember, age: Int64)] = []
  /// The number of daemons at the last count; nil before the first one.
  package var memberCount: Int?

  /// Whether values of the store are used.
  package var isUsed: Bool { store.isUp && knowsFlushes && !isClockRefused && clockDifference != nil }

  /// The state in a few words; if the store is not used or refuses commands, also the reason.
  package var state: String {
    guard store.isUp else { return store.state + (store.lastFailure.map { "; \($0)" } ?? "") }
    guard let clockDifference else {
      return "not used: no valid TIME reply" + (store.complaint.map { ": \($0)" } ?? "")
    }
    if isClockRefused { return "not used: its clock differs from this machine's by \(abs(clockDifference)) s" }
    guard knowsFlushes else { return "not used: flushes are not read" + (flushFailure.map { ": \($0)" } ?? " yet") }
    return store.state + (store.complaint.map { ": \($0)" } ?? "")
  }

  package init(store: StoreReport, own: FleetMember) { (self.store, self.own) = (store, own) }
}

/// A line for the log.
package struct FleetNote: Hashable, Sendable {
  /// Whether the operator must act; logged as an error.
  package var isProblem = true
  package var text: String
}
