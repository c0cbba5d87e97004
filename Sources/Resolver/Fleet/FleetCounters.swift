// FleetCounters.swift -- what the second level has done, for metrics and commands.

import Fleet
import Store
import Telemetry

/// How a look at the store ended. The raw values are labels of metrics.
package enum FleetResult: String, CaseIterable, Sendable {
  /// An answer of another daemon.
  case hit
  /// The store has none.
  case miss
  /// The store did not answer in time.
  case timeout
  /// The store answered with an error.
  case error
  /// The store's value did not pass a check.
  case rejected
  /// The store is down, so that it was not asked.
  case open

  init(_ failure: StoreFailure) {
    self =
      switch failure {
      case .open, .tooManyWaiting: .open
      case .timeout: .timeout
      case .closed, .error: .error
      }
  }
}

/// Leases by outcome.
package struct LeaseCounters: Sendable, Equatable {
  /// This daemon asked for all.
  package var won: UInt64 = 0
  /// Another one was asking.
  package var lost: UInt64 = 0
  /// Of the lost ones: its answer did not come in time.
  package var expired: UInt64 = 0
  /// The store gave no lease.
  package var failed: UInt64 = 0
}

/// Counters since the start.
package struct FleetCounters: Sendable {
  /// Looks for answers of clients' questions by result, in the order of `FleetResult`.
  package private(set) var looks: [UInt64] = Array(repeating: 0, count: FleetResult.allCases.count)
  /// Values that were refused, by the check.
  package var rejected: [FleetRejection: UInt64] = [:]
  package var leases = LeaseCounters()
  /// Refreshes: another daemon's answer was adopted, this one asked for all, this one asked alone.
  package var adopted: UInt64 = 0
  package var led: UInt64 = 0
  package var alone: UInt64 = 0
  /// Values that the store took, and those that it did not.
  package var writes: UInt64 = 0
  package var failedWrites: UInt64 = 0
  /// How often the store had lost its data.
  package var losses: UInt64 = 0
  /// Flushes of other daemons that were carried out, and entries of the stream that were none.
  package var flushes: UInt64 = 0
  package var refusedFlushes: UInt64 = 0
  /// The times of exchanges that an answer waited for.
  package var latency = LatencyHistogram()

  /// Creates counters of 0.
  package init() {}

  /// The number of looks with a result.
  package func count(of result: FleetResult) -> UInt64 { looks[FleetResult.allCases.firstIndex(of: result) ?? 0] }

  mutating func count(_ result: FleetResult) {
    if let index = FleetResult.allCases.firstIndex(of: result) { looks[index] += 1 }
  }
}
