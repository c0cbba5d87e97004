// Preparation.swift -- what is made from a configuration and may take time: rules, hosts file, tables. Any thread.

import Configuration
import DNSWire
import EventLoop
import Frontend
import ListStore
import Lists
import LocalDNS
import Logging
import MessageCache
import Resolver

/// A configuration and the tables made from it.
struct Preparation: Sendable {
  /// The inputs of the tables, besides the configuration.
  struct Surroundings: Sendable {
    var listeners: [SocketAddress]
    var cache: MessageCache
    var network: CurrentNetwork
    /// The zone of the names by which `LoopGuard` detects loops.
    var loopZone: DomainName
    /// By which the daemon is known to those who ask for an `InstanceName`.
    let instance = InstanceName.randomAddress()
    var logger: Logger
    /// Has the copies of lists.
    var lists: ListFolder
    /// By which the names of lists are hashed.
    let listKey = ListKey()
    /// What clients have used of `listen.rate_limit`; a reload keeps it.
    var rateLimits = RateLimits()
    /// What clients have used of `encrypted.new_per_second`; a reload keeps it.
    var newConnections = RateLimits(burst: 10)
  }

  /// Without resolvers that are the daemon itself.
  let configuration: Configuration
  /// The network's resolvers when this was made.
  let system: SystemResolvers
  let plan: RoutingPlan
  let tables: QueryTables
  /// What the encrypted listeners follow, without tokens; nil without such listeners.
  let encrypted: EncryptedPolicy?
  /// The numbers of routes and providers with this configuration.
  let numbers: ServiceNumbers
  /// The providers' numbers, in the order of the configuration.
  let providerNumbers: [Int]
  /// The path of the hosts file, if it could not be read.
  let missingHosts: String?
  /// The hosts file that the tables were made with.
  let hosts: Hosts

  /// A hosts file, held so that other tables can be made with it.
  enum Hosts: Sendable {
    /// Its octets; empty if there is no such file.
    case octets([UInt8])
    /// It is too large to hold beside the tables.
    case large

    /// In octets. Nearly every hosts file is shorter; long lists of blocked names are not.
    static let longest = 1 << 20
  }

  /// Makes the tables. Blocks: reads the hosts file.
  ///
  /// - Parameters:
  ///   - numbers: the numbers in use so far.
  ///   - lists: the texts of lists that are used already, and the lists that were loaded last.
  ///   - needsHosts: whether an unreadable hosts file is an error; otherwise it is a warning.
  /// - Throws: `StartError.other` for that error, and if there are more rules or providers than numbers.
  init(
    _ given: Configuration, _ numbers: ServiceNumbers, _ surroundings: Surroundings,
    lists: (texts: ListTexts, loaded: LoadedLists) = (ListTexts(), LoadedLists()), needsHosts: Bool = false
  ) throws(StartError) {
    let reading = HostsReading(given.names)
    if let failure = reading.failure {
      guard !needsHosts else { throw .other("hosts file \(failure)") }
      surroundings.logger.warning("hosts file \(failure)")
    }
    if let remark = reading.remark { surroundings.logger.warning("hosts file \(remark)") }
    try self.init(
      given, numbers, surroundings, lists, reading, missingHosts: reading.failure == nil ? nil : given.names.hostsFile)
  }

  /// Makes tables with the hosts file of earlier ones, even if the file has changed. Blocks: reads a large one again.
  ///
  /// - Parameter texts: those of lists; where they are the same, the earlier table of lists stays.
  /// - Throws: as above.
  init(
    _ given: Configuration, _ numbers: ServiceNumbers, _ surroundings: Surroundings, hostsOf earlier: Preparation,
    lists texts: ListTexts = ListTexts()
  ) throws(StartError) {
    let lists = (texts: texts, loaded: earlier.plan.lists)
    switch earlier.hosts {
    case .octets(let octets):
      try self.init(
        given, numbers, surroundings, lists, HostsReading(octets: octets), missingHosts: earlier.missingHosts)
    case .large:
      let reading = HostsReading(given.names)
      if let failure = reading.failure { throw .other("hosts file \(failure)") }
      try self.init(given, numbers, surroundings, lists, reading, missingHosts: nil)
    }
  }

  private init(
    _ given: Configuration, _ numbers: ServiceNumbers, _ surroundings: Surroundings,
    _ lists: (texts: ListTexts, loaded: LoadedLists), _ reading: HostsReading, missingHosts: String?
  ) throws(StartError) {
    let configuration = given.withoutOurselves(surroundings.listeners, surroundings.logger)
    var numbers = numbers
    system = SystemResolvers(notAt: surroundings.listeners)
    self.missingHosts = missingHosts
    hosts = reading.octets.count <= Hosts.longest ? .octets(reading.octets) : .large
    let counters = configuration.rules.enumerated().map { numbers.rules.number(of: $1.name ?? "\($0 + 1)") }
    let plan = RoutingPlan(
      configuration, hosts: reading.file, searchDomains: system.searchDomains,
      loopZone: surroundings.loopZone, instance: surroundings.instance, counters: counters,
      lists: {
        LoadedLists(
          configuration, $0, surroundings.lists, surroundings.listKey, keeping: lists.texts, after: lists.loaded)
      }, numbers: &numbers.routes)
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
    encrypted = EncryptedPolicy(configuration, tables, surroundings.newConnections)
  }
}

extension Configuration {
  /// The idle timeout sent to TCP clients, in units of 100 ms.
  var keepalive: Int32 { Int32(clamping: listen.tcpIdle.nanoseconds / 100_000_000) }
}

extension Configuration.Listen {
  /// The prefixes that may currently ask. Asks the kernel for those of `"connected"`.
  var allowedNow: [IPPrefix] { allow.now }
}

extension [Configuration.ClientNetwork] {
  /// The prefixes that these currently are. Asks the kernel for those of `"connected"`.
  var now: [IPPrefix] {
    flatMap { network in
      switch network {
      case .prefix(let prefix): [prefix]
      case .connected: AccessPolicy.connectedNetworks()
      }
    }
  }
}

extension QueryTables {
  package init(
    _ configuration: Configuration, _ plan: RoutingPlan, cache: MessageCache, network: CurrentNetwork, keepalive: Int32
  ) {
    let providers = configuration.providers
    self.init(
      access: AccessPolicy(configuration.listen.allowedNow), table: plan.table, routes: plan.routes, cache: cache,
      network: network,
      cacheEnabled: configuration.cache.isEnabled, maxUDPPayload: configuration.listen.maxUDPPayload,
      keepalive: keepalive, passesSubnets: { providers[$0].clientSubnet == .fromClient },
      knowsFlags: { providers[$0].kind.knowsDNSSECFlags })
  }
}
