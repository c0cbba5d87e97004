// Preparation.swift -- what follows from a configuration and may take its time: rules, hosts file, tables. Any thread.

import Configuration
import DNSWire
import EventLoop
import LocalDNS
import Logging
import MessageCache
import Routing

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

  /// Makes the tables. Blocks: reads the hosts file.
  ///
  /// - Parameter numbers: those that count so far.
  /// - Throws: `StartError.other` where there are more rules or providers than numbers.
  init(
    _ given: Configuration, _ numbers: ServiceNumbers, _ surroundings: Surroundings
  ) throws(StartError) {
    let configuration = given.withoutOurselves(surroundings.listeners, surroundings.logger)
    var numbers = numbers
    system = SystemResolvers.find(notAt: surroundings.listeners)
    let plan = RoutingPlan(
      configuration, hosts: Preparation.hosts(configuration, surroundings.logger), searchDomains: system.searchDomains,
      loopZone: surroundings.loopZone, numbers: &numbers.routes)
    guard let plan, let places = numbers.providers.assign(configuration.providers.map(\.meaning), kin: { $0 }) else {
      throw .other("too many rules or providers, those that are being replaced included")
    }
    self.configuration = configuration
    self.plan = plan
    self.numbers = numbers
    providerNumbers = places
    tables = QueryTables(
      configuration, plan, cache: surroundings.cache, network: surroundings.network, keepalive: configuration.keepalive,
      subnetRoutes: plan.routes.indices.filter { number in
        plan.routes[number].providers.contains { configuration.providers[$0].passesClientSubnet }
      })
  }

  private static func hosts(_ configuration: Configuration, _ logger: Logger) -> HostsFile {
    guard let path = configuration.names.hostsFile else { return HostsFile() }
    do throws(HostsFileError) {
      return try HostsFile(path: path)
    } catch {
      logger.warning("hosts file \(path): \(error)")
      return HostsFile()
    }
  }
}

extension Configuration {
  /// The idle timeout that clients over TCP are told, in units of 100 ms.
  var keepalive: Int32 { Int32(clamping: listen.tcpIdle.nanoseconds / 100_000_000) }
}
