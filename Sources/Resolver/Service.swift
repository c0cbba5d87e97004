// Service.swift -- what the resolver has from one configuration: whom it may ask, and how.
//
// Resolver's loop only. A reload brings another one; a question under way keeps the one that it began with.

import Configuration
import EventLoop
import Routing
import Upstreams

/// Routes, upstreams and settings that belong together.
package final class Service: @unchecked Sendable {
  /// What the resolver goes by.
  let settings: ResolverSettings
  /// The providers, in the order of the configuration.
  let upstreams: [any Upstream]
  /// The number by which entries know each of them.
  let providerNumbers: [Int]

  /// - Parameter providerNumbers: by their places, where nothing else is said.
  package init(_ settings: ResolverSettings, _ upstreams: [any Upstream], providerNumbers: [Int]? = nil) {
    var settings = settings
    for number in settings.routes.indices {
      settings.routes[number].number = UInt16(number)
      let providers = settings.routes[number].providers
      settings.routes[number].tellsDNSSECFlags =
        providers.isEmpty || providers.contains { upstreams[$0].knowsDNSSECFlags }
    }
    self.settings = settings
    self.upstreams = upstreams
    self.providerNumbers = providerNumbers ?? Array(upstreams.indices)
  }

  /// The route of that number; nil where there is none.
  func route(_ number: UInt16) -> Route? {
    guard Int(number) < settings.routes.count else { return nil }
    let route = settings.routes[Int(number)]
    return route.isUnused ? nil : route
  }

  /// The place of the provider with that number; nil where there is none any more.
  func place(ofProvider number: Int) -> Int? { providerNumbers.firstIndex(of: number) }

  /// Client subnets of one name that the route's providers are asked for; 0 for no bound.
  func subnetsPerName(_ route: Route) -> Int {
    let bounds = route.providers.map { upstreams[$0] }.filter(\.takesClientSubnet).map(\.subnetsPerName)
    return bounds.contains(0) ? 0 : bounds.max() ?? 0
  }

  /// Whether a provider of the route is told clients' own subnets.
  func asksForSubnets(_ route: Route) -> Bool { route.providers.contains { upstreams[$0].takesClientSubnet } }
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
