// Route.swift -- who answers a group of names, in which order, and within which limits.

import Configuration
import EventLoop
import Upstreams

/// A route: the outcome of the rules for a name, by number.
package struct Route: Sendable {
  /// The providers to ask, in order, as numbers in the resolver's list.
  package var providers: [Int]
  /// The plain resolvers to ask, by fallback or instead of providers; empty for none.
  package var localServers: LocalServers
  /// Whether LocalDNS may answer where no provider did.
  package var fallsBack: Bool
  /// Whether the names belong to the network: without LocalDNS they do not exist (RFC 8375, RFC 6303).
  package var isNetwork = false
  /// Whether rebind protection applies: not where a rule or the kind of name says that private addresses are right.
  package var filtersPrivate = true
  /// Whether answers count on the network that gave them only.
  package var belongsToNetwork = false
  /// Whether LocalDNS's answers are the word of whoever runs the network: they speak of the network's own names alone.
  package var isConfined = false
  /// Below a search domain: whether LocalDNS is asked beside the providers, and when.
  package var search: SearchOrder?
  /// What may be done with data that has expired.
  package var stale = StalePolicy()
  /// The bounds on TTLs, in seconds.
  package var ttl: TTLBounds
  /// Its number in the cache's keys: its place in the list of a configuration.
  var number: UInt16 = 0
  /// Whether questions that differ in DO or CD alone differ at all: not where no provider can be told. LocalDNS behind
  /// providers does not count, LocalDNS in their place does.
  var tellsDNSSECFlags = true
  /// Whether one of its providers receives the clients' own subnets.
  var asksForSubnets = false
  /// The maximum number of client subnets for one name that its providers receive; 0 for no limit.
  var subnetsPerName = 0
  /// Whether no name takes it: its number is free, or was another route's a moment ago.
  package private(set) var isUnused = false

  /// Whether LocalDNS may know names that the providers deny.
  var isSearched: Bool { search != nil }

  /// What stands in the place of a number that no name takes.
  package static let unused: Route = {
    let bounds = TTLBounds(lowest: 0, highest: 0, highestNegative: 0, highestFallback: 0)
    var route = Route(providers: [], localServers: LocalServers([LocalServers.Entry]()), fallsBack: false, ttl: bounds)
    route.isUnused = true
    return route
  }()

  /// A route that asks those.
  package init(providers: [Int], localServers: LocalServers, fallsBack: Bool, ttl: TTLBounds) {
    self.providers = providers
    self.localServers = localServers
    self.fallsBack = fallsBack
    self.ttl = ttl
  }

  /// The numbers of the routes that are always there.
  package enum Number {
    /// Everything that no rule names.
    package static let standard: UInt16 = 0
    /// Names of the network: LocalDNS or NXDOMAIN.
    package static let network: UInt16 = 1
    /// Captive portals' probe names: LocalDNS.
    package static let portal: UInt16 = 2
    /// Names by which LocalDNS servers are found that lead back to us; nobody is asked.
    package static let loopProbe: UInt16 = 3
    /// Names below a search domain of the network: providers and LocalDNS.
    package static let search: UInt16 = 4
    /// The first rule that routes.
    package static let firstRule: UInt16 = 5
  }
}

/// In which order providers and LocalDNS are asked for names below a search domain of the network.
package enum SearchOrder: String, Sendable, Hashable {
  /// LocalDNS, for what the providers deny or do not list.
  case afterDenial = "after-denial"
  /// LocalDNS, and the providers for what it denies or does not answer.
  case first
}

/// What may be done with data that has expired (RFC 8767).
package struct StalePolicy: Sendable, Hashable {
  /// When it is given.
  package var mode = Configuration.Stale.off
  /// The longest that a client waits for a fresh answer before it gets stale data.
  package var wait = Duration.milliseconds(1800)
  /// Seconds after its expiry for which it may be given.
  package var maxAge: UInt32 = 0
  /// Whether addresses never expire while the program runs.
  package var isImmutable = false

  /// No stale data.
  package init() {}
}

/// Bounds on the TTLs of what is kept and given out, in seconds.
package struct TTLBounds: Sendable, Hashable {
  /// Lower TTLs are raised to this; never those of failures.
  package var lowest: UInt32
  /// Higher TTLs are cut to this.
  package var highest: UInt32
  /// Higher TTLs of negative answers are cut to this.
  package var highestNegative: UInt32
  /// Higher TTLs of answers that came from LocalDNS by fallback are cut to this.
  package var highestFallback: UInt32

  /// The four bounds.
  package init(lowest: UInt32, highest: UInt32, highestNegative: UInt32, highestFallback: UInt32) {
    self.lowest = lowest
    self.highest = highest
    self.highestNegative = highestNegative
    self.highestFallback = highestFallback
  }
}
