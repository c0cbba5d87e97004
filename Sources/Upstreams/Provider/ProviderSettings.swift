// ProviderSettings.swift -- what a provider goes by, and the numbers that it keeps.

import DNSWire
import Logging
import Telemetry

/// Told in one line what a person should know of a provider.
package typealias ProviderNote = @Sendable (Logger.Level, String) -> Void

/// Which client subnet a provider is told (RFC 7871).
enum SubnetPolicy: Sendable, Equatable {
  case none
  case fixed(IPPrefix)
  case fromClient

  /// The subnet to send for a client's own one; nil to send none.
  func subnet(for client: IPPrefix?) -> IPPrefix? {
    switch self {
    case .none: nil
    case .fixed(let prefix): prefix
    case .fromClient: client
    }
  }
}

/// What a provider goes by.
struct ProviderSettings: Sendable {
  /// Its name in the configuration.
  var name: String
  /// A name that it answers, by which its failures are judged; nil for one that is found by itself.
  var checkName: DomainName?
  /// Whether it knows us by an account: then it may refuse us before it has ever answered.
  var hasAccount = false
  /// How long one attempt may take.
  var timeout = Duration.seconds(2)
  /// Consecutive failures before the next server is used.
  var attemptsBeforeSwitch = 3
  /// After which time a probe may lead back to the first server.
  var returnToFirst = Duration.seconds(600)
  /// Which client subnet is sent.
  var subnetPolicy = SubnetPolicy.none
  /// Whether its AD bit is passed on.
  var trustsAD = false
  /// Transfers a second; 0 for no limit.
  var requestsPerSecond = 0
  /// Billing units a day; 0 for no limit.
  var unitsPerDay = 0
  /// The part of them, 0 to 1, that is kept for names that were in the cache or are always kept fresh.
  var unitsReserve = 0.0
  /// Client subnets of one name that are asked for; 0 for no bound.
  var subnetsPerName = 0
  /// Whether an empty answer that may only mean "not in the account's list" is asked of the next provider …
  var fallsBackOnEmpty = true
  /// … and for how long that is remembered.
  var notListedTTL = Duration.seconds(600)
}

/// Numbers about a provider. Who takes its name over a reload counts on in the same ones, beside what is still under way.
/// Resolver's loop only.
final class ProviderCounters {
  /// Transfers that were begun, probes among them.
  var transfers = 0
  /// Transfers that brought no reply of any use.
  var failures = TransferFailures()
  /// How long replies took, those of refusals among them, with the time that a connection took to be made.
  var roundTrips = LatencyHistogram()
  /// Billing units, as far as they are known.
  var units = 0
  /// Transfers that carried both address families of a name.
  var pairs = 0
  /// Probes.
  var probes = 0
  /// Checks whether a failure was the question's own.
  var checks = 0
  /// Questions that were not sent because the provider was down, aside or at its limit.
  var refusals = 0
  /// How often it, or a server of it, was put behind others.
  var demotions = ProviderDemotions()
  /// Questions that were not sent because the provider had said lately that it has nothing for them.
  var notListed = 0
}
