// ProviderSettings.swift -- per-provider settings and counters.

import DNSWire
import Logging
import Telemetry

/// Logs one line about a provider for the operator.
package typealias ProviderNote = @Sendable (Logger.Level, String) -> Void

/// Which client subnet is sent to a provider (RFC 7871).
enum SubnetPolicy: Sendable, Equatable {
  case none
  case fixed(IPPrefix)
  case fromClient

  /// Returns the subnet to send for a client's subnet; nil to send none.
  func subnet(for client: IPPrefix?) -> IPPrefix? {
    switch self {
    case .none: nil
    case .fixed(let prefix): prefix
    case .fromClient: client
    }
  }
}

/// Per-provider settings.
struct ProviderSettings: Sendable {
  /// Its name in the configuration.
  var name: String
  /// A name that it answers, used to check its failures; nil to select names automatically.
  var checkName: DomainName?
  /// Whether requests carry an account: the provider may then refuse us before it has ever answered.
  var hasAccount = false
  /// The timeout of one attempt.
  var timeout = Duration.seconds(2)
  /// Consecutive failures before the next server is used.
  var attemptsBeforeSwitch = 3
  /// The time after which a probe may return to the first server.
  var returnToFirst = Duration.seconds(600)
  /// Which client subnet is sent.
  var subnetPolicy = SubnetPolicy.none
  /// Whether its AD bit is passed on to clients.
  var trustsAD = false
  /// The limit on transfers per second; 0 for no limit.
  var requestsPerSecond = 0
  /// The limit on billing units per day; 0 for no limit.
  var unitsPerDay = 0
  /// The fraction of these units, 0 to 1, reserved for names that were in the cache or are always kept fresh.
  var unitsReserve = 0.0
  /// The maximum number of client subnets per name; 0 for no limit.
  var subnetsPerName = 0
  /// Whether to ask the next provider after an empty answer that may only mean "not in the account's list" …
  var fallsBackOnEmpty = true
  /// … and for how long to remember such an answer.
  var notListedTTL = Duration.seconds(600)
}

/// The counters of a provider. After a reload, the provider of the same name continues them, together with transfers of
/// the old one that are still in flight. Resolver's loop only.
final class ProviderCounters {
  /// Transfers begun, including probes.
  var transfers = 0
  /// Transfers without a usable reply.
  var failures = TransferFailures()
  /// The round-trip times of replies, including refusals and the time to connect.
  var roundTrips = LatencyHistogram()
  /// Known billing units.
  var units = 0
  /// Transfers that carried both address families of a name.
  var pairs = 0
  var probes = 0
  /// Transfers that check whether the question caused a failure.
  var checks = 0
  /// Questions that were not sent because the provider was down, backing off or at its limit.
  var refusals = 0
  /// How often the provider or one of its servers was demoted.
  var demotions = ProviderDemotions()
  /// Questions that were not sent because the provider recently answered that it does not list the name.
  var notListed = 0
}
