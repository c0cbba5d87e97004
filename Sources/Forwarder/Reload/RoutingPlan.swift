// RoutingPlan.swift -- compiles the configuration's rules into the table of the hot path and the routes that it names.

import Configuration
import DNSWire
import Lists
import LocalDNS
import Resolver
import Routing
import Upstreams

/// Rules, hosts file and special names, compiled.
package struct RoutingPlan: Sendable {
  /// The table that the hot path reads.
  let table: RouteTable
  /// The routes, by the numbers in the table; unused numbers are `Route.unused`.
  let routes: [Route]
  /// The network's search domains and their effects.
  let searchDomains: [SearchDomain]
  /// The sources of `table`, besides the hosts file.
  let rules: [RouteRule]
  let settings: SpecialNamesSettings
  /// The rules' lists.
  let lists: LoadedLists

  /// Compiles a configuration.
  ///
  /// - Parameters:
  ///   - searchDomains: the network's search domains.
  ///   - hosts: the parsed hosts file.
  ///   - loopZone: the zone of the names by which `LoopGuard` detects loops.
  ///   - instance: the address of names below `InstanceName.zone`.
  ///   - counters: of the rules, in their order.
  ///   - lists: loads the lists for the rules' uses.
  ///   - numbers: the numbers of rules' routes; updated for this plan.
  /// - Returns: nil if there are not enough numbers.
  init?(
    _ configuration: Configuration, hosts: HostsFile, searchDomains: [DomainName], loopZone: DomainName?,
    instance: IPAddress? = nil, counters: [UInt16?] = [],
    lists: ([ListUse]) -> LoadedLists = { _ in LoadedLists() }, numbers: inout NumberRegistry<RouteMeaning>
  ) {
    let designated = DesignatedResolver(configuration.encrypted)
    // Debian's installer writes 127.0.1.1 for the machine's name: clients would ask themselves for it.
    let hosts = designated.map { $0.addresses.isEmpty ? hosts : hosts.withoutLoopback(of: $0.name) } ?? hosts
    let names = configuration.providers.map(\.meaning)
    let targets = configuration.rules.map { RoutingPlan.target(of: $0, configuration) }
    let chosen = targets.compactMap { if case .route(let route, _) = $0 { route } else { nil } }
    let fixed = RoutingPlan.fixedRoutes(configuration)
    // One more route for each, if the hosts file has names.
    let hostsRoutes = hosts.hosts.isEmpty ? [] : (fixed + chosen).map(\.forHostsNames)
    let meanings = (chosen + hostsRoutes).map { RouteMeaning($0, providers: names) }
    guard let assigned = numbers.assign(meanings, kin: { $0.source }) else { return nil }
    let numbersOfChosen = assigned.prefix(chosen.count)
    let count = assigned.reduce(fixed.count) { max($0, $1 + 1) }
    var routes = fixed + Array(repeating: Route.unused, count: count - fixed.count)
    for (route, number) in zip(chosen, numbersOfChosen) { routes[number] = route }
    var hostsNumbers: [UInt16: UInt16] = [:]
    for (index, usual) in (Array(fixed.indices) + numbersOfChosen).enumerated() where !hostsRoutes.isEmpty {
      let number = assigned[chosen.count + index]
      routes[number] = hostsRoutes[index]
      routes[number].hostsNamesOf = UInt16(usual)
      hostsNumbers[UInt16(usual)] = UInt16(number)
    }
    var rules: [RouteRule] = []
    if let loopZone { rules.append(RouteRule(names: [.subtree(loopZone)], action: .route(Route.Number.loopProbe))) }
    if let instance { rules.append(RouteRule(names: [.below(InstanceName.zone)], action: .pinned([instance]))) }
    var rest = numbersOfChosen
    for ((rule, target), lists) in zip(zip(configuration.rules, targets), configuration.usedLists().ofRules) {
      switch target {
      case .local(let action): rules.append(RouteRule(rule, lists, action))
      case .route(_, let isStandard):
        let number = UInt16(rest.removeFirst())
        rules.append(RouteRule(rule, lists, isStandard ? .standard(number) : .route(number)))
      }
    }
    let own = rules.count - configuration.rules.count
    for (index, counter) in counters.enumerated() {
      if let counter { rules[own + index].counter = counter }
    }
    for number in routes.indices { routes[number].setFleetFingerprint(configuration) }
    self.routes = routes
    self.searchDomains = SearchDomain.judged(searchDomains)
    self.rules = rules
    let hasLocalDNS = !configuration.localDNS.servers.isEmpty
    settings = SpecialNamesSettings(
      special: configuration.names.special, portalNames: configuration.localDNS.portalNames,
      searchDomains: searchDomains,
      searchRoute: configuration.localDNS.searchDomains == .ignore ? nil : Route.Number.search,
      networkRoute: hasLocalDNS ? Route.Number.network : nil, portalRoute: hasLocalDNS ? Route.Number.portal : nil,
      routerRoute: hasLocalDNS ? Route.Number.router : nil,
      designated: designated)
    self.lists = lists(RouteRule.uses(of: rules))
    table = RouteTable(
      rules: rules, hosts: hosts, settings: settings, hostsRoutes: hostsNumbers, lists: self.lists.table)
  }

  private static func fixedRoutes(_ configuration: Configuration) -> [Route] {
    let local = configuration.localDNS.servers
    let bounds = TTLBounds(configuration)
    var standard = Route(
      providers: Array(configuration.providers.indices), localServers: local,
      fallsBack: configuration.localDNS.fallback == .onFailure, ttl: bounds)
    standard.belongsToNetwork = configuration.cache.perNetwork
    standard.stale = StalePolicy(configuration.cache)
    var network = Route(providers: [], localServers: local, fallsBack: true, ttl: bounds)
    network.belongsToNetwork = true
    network.isConfined = true
    network.stale = standard.stale
    network.isNetwork = true
    network.filtersPrivate = false
    var portal = network
    portal.isNetwork = false
    portal.stale = StalePolicy()
    portal.ttl.highest = min(10, bounds.highest)
    portal.ttl.highestNegative = min(10, bounds.highestNegative)
    portal.ttl.lowest = 0
    let loopProbe = Route(
      providers: [], localServers: [], fallsBack: false, ttl: bounds)
    var search = standard
    search.search = configuration.localDNS.searchDomains
    // What the network adds is valid only on that network.
    search.belongsToNetwork = true
    search.isConfined = true
    var router = search
    router.search = .first
    return [standard, network, portal, loopProbe, search, router]
  }

  private enum Target {
    case local(RouteAction)
    /// - isStandard: whether it stands in the place of the default route.
    case route(Route, isStandard: Bool)
  }

  private static func target(of rule: Configuration.Rule, _ configuration: Configuration) -> Target {
    let defaults = configuration.localDNS.servers
    var route: Route
    switch rule.use {
    case .nxdomain: return .local(.nxDomain)
    case .noData: return .local(.noData)
    case .refused: return .local(.refused)
    case .pinned: return .local(.pinned(rule.addresses))
    case .localDNS:
      let servers = rule.servers.isEmpty ? defaults : rule.servers
      route = Route(providers: [], localServers: servers, fallsBack: true, ttl: TTLBounds(configuration))
      route.filtersPrivate = false
      route.isConfined = servers.contains(.system)
    case .standard where !rule.hasTerms: return .local(.standard(Route.Number.standard))
    case .standard, .providers:
      var providers = Array(configuration.providers.indices)
      if case .providers(let names) = rule.use {
        providers = names.compactMap { name in configuration.providers.firstIndex { $0.name == name } }
      }
      let fallback = rule.fallback ?? configuration.localDNS.fallback
      route = Route(
        providers: providers, localServers: defaults, fallsBack: fallback == .onFailure, ttl: TTLBounds(configuration))
    }
    route.belongsToNetwork = configuration.cache.perNetwork || route.isConfined
    if !rule.sets.isEmpty {
      route.sets = RouteSets(names: rule.sets, keep: rule.setKeep, includesPrivate: rule.use == .localDNS)
    }
    route.stale = StalePolicy(configuration.cache)
    if let stale = rule.stale { route.stale.mode = stale }
    if let isImmutable = rule.isImmutable { route.stale.isImmutable = isImmutable }
    if let highest = rule.maxTTL { route.ttl.highest = highest.ttl }
    if let lowest = rule.minTTL { route.ttl.lowest = lowest.ttl }
    return .route(route, isStandard: rule.use == .standard)
  }
}

extension RoutingPlan {
  /// Compiles the first configuration of a daemon.
  ///
  /// - Precondition: there are fewer rules than route numbers.
  package init(
    _ configuration: Configuration, hosts: HostsFile, searchDomains: [DomainName], loopZone: DomainName? = nil
  ) {
    var numbers = ServiceNumbers().routes
    self.init(configuration, hosts: hosts, searchDomains: searchDomains, loopZone: loopZone, numbers: &numbers)!
  }
}

extension Route {
  /// The same route for names of the hosts file.
  fileprivate var forHostsNames: Route {
    var route = self
    route.hostsNamesOf = 0
    return route
  }
}

extension Configuration.Rule {
  /// Whether it has keys that change how answers are made or cached.
  fileprivate var hasTerms: Bool {
    fallback != nil || !sets.isEmpty || maxTTL != nil || minTTL != nil || stale != nil || isImmutable != nil
  }
}

extension RouteRule {
  fileprivate init(_ rule: Configuration.Rule, _ lists: [Int], _ action: RouteAction) {
    self.init(
      names: rule.names, lists: lists, types: Set(rule.types.map { TypeCategory($0) }), clients: rule.clients,
      action: action)
  }
}

extension TypeCategory {
  fileprivate init(_ type: Configuration.RuleType) {
    self =
      switch type {
      case .ipv4: .a
      case .ipv6: .aaaa
      case .https: .service
      case .pointer: .pointer
      case .other: .other
      }
  }
}

extension TTLBounds {
  init(_ configuration: Configuration) {
    self.init(
      lowest: configuration.cache.minTTL.ttl,
      highest: configuration.cache.maxTTL.ttl,
      highestNegative: configuration.cache.maxNegativeTTL.ttl,
      highestFallback: configuration.localDNS.maxTTL.ttl)
  }
}

extension StalePolicy {
  init(_ cache: Configuration.Cache) {
    self.init()
    mode = cache.stale
    wait = cache.staleWait
    maxAge = cache.staleMaxAge.ttl
    isImmutable = cache.isImmutable
  }
}
