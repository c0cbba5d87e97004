// ResolverSettings.swift -- the resolver's settings and counters.

import Configuration
import DNSWire
import EventLoop
import Routing
import Telemetry

/// The settings of the resolver. Immutable.
package struct ResolverSettings: Sendable {
  /// The routes, by number.
  package var routes: [Route]
  /// The maximum number of questions in flight; above it queries get SERVFAIL.
  package var maxInFlight: Int
  /// Whether answers are kept.
  package var cacheEnabled: Bool
  /// Whether NXDOMAIN covers the names below (RFC 8020).
  package var nxdomainCut: Bool
  /// The longest TTL of stale data, in seconds.
  package var staleTTL: UInt32
  /// How long LocalDNS may take.
  package var localTimeout: Duration
  /// The longest wait after failures.
  package var longestFailureWait: Duration
  /// Refuses private addresses, where that is switched on.
  package var rebindFilter: RebindFilter?
  /// Questions a second that one client may send upstream while others want to; 0 for no limit.
  package var missesPerClient = 0
  /// Questions a second about one domain that may go upstream; 0 for no limit.
  package var missesPerDomain = 0
  /// Names that are always kept fresh.
  package var keptNames: Set<DomainName> = []

  /// How long a provider may be silent before LocalDNS is asked as well.
  package static let localDNSDelay = Duration.seconds(1)
  /// When a client that has no answer yet gets SERVFAIL: glibc and systemd-resolved ask again after 5 s.
  package static let answerBy = Duration.milliseconds(4400)
  /// A client that asks again after this long may start another attempt.
  package static let retryAfter = Duration.seconds(1)
  /// Attempts of one question at once.
  package static let mostAttempts = 3
}

/// Numbers about the cold path.
package struct ResolverCounters: Sendable, Equatable {
  /// Questions that went upstream.
  package var fetches: UInt64 = 0
  /// Queries that joined a question in flight.
  package var joined: UInt64 = 0
  /// Queries that came twice while the first one waited, and got one answer.
  package var duplicates: UInt64 = 0
  /// Queries that were taken as if they had no client subnet, since their name has enough of them.
  package var surplusSubnets: UInt64 = 0
  /// Queries that a limit of ours stood in the way of.
  package var shares = ShareCounters()
  /// Queries that were refused because too many questions were in flight.
  package var overflows: UInt64 = 0
  /// Questions that LocalDNS answered in a provider's place.
  package var fallbacks: UInt64 = 0
  /// Questions that ended without an answer.
  package var failures: UInt64 = 0
  /// Times that stale data was given for want of a fresh answer.
  package var stale: UInt64 = 0
  /// Questions that LocalDNS was asked.
  package var localQuestions: UInt64 = 0
  /// Questions of those that it did not answer.
  package var localFailures: UInt64 = 0
  /// How long its answers took.
  package var localRoundTrips = LatencyHistogram()

  /// Nothing so far.
  package init() {}
}

extension ResolverSettings {
  package init(_ configuration: Configuration, _ routes: [Route]) {
    self.init(
      routes: routes, maxInFlight: configuration.listen.maxInFlight, cacheEnabled: configuration.cache.isEnabled,
      nxdomainCut: configuration.cache.nxdomainCut,
      staleTTL: UInt32(clamping: configuration.cache.staleTTL.components.seconds),
      localTimeout: configuration.localDNS.timeout,
      longestFailureWait: configuration.cache.maxFailureTTL,
      rebindFilter: configuration.names.rebindProtection
        ? RebindFilter(allowed: configuration.names.rebindAllow, prefixes: configuration.names.rebindPrefixes) : nil,
      missesPerClient: configuration.listen.missesPerClient, missesPerDomain: configuration.listen.missesPerDomain)
    keptNames = Set(configuration.refresh.keep)
  }
}
