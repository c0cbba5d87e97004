// Preparation.swift -- what follows from a configuration and may take its time: rules, hosts file, tables. Any thread.

import Configuration
import DNSWire
import EventLoop
import FairShares
import Files
import Frontend
import LocalDNS
import Logging
import MessageCache
import Resolver
import Routing
import Synchronization
import Upstreams

/// A configuration, and the tables that were made of it.
struct Preparation: Sendable {
  /// What tables are made for and from, beside the configuration.
  struct Surroundings: Sendable {
    var listeners: [SocketAddress]
    var cache: MessageCache
    var network: CurrentNetwork
    /// Where the names lie by which `LoopGuard` finds circles.
    var loopZone: DomainName
    var logger: Logger
    /// What clients have used of `listen.rate_limit`, beyond a reload.
    var rateLimits = RateLimits()
  }

  /// Without resolvers that are this program itself.
  let configuration: Configuration
  /// The network's resolvers at the time.
  let system: SystemResolvers
  let plan: RoutingPlan
  let tables: QueryTables
  /// The numbers of routes and providers from now on.
  let numbers: ServiceNumbers
  /// Each provider's number.
  let providerNumbers: [Int]
  /// The hosts file, where it could not be read.
  let missingHosts: String?
  /// What the tables know of the hosts file.
  let hosts: Hosts

  /// A hosts file, so that other tables can be made with it.
  enum Hosts: Sendable {
    /// Its octets; none where there is no such file.
    case octets([UInt8])
    /// It is too large to be held beside the tables.
    case large

    /// Nearly every hosts file is shorter; long lists of blocked names are not.
    static let longest = 1 << 20
  }

  /// Makes the tables. Blocks: reads the hosts file.
  ///
  /// - Parameters:
  ///   - numbers: those that count so far.
  ///   - needsHosts: whether it is refused where the hosts file cannot be read; otherwise that is a warning.
  /// - Throws: `StartError.other` for that, and where there are more rules or providers than numbers.
  init(
    _ given: Configuration, _ numbers: ServiceNumbers, _ surroundings: Surroundings, needsHosts: Bool = false
  ) throws(StartError) {
    var octets: [UInt8] = []
    var problem: String?
    if let path = given.names.hostsFile {
      do throws(FileFault) {
        octets = try WholeFile.read(path, limit: HostsFile.maximumSize)
      } catch {
        problem = "hosts file \(path): \(error)"
      }
    }
    if let problem {
      guard !needsHosts else { throw .other(problem) }
      surroundings.logger.warning("\(problem)")
    }
    try self.init(given, numbers, surroundings, octets, missingHosts: problem.flatMap { _ in given.names.hostsFile })
  }

  /// Makes tables with the hosts file that others were made with, whatever the file is by now. Blocks: reads one that is large.
  ///
  /// - Throws: as above.
  init(
    _ given: Configuration, _ numbers: ServiceNumbers, _ surroundings: Surroundings, hostsOf earlier: Preparation
  ) throws(StartError) {
    switch earlier.hosts {
    case .octets(let octets):
      try self.init(given, numbers, surroundings, octets, missingHosts: earlier.missingHosts)
    case .large: try self.init(given, numbers, surroundings, needsHosts: true)
    }
  }

  private init(
    _ given: Configuration, _ numbers: ServiceNumbers, _ surroundings: Surroundings, _ octets: [UInt8],
    missingHosts: String?
  ) throws(StartError) {
    let configuration = given.withoutOurselves(surroundings.listeners, surroundings.logger)
    var numbers = numbers
    system = SystemResolvers.find(notAt: surroundings.listeners)
    self.missingHosts = missingHosts
    hosts = octets.count <= Hosts.longest ? .octets(octets) : .large
    // What was read is not longer.
    let file = (try? HostsFile(octets: octets)) ?? HostsFile()
    let plan = RoutingPlan(
      configuration, hosts: file, searchDomains: system.searchDomains,
      loopZone: surroundings.loopZone, numbers: &numbers.routes)
    guard let plan, let places = numbers.providers.assign(configuration.providers.map(\.meaning), kin: { $0 }) else {
      throw .other("too many rules or providers, those that are being replaced included")
    }
    self.configuration = configuration
    self.plan = plan
    self.numbers = numbers
    providerNumbers = places
    var tables = QueryTables(
      configuration, plan, cache: surroundings.cache, network: surroundings.network, keepalive: configuration.keepalive)
    tables.rateLimit = surroundings.rateLimits.table(perSecond: configuration.listen.rateLimit)
    self.tables = tables
  }
}

/// The buckets of `listen.rate_limit`: the same ones for as long as the limit is the same. Any thread.
final class RateLimits: Sendable {
  private let table = Mutex(BucketTable(rate: 0, burst: RateLimits.burst))

  /// Seconds' worth of queries that a client may send at once.
  private static let burst: Int64 = 1

  /// The buckets for that limit; 0 for none.
  func table(perSecond rate: Int) -> BucketTable {
    table.withLock { table in
      if table.rate != rate { table = BucketTable(rate: rate, burst: RateLimits.burst) }
      return table
    }
  }
}

extension Configuration {
  /// The idle timeout that clients over TCP are told, in units of 100 ms.
  var keepalive: Int32 { Int32(clamping: listen.tcpIdle.nanoseconds / 100_000_000) }
}

extension QueryTables {
  /// - Parameter passesSubnets: whether a provider is sent the client's own subnet, where not what the configuration says.
  package init(
    _ configuration: Configuration, _ plan: RoutingPlan, cache: MessageCache, network: CurrentNetwork, keepalive: Int32,
    passesSubnets: ((Int) -> Bool)? = nil
  ) {
    let allowed = configuration.listen.allow.flatMap { network in
      switch network {
      case .prefix(let prefix): [prefix]
      case .connected: AccessPolicy.connectedNetworks()
      }
    }
    let providers = configuration.providers
    self.init(
      access: AccessPolicy(allowed), table: plan.table, routes: plan.routes, cache: cache, network: network,
      cacheEnabled: configuration.cache.isEnabled, maxUDPPayload: configuration.listen.maxUDPPayload,
      keepalive: keepalive, passesSubnets: passesSubnets ?? { providers[$0].passesClientSubnet },
      knowsFlags: { providers[$0].knowsDNSSECFlags })
  }

  /// - Parameters:
  ///   - routes: whom the names of `table` go to.
  ///   - passesSubnets: whether a provider is sent the client's own subnet.
  ///   - knowsFlags: whether a provider has a word for DO or CD.
  init(
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
