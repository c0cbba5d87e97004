// ProviderCounters.swift -- what a provider counts, and how it reports to the operator.

import Logging
import Telemetry

/// Logs one line about a provider for the operator.
package typealias ProviderNote = @Sendable (Logger.Level, String) -> Void

/// The counters of a provider. After a reload, the provider of the same name continues them, together with transfers of
/// the old one that are still in flight. Resolver's loop only.
final class ProviderCounters {
  /// Requests that were put on the wire, those that the HTTP client sent once more included.
  var transfers = 0
  /// Transfers without a usable reply.
  var failures = TransferFailures()
  /// The round-trip times of replies, including refusals and the time to connect.
  var roundTrips = LatencyHistogram()
  /// Known billing units.
  var units = 0
  /// Transfers that carried both address families of a name.
  var pairs = 0
  /// Handshakes without a request.
  var handshakes = 0
  /// Questions that were not sent because the provider could not be reached, paused or was at its limit.
  var refusals = 0
  /// How often the provider or one of its servers was demoted.
  var demotions = ProviderDemotions()
  /// Questions that were not sent because the provider recently answered that it does not list the name.
  var notListed = 0
}
