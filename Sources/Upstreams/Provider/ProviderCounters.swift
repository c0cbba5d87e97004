// ProviderCounters.swift -- what a provider counts, and how it reports to the operator.

import Logging
import Telemetry

/// Logs one line about a provider for the operator.
package typealias ProviderNote = @Sendable (Logger.Level, String) -> Void

/// What a provider has counted since the start.
package struct ProviderCounters: Sendable, Equatable {
  /// Requests that were put on the wire, those that the HTTP client sent once more included.
  package var transfers = 0
  /// Transfers without a usable reply.
  package var failures = EventCounts<TransferFailureCause>()
  /// The round-trip times of replies, including refusals and the time to connect.
  package var roundTrips = LatencyHistogram()
  /// Known billing units.
  package var units = 0
  /// Transfers that carried both address families of a name.
  package var pairs = 0
  /// Handshakes without a request.
  package var handshakes = 0
  /// Questions that were not sent because the provider could not be reached, paused or was at its limit.
  package var refusals = 0
  /// How often the provider or one of its servers was demoted.
  package var demotions = EventCounts<ProviderDemotion>()
  /// Questions that were not sent because the provider recently answered that it does not list the name.
  package var notListed = 0
}

/// The counters of the providers of one name. After a reload, the new provider continues them, together with transfers of the
/// old one that are still in flight. Resolver's loop only.
package final class SharedProviderCounters {
  var values = ProviderCounters()
}
