// Forwarder.swift -- the whole program without its command line: tables, threads, listeners, resolver.
//
// Made and run on the main thread, which becomes the resolver's. Listener threads run the hot path only.

import Configuration
import DNSWire
import EventLoop
import Glibc
import HTTPClient
import HTTPDNS
import Listener
import LocalDNS
import Logging
import MessageCache
import Persistence
import Refresh
import Routing
import Telemetry

/// Why the program could not start.
public enum StartError: Error {
  /// An address could not be listened on.
  case listen(ListenError)
  /// Anything else, in one line for a person.
  case other(String)
}

/// A forwarder with one configuration.
public final class Forwarder {
  /// The resolver's loop.
  public let loop: EventLoop
  /// The cold path.
  public let resolver: Resolver
  /// The numbers of what it does; to be read on the loop.
  public let statistics = StatisticsSource()
  private let configuration: Configuration
  private let logger: Logger
  private let plan: RoutingPlan
  private let tables: QueryTables
  private let queries: ClientQueries
  private let outbox: UDPOutbox
  private let network = CurrentNetwork()
  private let local: LocalDNSUpstream
  private let loopGuard: LoopGuard
  private let listenerAddresses: [SocketAddress]
  private let ledger: UnitLedger?
  private var listenerThreads: [ListenerThread] = []
  private let connections: TCPConnectionTable
  private var tcpListeners: [TCPListener] = []
  private let tcpService: TCPService
  /// Whether it reads no more queries, and ends when those under way are answered. Resolver's loop only.
  public private(set) var isStopping = false

  /// What clients may wait for at once, as a multiple of the questions under way: many wait for one question.
  private static let waitersPerQuestion = 4
  /// How long SIGTERM waits for what is under way.
  private static let drainTime = Duration.seconds(2)
  /// How often it looks whether that is done.
  private static let drainCheck = Duration.milliseconds(10)

  /// Builds everything; binds and asks nothing yet.
  ///
  /// - Throws: `StartError`
  public init(_ given: Configuration, logger: Logger) throws(StartError) {
    let listeners = given.listen.addresses.map { SocketAddress($0) }
    let configuration = given.withoutOurselves(listeners, logger)
    self.configuration = configuration
    self.logger = logger
    let loop: EventLoop
    do { loop = try EventLoop() } catch { throw .other(error.description) }
    self.loop = loop
    let system = SystemResolvers.find(notAt: listeners)
    let client = LocalDNSClient(loop: loop)
    let loopGuard = LoopGuard(client, loop: loop, logger: logger)
    self.loopGuard = loopGuard
    listenerAddresses = listeners
    let plan = RoutingPlan(
      configuration, hosts: Forwarder.hosts(configuration, logger), searchDomains: system.searchDomains,
      loopZone: loopGuard.zone)
    self.plan = plan
    let ledger = Forwarder.ledger(configuration, loop, logger)
    self.ledger = ledger
    let local = LocalDNSUpstream(
      client, systemServers: system.servers, configured: LocalServers(configuration.localDNS.servers),
      others: plan.routes.map(\.localServers), loopGuard: loopGuard)
    self.local = local
    nonisolated(unsafe) let upstreams = try Forwarder.upstreams(configuration, loop, client, local, ledger, logger)
    let cache = MessageCache(
      CacheBounds(
        maxOctets: configuration.cache.maxBytes, maxEntries: configuration.cache.maxEntries,
        staleTTL: UInt32(clamping: configuration.cache.staleTTL.components.seconds)))
    let keepalive = Int32(clamping: configuration.listen.tcpIdle.nanoseconds / 100_000_000)
    tables = QueryTables(
      configuration, plan, cache: cache, network: network, keepalive: keepalive,
      subnetRoutes: plan.routes.indices.filter { index in
        plan.routes[index].providers.contains { upstreams[$0].takesClientSubnet }
      })
    queries = ClientQueries(capacity: configuration.listen.maxInFlight * Forwarder.waitersPerQuestion)
    let outbox = UDPOutbox(responseSize: configuration.listen.maxUDPPayload + ResponseWriter.overhead)
    self.outbox = outbox
    nonisolated(unsafe) let replies = ReplySender(
      queries, maxUDPPayload: configuration.listen.maxUDPPayload, keepalive: keepalive, counters: statistics.waiting
    ) { outbox.add($0, through: $1, to: $2) }
    let occasional = OccasionalLog(logger)
    // The resolver gets what is used on its loop only; nobody else touches these objects on another thread.
    resolver = Resolver(
      on: loop, settings: ResolverSettings(configuration, plan.routes), cache: cache, network: network,
      upstreams: upstreams, local: local, replies: replies
    ) { name, failure in
      let text = "\(name == "localdns" ? "" : "provider ")\(name): \(failure.reason)"
      occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
    }
    connections = TCPConnectionTable(
      limits: TCPLimits(
        connections: configuration.listen.tcpConnections, perClient: configuration.listen.tcpPerClient,
        idle: configuration.listen.tcpIdle))
    tcpService = TCPService(
      tables, queries: queries, replies: replies, resolver: resolver, counters: statistics.tcp)
    statistics.follow(
      StatisticsSource.Parts(
        resolver: resolver, cache: cache, queries: queries, connections: connections,
        mostQuestionsUnderWay: configuration.listen.maxInFlight))
  }

  /// Listens on every configured address.
  ///
  /// - Returns: the addresses, with the ports that the kernel chose where 0 was given.
  /// - Throws: `StartError.listen`; a missing IPv6 loopback is only logged.
  public func bind() throws(StartError) -> [SocketAddress] {
    var sockets: [UDPSocket] = []
    for endpoint in configuration.listen.addresses {
      do throws(ListenError) {
        let service = tcpService
        let listener = try TCPListener(binding: SocketAddress(endpoint), on: loop, table: connections) {
          service.accept($0, $1)
        }
        sockets.append(try UDPSocket(binding: listener.address))
        tcpListeners.append(listener)
      } catch {
        guard endpoint.address.isIPv6, error.code == EADDRNOTAVAIL || error.code == EAFNOSUPPORT else {
          throw .listen(error)
        }
        logger.warning("not listening on \(error.reason)")
      }
    }
    guard !sockets.isEmpty else { throw .other("none of listen.addresses exists on this machine") }
    statistics.follow(sockets)
    for socket in sockets {
      do {
        try addThreads(for: socket)
      } catch { throw .other("no listener thread for \(socket.address): \(error)") }
    }
    return sockets.map(\.address)
  }

  /// Makes the threads of one socket, the last helper first: each wakes the one that was made before it.
  private func addThreads(for socket: UDPSocket) throws {
    let count = configuration.listen.workers == 0 ? sysconf(Int32(_SC_NPROCESSORS_ONLN)) : configuration.listen.workers
    var helper: ListenerThread?
    for left in (0..<count).reversed() {
      let port = try UDPPort(
        UDPListener(on: socket, responseSize: responseSize), path: QueryPath(tables, statistics.makeListener()),
        queries: queries, resolverLoop: loop)
      let thread = try ListenerThread(port, left == 0 ? .first : .helper, helper: helper)
      listenerThreads.append(thread)
      helper = thread
    }
  }

  /// Serves until `stop`; the calling thread becomes the resolver's.
  ///
  /// - Throws: `StartError.other` where there is no thread for a listener.
  public func run() throws(StartError) {
    loop.everyTurn { [unowned self] in turn() }
    loop.beforeWaiting { [outbox] in outbox.flush() }
    do throws(StartError) {
      for thread in listenerThreads { try thread.start() }
    } catch {
      for thread in listenerThreads { thread.join() }
      throw error
    }
    // Not before the loop runs: until then no thread is the resolver's.
    let upkeep = makeUpkeep()
    loop.execute { [loop, listenerAddresses] in upkeep.start(on: loop, notAt: listenerAddresses) }
    loop.run()
    for thread in listenerThreads { thread.join() }
    ledger?.close()
    upkeep.close()
  }

  /// Stops reading, finishes what is under way within 2 s, and ends `run`. Resolver's loop only.
  public func stop() {
    guard !isStopping else { return }
    isStopping = true
    for listener in tcpListeners { listener.stop() }
    connections.drain()
    loop.schedule(after: Forwarder.drainTime) { [unowned self] in
      connections.closeAll()
      loop.stop()
    }
    stopWhenDone()
  }

  /// Looks now and then: the last answer may be given by a job, after which no event ends the loop's wait, and listener
  /// threads may still hand over what they have read.
  private func stopWhenDone() {
    let running = listenerThreads.filter { !$0.stop() }
    if running.isEmpty, queries.inUse == 0, connections.count == 0 {
      loop.stop()
    } else {
      loop.schedule(after: Forwarder.drainCheck) { [unowned self] in stopWhenDone() }
    }
  }

  private func turn() { resolver.assumeIsolated { $0.takeQueries() } }

  private func makeUpkeep() -> Upkeep {
    Upkeep(
      configuration,
      Upkeep.Parts(
        resolver: resolver, cache: tables.cache, network: network, local: local, loopGuard: loopGuard,
        keep: routed(configuration.refresh.keep), preload: routed(configuration.refresh.preload),
        meanings: CacheMeanings(configuration, plan.routes)),
      loop: loop, logger: logger)
  }

  /// The questions for those names in the types of `refresh.types`, without those that are answered here.
  private func routed(_ names: [DomainName]) -> [RoutedQuestion] {
    names.flatMap { name in
      configuration.refresh.types.compactMap { type in
        route(of: name, type).map {
          RoutedQuestion(question: HTTPDNSQuestion(name: name.lowercased, type: type), route: $0)
        }
      }
    }
  }

  private var responseSize: Int { configuration.listen.maxUDPPayload + ResponseWriter.overhead }

  /// The types of names that are kept ahead.
  var refreshTypes: [RecordType] { configuration.refresh.types }

  /// The route of a name; nil where it is answered here.
  func route(of name: DomainName, _ type: RecordType) -> UInt16? {
    guard case .route(let number) = decision(name, type) else { return nil }
    return number
  }

  private func decision(_ name: DomainName, _ type: RecordType) -> RouteDecision {
    name.lowercased.octets.withUnsafeBufferPointer {
      plan.table.find($0.baseAddress!, length: $0.count, type: type.rawValue)
    }
  }

  /// Asks as the daemon would, past the cache: rules, special names, providers, LocalDNS. Runs the loop until the answer
  /// is there; nothing needs to be bound.
  public func ask(_ question: Question) -> ResolvedAnswer? {
    switch decision(question.name, question.type) {
    case .local(let index):
      return ResolvedAnswer(plan.table.localAnswers[Int(index)], to: question.name)
    case .route(let route):
      let upstreamQuestion = HTTPDNSQuestion(name: question.name.lowercased, type: question.type)
      return runLoop { [resolver] in await resolver.resolve(upstreamQuestion, route: route, fresh: true) }
    }
  }

  /// Runs the loop until `body` has ended, and gives what it came to: for who asks without serving anybody.
  func runLoop<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value? {
    let box = ValueBox<Value>()
    Task(executorPreference: loop) { [loop] in
      box.value = await body()
      loop.stop()
    }
    loop.run()
    return box.value
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

  /// Where a provider has a budget, what it costs is kept beyond a restart.
  private static func ledger(_ configuration: Configuration, _ loop: EventLoop, _ logger: Logger) -> UnitLedger? {
    guard configuration.providers.contains(where: { $0.unitsPerDay > 0 }) else { return nil }
    let file = StateFile(path: "\(configuration.stateDirectory)/units") { [logger] problem in
      logger.warning("units_per_day will begin anew with a restart: \(problem)")
    }
    return UnitLedger(file, on: loop)
  }

  private static func upstreams(
    _ configuration: Configuration, _ loop: EventLoop, _ client: LocalDNSClient, _ local: LocalDNSUpstream,
    _ ledger: UnitLedger?, _ logger: Logger
  ) throws(StartError) -> [any Upstream] {
    let factory = ProviderFactory(
      loop: loop, localClient: client, systemServers: { local.addresses(LocalServers([LocalServers.Entry.system])) },
      localServers: configuration.localDNS.servers,
      maxInFlight: configuration.listen.maxInFlight, stateDirectory: configuration.stateDirectory, ledger: ledger
    ) { [logger] in logger.log(level: $0, "\($1)") }
    var upstreams: [any Upstream] = []
    for provider in configuration.providers {
      do throws(HTTPSetupError) {
        upstreams.append(try factory.make(provider))
      } catch { throw .other("provider \(provider.name): \(error.description)") }
    }
    return upstreams
  }
}

/// Carries a value from a task on the loop to the thread that runs the loop: the same one.
private final class ValueBox<Value>: @unchecked Sendable {
  var value: Value?
}

extension QueryTables {
  package init(
    _ configuration: Configuration, _ plan: RoutingPlan, cache: MessageCache, network: CurrentNetwork, keepalive: Int32,
    subnetRoutes: [Int]
  ) {
    let allowed = configuration.listen.allow.flatMap { network in
      switch network {
      case .prefix(let prefix): [prefix]
      case .connected: AccessPolicy.connectedNetworks()
      }
    }
    let prepared = PreparedAnswers(plan.table.localAnswers)
    self.init(
      access: AccessPolicy(allowed), routes: plan.table, prepared: prepared, cache: cache,
      anyAnswer: prepared.anyAnswer, cacheEnabled: configuration.cache.isEnabled,
      subnetRoutes: RouteSet(subnetRoutes.map(UInt16.init), count: plan.routes.count),
      networkRoutes: RouteSet(
        plan.routes.indices.filter { plan.routes[$0].belongsToNetwork }.map(UInt16.init), count: plan.routes.count),
      network: network,
      maxUDPPayload: configuration.listen.maxUDPPayload, keepalive: keepalive)
  }
}

extension ResolverSettings {
  init(_ configuration: Configuration, _ routes: [Route]) {
    self.init(
      routes: routes, maxInFlight: configuration.listen.maxInFlight, cacheEnabled: configuration.cache.isEnabled,
      nxdomainCut: configuration.cache.nxdomainCut,
      staleTTL: UInt32(clamping: configuration.cache.staleTTL.components.seconds),
      localTimeout: configuration.localDNS.timeout,
      longestFailureWait: configuration.cache.maxFailureTTL,
      rebindFilter: configuration.names.rebindProtection
        ? RebindFilter(allowed: configuration.names.rebindAllow) : nil)
  }
}
