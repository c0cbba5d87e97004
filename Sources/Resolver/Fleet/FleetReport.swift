// FleetReport.swift -- the state of the second level, for commands and metrics.

import DNSWire
import EventLoop
import Fleet
import Store

/// The state of the store and of this daemon's part in the fleet.
package struct FleetReport: Sendable {
  /// The store's URL, without user and password.
  package var place = ""
  /// The state of the connection.
  package var store: StoreReport
  /// Counters since the start.
  package var counters = FleetCounters()
  /// Values that were dropped because too many waited, or the store was away meanwhile.
  package var droppedWrites: UInt64 = 0
  /// By how many seconds the store's clock is ahead; nil if it is not known.
  package var clockDifference: Int64?
  /// Whether the store's clock is so far off that it is not used.
  package var isClockRefused = false
  /// Whether all flushes are known; values are not used otherwise.
  package var knowsFlushes = false
  /// Why the flushes could not be read the last time; nil if they could.
  package var flushFailure: String?
  /// Whether values are sealed.
  package var hasSecret = false
  /// Whether units are counted for the fleet.
  package var sharesUnits = true
  /// This daemon.
  package var own: FleetMember
  /// The daemons that are there, this one among them, and how many seconds ago each gave its last sign of life; empty where
  /// nobody was asked.
  package var members: [(member: FleetMember, age: Int64)] = []

  /// How many daemons there were when this one gave its last sign of life; nil before the first one.
  package var memberCount: Int?

  /// Whether the store is used.
  package var isUsed: Bool { store.isUp && knowsFlushes && !isClockRefused && clockDifference != nil }

  /// The state in a few words, and why the store is not used or does not take everything.
  package var state: String {
    guard store.isUp else { return store.state + (store.lastFailure.map { "; \($0)" } ?? "") }
    guard let clockDifference else {
      return "not used: its time is not known" + (store.complaint.map { ": \($0)" } ?? "")
    }
    if isClockRefused { return "not used: its clock differs from this machine's by \(abs(clockDifference)) s" }
    guard knowsFlushes else { return "not used: flushes are not read" + (flushFailure.map { ": \($0)" } ?? " yet") }
    return store.state + (store.complaint.map { ": \($0)" } ?? "")
  }

  /// Creates the report of a daemon that has done nothing yet.
  package init(store: StoreReport, own: FleetMember) {
    (self.store, self.own) = (store, own)
  }
}

extension FleetLevel {
  /// The state, without the members.
  package var report: FleetReport {
    loop.assertCurrent()
    let unknown = FleetReport(
      store: StoreReport(state: "no longer used", isUp: link.isUp, since: loop.now), own: member)
    var report = describe() ?? unknown
    (report.memberCount, report.knowsFlushes) = (memberCount, flushReading == .current)
    (report.counters, report.droppedWrites) = (counters, droppedWrites)
    (report.clockDifference, report.isClockRefused) = (clock.difference, clock.isOff && keys.hasSecret)
    (report.hasSecret, report.sharesUnits) = (keys.hasSecret, settings.sharesUnits)
    return report
  }
}

/// A line for the log.
package struct FleetNote: Hashable, Sendable {
  /// Whether somebody has to do something.
  package var isProblem: Bool
  /// The line.
  package var text: String
}
