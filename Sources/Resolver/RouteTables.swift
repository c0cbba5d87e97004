// RouteTables.swift -- the tables of the hot path, of which some say what a route's providers can do.

import Frontend
import MessageCache
import Routing

extension QueryTables {
  /// - Parameters:
  ///   - routes: the routes that `table` refers to by number.
  ///   - passesSubnets: whether a provider receives the client's own subnet.
  ///   - knowsFlags: whether a provider can express DO or CD.
  package init(
    access: AccessPolicy, table: RouteTable, routes: [Route], cache: MessageCache, network: CurrentNetwork,
    cacheEnabled: Bool, maxUDPPayload: Int, keepalive: Int32, passesSubnets: (Int) -> Bool, knowsFlags: (Int) -> Bool
  ) {
    func those(_ isOne: (Route) -> Bool) -> RouteSet {
      RouteSet(routes.indices.filter { isOne(routes[$0]) }.map(UInt16.init), count: routes.count)
    }
    let prepared = PreparedAnswers(table.localAnswers)
    self.init(
      access: access, routes: table, prepared: prepared, cache: cache, anyAnswer: prepared.anyAnswer,
      cacheEnabled: cacheEnabled, subnetRoutes: those { $0.providers.contains(where: passesSubnets) },
      networkRoutes: those(\.belongsToNetwork), network: network, maxUDPPayload: maxUDPPayload, keepalive: keepalive,
      plainRoutes: those { !$0.providers.isEmpty && !$0.providers.contains(where: knowsFlags) })
  }
}
