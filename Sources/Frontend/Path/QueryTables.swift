// QueryTables.swift -- what every thread's query path reads; a reload replaces it as a whole.

import FairShares
import MessageCache
import Routing

/// The tables that every thread's query path reads.
package struct QueryTables: Sendable {
  package private(set) var access: AccessPolicy
  let routes: RouteTable
  let prepared: PreparedAnswers
  let cache: MessageCache
  /// The number of the answer to QTYPE ANY.
  let anyAnswer: UInt32
  /// Whether answers are cached at all.
  let cacheEnabled: Bool
  /// The routes with a provider that receives the client's own subnet.
  let subnetRoutes: RouteSet
  /// The routes whose answers belong to the network that they came from.
  let networkRoutes: RouteSet
  /// The network that the machine is on.
  let network: CurrentNetwork
  /// The largest UDP response, in octets.
  let maxUDPPayload: Int
  /// The idle timeout sent to TCP clients, in units of 100 ms.
  let keepalive: Int32
  /// The routes without a provider that can express DO or CD: questions that differ only in these flags are the same.
  var plainRoutes = RouteSet([], count: 0)
  /// `listen.rate_limit`, over all threads.
  package var rateLimit = BucketTable(rate: 0, burst: 1)

  package init(
    access: AccessPolicy, routes: RouteTable, prepared: PreparedAnswers, cache: MessageCache, anyAnswer: UInt32,
    cacheEnabled: Bool, subnetRoutes: RouteSet, networkRoutes: RouteSet, network: CurrentNetwork, maxUDPPayload: Int,
    keepalive: Int32, plainRoutes: RouteSet = RouteSet([], count: 0),
    rateLimit: BucketTable = BucketTable(rate: 0, burst: 1)
  ) {
    self.access = access
    self.routes = routes
    self.prepared = prepared
    self.cache = cache
    self.anyAnswer = anyAnswer
    self.cacheEnabled = cacheEnabled
    self.subnetRoutes = subnetRoutes
    self.networkRoutes = networkRoutes
    self.network = network
    self.maxUDPPayload = maxUDPPayload
    self.keepalive = keepalive
    self.plainRoutes = plainRoutes
    self.rateLimit = rateLimit
  }

  /// The same tables for other clients.
  package func serving(_ access: AccessPolicy) -> QueryTables {
    var tables = self
    tables.access = access
    return tables
  }
}
