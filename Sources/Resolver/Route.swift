// Route.swift -- which upstreams answer a group of names, in which order, and within which limits.

import Configuration
import EventLoop
import Upstreams

/// The upstreams for a group of names, and the terms of their answers. The rules map each name to a route's number.
package struct Route: Sendable {
  /// The providers to ask, in order, as indices into the resolver's upstreams.
  package var providers: [Int]
  /// The plain resolvers to ask, as a fallback or instead of providers; empty for none.
  package var localServers: [Configuration.LocalServer]
  /// Whether LocalDNS may answer if no provider did.
  package var fallsBack: Bool
  /// Whether the names belong to the network: without LocalDNS they get NXDOMAIN (RFC 8375, RFC 6303).
  package var isNetwork = false
  /// Whether rebind protection applies. It does not where a rule or the kind of name makes private addresses
  /// legitimate.
  package var filtersPrivate = true
  /// Whether answers are valid only on the network that they came from.
  package var belongsToNetwork = false
  /// Whether LocalDNS is the network's own resolver, whose answers are valid only for the network's names (ADR 0024).
  package var isConfined = false
  /// The order of LocalDNS and the providers for names below a search domain; `.ignore` for other names.
  package var search = Configuration.SearchDomains.ignore
  /// The route that this one stands for with names of the hosts file, in types that the file does not answer; nil if it is
  /// not such a route. These names exist, so what upstreams call NXDOMAIN is NODATA. Its number keeps their answers apart
  /// from all that was cached as NXDOMAIN while the file did not have the name.
  package var hostsNamesOf: UInt16?
  /// How expired data may be used.
  package var stale = StalePolicy()
  /// The bounds on TTLs.
  package var ttl: TTLBounds
  /// The firewall sets that its answers' addresses are added to; nil for none.
  package var sets: RouteSets?
  /// Its index in the list of routes, which is part of the cache's keys.
  var number: UInt16 = 0
  /// Whether DO and CD distinguish questions. They do not if no provider understands them; LocalDNS counts only on a
  /// route without providers.
  var tellsDNSSECFlags = true
  /// Whether one of its providers sends requests.
  var sendsRequests = false
  /// Whether one of its providers bills.
  var isBilled = false
  /// Whether one of its providers receives the clients' subnets.
  var asksForSubnets = false
  /// The maximum number of client subnets per name that its providers receive; 0 for no limit.
  var subnetsPerName = 0
  /// All that makes its answers differ from those of another configuration; empty if they are not shared with a fleet.
  package var fleetFingerprint: [UInt8] = []
  /// Whether no name uses it: the number is free, or cached entries may still carry it for a former route.
  package private(set) var isUnused = false

  /// Whether LocalDNS may know names for which the providers say NXDOMAIN.
  var isSearched: Bool { search != .ignore }

  /// The placeholder for a number that no name uses.
  package static let unused: Route = {
    let bounds = TTLBounds(lowest: 0, highest: 0, highestNegative: 0, highestFallback: 0)
    var route = Route(providers: [], localServers: [], fallsBack: false, ttl: bounds)
    route.isUnused = true
    return route
  }()

  /// The other properties have their defaults.
  package init(providers: [Int], localServers: [Configuration.LocalServer], fallsBack: Bool, ttl: TTLBounds) {
    self.providers = providers
    self.localServers = localServers
    self.fallsBack = fallsBack
    self.ttl = ttl
  }

  /// The numbers of the routes that every configuration has.
  package enum Number {
    /// Names that match no rule.
    package static let standard: UInt16 = 0
    /// Names of the network: LocalDNS or NXDOMAIN.
    package static let network: UInt16 = 1
    /// Captive portals' probe names: LocalDNS.
    package static let portal: UInt16 = 2
    /// Probe names that detect LocalDNS servers which forward to this daemon; no upstream is asked.
    package static let loopProbe: UInt16 = 3
    /// Names below a search domain of the network: providers and LocalDNS.
    package static let search: UInt16 = 4
    /// Names of routers' own pages: LocalDNS, then the providers.
    package static let router: UInt16 = 5
    /// The first rule that selects upstreams; the others follow.
    package static let firstRule: UInt16 = 6
  }
}

/// How expired data may be used (RFC 8767).
package struct StalePolicy: Sendable, Hashable {
  /// When it is served.
  package var mode = Configuration.Stale.off
  /// The maximum time that a client waits for a fresh answer before it gets stale data.
  package var wait = Duration.milliseconds(1800)
  /// Seconds after its expiry for which it may be served.
  package var maxAge: UInt32 = 0
  /// Whether positive answers never expire while the daemon runs.
  package var isImmutable = false

  /// Serves no stale data.
  package init() {}
}

/// Bounds on the TTLs of cached and served records, in seconds.
package struct TTLBounds: Sendable, Hashable {
  /// Lower TTLs of records are raised to this; the lifetime of a negative answer never is.
  package var lowest: UInt32
  /// Higher TTLs are lowered to this.
  package var highest: UInt32
  /// Higher TTLs of negative answers are lowered to this.
  package var highestNegative: UInt32
  /// Higher TTLs of answers that LocalDNS gave instead of a provider are lowered to this.
  package var highestFallback: UInt32

  /// Where `lowest` is above another bound, the other one wins.
  package init(lowest: UInt32, highest: UInt32, highestNegative: UInt32, highestFallback: UInt32) {
    self.lowest = lowest
    self.highest = highest
    self.highestNegative = highestNegative
    self.highestFallback = highestFallback
  }
}
