// ResolverSettings.swift -- the resolver's settings and counters.

import Configuration
import DNSWire
import EventLoop
import Routing
import Telemetry

/// The settings of the resolver. A reload replaces them as a whole.
package struct ResolverSettings: Sendable {
  /// The routes; a route's number is its index.
  package var routes: [Route]
  /// The limits of questions in flight and upstream.
  package var listen: Configuration.Listen
  /// How answers are cached.
  package var cache: Configuration.Cache
  /// How long LocalDNS may take to answer.
  package var localTimeout: Duration
  /// Refuses private addresses; nil if rebind protection is off.
  package var rebindFilter: RebindFilter?
  /// How long a provider may take to reply before LocalDNS is asked as well, unless it has been silent.
  package static let localDNSDelay = Duration.seconds(1)
  /// What the last provider has at least before LocalDNS's answer is given.
  package static let leastPatience = Duration.milliseconds(150)
  /// Clients without an answer get SERVFAIL after this time: glibc and systemd-resolved retry after 5 s.
  package static let answerBy = Duration.milliseconds(4400)
  /// The minimum age of the latest attempt before a client's retry starts another one.
  package static let retryAfter = Duration.seconds(1)
  /// The maximum number of concurrent attempts for one question.
  package static let mostAttempts = 3
}

/// Counters of the cold path. They only grow.
package struct ResolverCounters: Sendable, Equatable {
  /// Questions that went upstream, including refreshes.
  package var fetches: UInt64 = 0
  /// Queries that joined a question in flight.
  package var joined: UInt64 = 0
  /// Repeated queries of a client whose first query still waits: both get one response.
  package var duplicates: UInt64 = 0
  /// Queries treated as if they had no client subnet, because their name has reached its limit of subnets.
  package var surplusSubnets: UInt64 = 0
  /// Queries stopped by one of our own limits.
  package var shares = ShareCounters()
  /// Queries refused because too many questions were in flight.
  package var overflows: UInt64 = 0
  /// Questions that ended without an answer.
  package var failures: UInt64 = 0
  /// Stale answers served because there was no fresh one.
  package var stale: UInt64 = 0
  /// Questions to LocalDNS.
  package var local = LocalQuestionCounters()

  func with(_ local: LocalQuestionCounters) -> ResolverCounters {
    var counters = self
    counters.local = local
    return counters
  }
}

/// Counters of the questions to LocalDNS. They only grow.
package struct LocalQuestionCounters: Sendable, Equatable {
  /// Questions that LocalDNS answered instead of a provider.
  package var fallbacks: UInt64 = 0
  /// Questions sent to LocalDNS.
  package var questions: UInt64 = 0
  /// Of those, the questions that it did not answer.
  package var failures: UInt64 = 0
  /// The response times of its answers.
  package var roundTrips = LatencyHistogram()
}

extension ResolverSettings {
  /// Takes the settings from a configuration; `routes` are in the order of their numbers.
  package init(_ configuration: Configuration, _ routes: [Route]) {
    self.init(
      routes: routes, listen: configuration.listen, cache: configuration.cache,
      localTimeout: configuration.localDNS.timeout,
      rebindFilter: configuration.names.rebindProtection
        ? RebindFilter(allowed: configuration.names.rebindAllow, prefixes: configuration.names.rebindPrefixes) : nil)
  }
}
