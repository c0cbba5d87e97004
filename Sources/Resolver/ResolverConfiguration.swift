// ResolverConfiguration.swift -- the routes, upstreams and settings that the resolver derives from one configuration.
//
// Resolver's loop only. A reload replaces it; a question in flight keeps the one that it began with.

import MessageCache
import Refresh
import Routing
import Upstreams

/// Routes, upstreams and settings that belong together. Immutable; unchecked because of the upstreams, which belong to the
/// resolver's loop.
package final class ResolverConfiguration: @unchecked Sendable {
  let settings: ResolverSettings
  /// The providers, in the order of the configuration.
  let upstreams: [any Upstream]
  /// The number of each provider in cache entries.
  let providerNumbers: [Int]

  /// - Parameter providerNumbers: by default the places of the providers.
  package init(_ settings: ResolverSettings, _ upstreams: [any Upstream], providerNumbers: [Int]? = nil) {
    var settings = settings
    for number in settings.routes.indices {
      settings.routes[number].number = UInt16(number)
      let providers = settings.routes[number].providers.map { upstreams[$0] }
      settings.routes[number].tellsDNSSECFlags = providers.isEmpty || providers.contains(where: \.knowsDNSSECFlags)
      settings.routes[number].sendsRequests = providers.contains { !$0.answersAtOnce }
      settings.routes[number].isBilled = providers.contains { $0.refreshPrice.isBilled }
      let bounds = providers.filter(\.passesClientSubnet).map(\.subnetsPerName)
      settings.routes[number].asksForSubnets = !bounds.isEmpty
      settings.routes[number].subnetsPerName = bounds.contains(0) ? 0 : bounds.max() ?? 0
    }
    self.settings = settings
    self.upstreams = upstreams
    self.providerNumbers = providerNumbers ?? Array(upstreams.indices)
  }

  /// The route with that number; nil if no route has it, or if the route is unused.
  func route(_ number: UInt16) -> Route? {
    guard Int(number) < settings.routes.count else { return nil }
    let route = settings.routes[Int(number)]
    return route.isUnused ? nil : route
  }

  /// The place of the provider with that number; nil if it is not configured.
  func place(ofProvider number: Int) -> Int? { providerNumbers.firstIndex(of: number) }

  /// The provider of a source; nil if it is not configured, or for another source.
  func provider(_ source: EntrySource) -> (any Upstream)? {
    guard case .provider(let number) = source else { return nil }
    return place(ofProvider: number).map { upstreams[$0] }
  }
}
