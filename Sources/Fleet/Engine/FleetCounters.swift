// FleetCounters.swift -- counters of the shared cache, for metrics and commands.

import Store
import Telemetry

/// The outcome of a lookup in the store. The raw values are labels of metrics.
package enum FleetResult: String, CaseIterable, Sendable {
  /// Another daemon's answer was used.
  case hit
  /// The store has no answer.
  case miss
  /// The store did not reply in time.
  case timeout
  /// The store replied with an error, or the connection ended.
  case error
  /// The value failed a check.
  case rejected
  /// The store was not usable, or too many commands were in flight.
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
  /// This daemon got the lease and asked the provider.
  package var won: UInt64 = 0
  /// Another daemon had the lease.
  package var lost: UInt64 = 0
  /// Of `lost`: the other daemon's answer did not arrive in time.
  package var expired: UInt64 = 0
  /// The store failed, or takes no writes.
  package var failed: UInt64 = 0
}

/// Counters since the start.
package struct FleetCounters: Sendable {
  /// Lookups for clients' questions by result, in the order of `FleetResult`; refreshes are not counted.
  package private(set) var looks: [UInt64] = Array(repeating: 0, count: FleetResult.allCases.count)
  /// Values that failed a check, by the check.
  package var rejected: [FleetRejection: UInt64] = [:]
  package var leases = LeaseCounters()
  /// Refreshes: `adopted` used another daemon's answer; `led` were made with the lease, for all daemons; `alone` without a
  /// lease.
  package var adopted: UInt64 = 0
  package var led: UInt64 = 0
  package var alone: UInt64 = 0
  /// Values that the store confirmed; values that it refused or did not confirm, or that were not sent because it
  /// currently refuses writes.
  package var writes: UInt64 = 0
  package var failedWrites: UInt64 = 0
  /// How often the store was found to be replaced or without its data.
  package var losses: UInt64 = 0
  /// Flushes of other daemons that were carried out, and entries that were ignored: malformed, or with another secret.
  package var flushes: UInt64 = 0
  package var refusedFlushes: UInt64 = 0
  /// Round trips to the store for lookups and leases.
  package var latency = LatencyHistogram()

  /// The number of lookups with a result.
  package func count(of result: FleetResult) -> UInt64 { looks[FleetResult.allCases.firstIndex(of: result) ?? 0] }

  mutating func count(_ result: FleetResult) {
    if let index = FleetResult.allCases.firstIndex(of: result) { looks[index] += 1 }
  }
}

/// The counters that the parts of one `FleetLevel` share.
final class FleetTally { var counters = FleetCounters() }
