// Forwarder.swift -- the whole daemon without its command line: tables, threads, listeners, resolver.
//
// Created and run on the main thread, which becomes the resolver's. Listener threads run only the hot path.

import Configuration
import DNSWire
import EventLoop
import Fleet
import Frontend
import HTTPClient
import HTTPDNS
import ListStore
import Listener
import LocalDNS
import Logging
import MessageCache
import Persistence
import Refresh
import Resolver
import Routing
import ServiceManager
import Telemetry
import Upstreams

/// A forwarder. `Reloader` gives it another configuration.
package final class Forwarder {
  /// The resolver's loop.
  package let loop: EventLoop
  /// The cold path.
  package let resolver: Resolver
  /// The statistics. Read them on the loop.
  package let statistics = StatisticsSource()
  /// Off until something switches it on. Resolver's loop only, or before that runs.
  package let queryLog: QueryLog
  /// Names whose clients got SERVFAIL.
  let failingNames = FailingNames()
  /// The current configuration and the tables made from it.
  private(set) var preparation: Preparation
  private(set) var providers: ProviderSet
  /// What all configurations share.
  let surroundings: Preparation.Surroundings
  private let logger: Logger
  /// Where clients meet the daemon.
  let clients: ClientSide
  private let local: LocalDNSUpstream
  private let loopGuard: LoopGuard
  private let nat64: NAT64
  private let localClient: LocalDNSClient
  /// The version of the program, for other daemons of a fleet. Set it before the daemon serves.
  package var version = ""
  private var factory: ProviderFactory
  /// The lists and sets of rules, while it runs.
  private(set) lazy var ruleParts = RuleParts(
    surroundings.lists, factory.certificateClock, resolver, on: loop, logger
  ) { [weak self] in await self?.addresses(ofListHost: $0) ?? [] }
  private(set) var backgroundWork: BackgroundWork?
  /// The log for failures that may be frequent.
  package let occasional: OccasionalLog
  private let networkLog: NetworkLog
  let watch: AnswerWatch
  /// Called when the network provides other search domains or, for `"connected"`, other prefixes than those that the
  /// tables were made with.
  var tablesAreOutdated: ((_ hasResolvers: Bool) -> Void)?
  /// Called in every turn of the loop, after all other work.
  package var afterTurn: (() -> Void)?
  /// Called once, before the first answer over UDP that needed the resolver is sent.
  package var beforeFirstAnswer: (() -> Void)?

  /// Queries that may wait at once, as a multiple of the questions in flight: many clients wait for one question.
  private static let waitersPerQuestion = 4

  /// Builds everything, but binds no socket and sends no query.
  ///
  /// - Parameters:
  ///   - inherited: sockets from the service manager, which are served instead of `listen.addresses`.
  ///   - recorder: receives the counts of `flushCounts`.
  /// - Throws: `StartError`
  package init(
    _ given: Configuration, inherited: [InheritedSocket] = [], logger: Logger, recorder: FlightRecorder? = nil
  ) throws(StartError) {
    let listeners = inherited.isEmpty ? given.listen.addresses.map { SocketAddress($0) } : inherited.map(\.address)
    self.logger = logger
    let loop: EventLoop
    do { loop = try EventLoop() } catch { throw .other(error.description) }
    self.loop = loop
    queryLog = QueryLog(loop)
    let occasional = OccasionalLog(logger, recorder: recorder, on: loop)
    self.occasional = occasional
    networkLog = NetworkLog(occasional)
    let client = LocalDNSClient(loop: loop)
    localClient = client
    let loopGuard = LoopGuard(client, loop: loop, listeners: listeners, logger: logger)
    self.loopGuard = loopGuard
    let cache = MessageCache(
      CacheBounds(
        maxOctets: given.cache.maxBytes, maxEntries: given.cache.maxEntries,
        staleTTL: given.cache.staleTTL.ttl))
    let state = StateFolder(given.stateDirectory, logger)
    surroundings = Preparation.Surroundings(
      listeners: listeners, cache: cache, network: CurrentNetwork(of: cache), loopZone: loopGuard.zone, logger: logger,
      lists: ListFolder(state) { [logger] in logger.log(level: $0, "\($1)") })
    let preparation = try Preparation(given, ServiceNumbers(), surroundings)
    self.preparation = preparation
    let configuration = preparation.configuration
    let local = LocalDNSUpstream(
      client, on: loop, systemServers: preparation.system.servers,
      configured: configuration.localDNS.servers,
      others: preparation.plan.routes.map(\.localServers), loopGuard: loopGuard)
    self.local = local
    let systemServers = { local.addresses([.system]) }
    nat64 = NAT64(client, on: loop, servers: systemServers)
    factory = ProviderFactory(
      loop: loop, localClient: client, systemServers: systemServers, localServers: [], nat64: nat64,
      maxInFlight: configuration.listen.maxInFlight, state: state,
      ledger: nil
    ) { [logger] in logger.log(level: $0, "\($1)") }
    factory.follow(configuration, logger, occasional)
    nat64.follow(configuration.names.dns64)
    do throws(ProviderSetupError) {
      providers = try ProviderSet().following(configuration, factory)
    } catch { throw .other(error.description) }
    nonisolated(unsafe) let upstreams: [any Upstream] = providers.upstreams
    nonisolated(unsafe) let localUpstream: (any LocalUpstream)? = local
    let queries = ClientQueries(capacity: configuration.listen.maxInFlight * Forwarder.waitersPerQuestion)
    let outbox = UDPOutbox(responseSize: configuration.listen.maxUDPPayload + ResponseWriter.overhead)
    nonisolated(unsafe) let replies = ReplySender(
      queries, on: loop, maxUDPPayload: configuration.listen.maxUDPPayload,
      counters: statistics.waiting
    ) { outbox.add($0, through: $1, to: $2) }
    replies.log = queryLog
    replies.failing = failingNames
    let watch = AnswerWatch(on: loop) { [logger] in logger.debug("\($0)") }
    self.watch = watch
    replies.watch = watch
    // The resolver uses these objects on its loop only; no other thread touches them.
    resolver = Resolver(
      on: loop, settings: ResolverSettings(configuration, preparation.plan.routes), cache: cache,
      network: surroundings.network,
      upstreams: upstreams, local: localUpstream, replies: replies, table: preparation.plan.table,
      onLimit: { bound in occasional.log(bound, now: BootInstant.now) }
    ) { name, failure in
      occasional.log(failure, of: name, now: BootInstant.now)
    }
    clients = ClientSide(
      configuration.listen, preparation.tables, inherited: inherited, replies, outbox, resolver,
      counters: statistics.tcp, log: queryLog, occasional, on: loop)
    statistics.follow(
      StatisticsSource.Parts(
        resolver: resolver, cache: cache, queries: queries, connections: clients.connections, localClient: client,
        maxQuestionsInFlight: configuration.listen.maxInFlight,
        lists: { [weak self] in self?.ruleParts.lists.reports ?? [] },
        sets: { [weak self] in self?.ruleParts.sets.statuses ?? [] },
        encrypted: { [weak self] in self?.clients.encrypted?.report },
        outbox: outbox))
    nameRules()
  }

  private func nameRules() {
    queryLog.rules = preparation.numbers.rules
    statistics.rules = preparation.numbers.rules
  }

  /// The address that names below `InstanceName.zone` have, as long as this process runs.
  package var instance: IPAddress { surroundings.instance }

  /// The current configuration, without resolvers that are the daemon itself.
  var configuration: Configuration { preparation.configuration }

  /// Listens on every configured address, or on the inherited sockets.
  ///
  /// - Returns: the addresses, with the ports that the kernel chose for port 0.
  /// - Throws: `StartError.listen` if an address cannot be bound, `StartError.other` for any other failure. An IPv6
  ///   address that the machine does not have is only logged.
  package func bind() throws(StartError) -> [ListeningAddress] {
    let sockets = try clients.bind(configuration.listen, logger) { socket in
      try UDPPort(
        UDPListener(on: socket, responseSize: configuration.listen.maxUDPPayload + ResponseWriter.overhead),
        path: QueryPath(preparation.tables, statistics.makeListener()), queries: clients.queries, resolverLoop: loop,
        tap: queryLog.makeTap())
    }
    statistics.follow(sockets.datagrams)
    return sockets.addresses + (try listenEncrypted())
  }

  private func listenEncrypted() throws(StartError) -> [ListeningAddress] {
    guard let policy = preparation.encrypted else { return [] }
    let labels = TokenLabels()
    queryLog.tokens = labels
    let encrypted = try EncryptedSide(
      configuration.encrypted, policy,
      EncryptedFrontend.Surroundings(
        queries: clients.queries, counters: statistics.makeListener(), tap: queryLog.makeTap(), labels: labels,
        connectionCounters: EncryptedCounters(), occasional: occasional, wakeResolver: { [loop] in loop.wake() }),
      on: loop, logger)
    clients.add(encrypted)
    return encrypted.addresses
  }

  /// The threads other than the resolver's, for a watchdog; none before `bind`.
  package var watchedThreads: [any WatchedThread] { clients.watchedThreads }

  /// The names of threads that do not respond within `patience`; none while the daemon stops. Call it from a task that
  /// prefers the loop.
  package func standingThreads(within patience: Duration) async -> [String] {
    let standing = isStopping ? [] : await RollCall.standing(watchedThreads, on: loop, within: patience)
    return isStopping ? [] : standing
  }

  /// Serves until `stop`. The calling thread becomes the resolver's.
  ///
  /// - Throws: `StartError.other` if a listener thread cannot start.
  package func run() throws(StartError) {
    loop.everyTurn { [self] in turn() }
    loop.beforeWaiting { [self] in finishTurn() }
    defer {
      loop.everyTurn(nil)
      loop.beforeWaiting(nil)
    }
    try clients.start()
    factory.state.use()
    // BackgroundWork starts once the loop runs: before that, no thread is the resolver's.
    nonisolated(unsafe) let backgroundWork = makeBackgroundWork()
    self.backgroundWork = backgroundWork
    nonisolated(unsafe) let forwarder = self
    loop.execute { [loop, surroundings] in
      backgroundWork.start(on: loop, notAt: surroundings.listeners)
      forwarder.ruleParts.start(forwarder.preparation.plan)
      forwarder.clients.encrypted?.follow()
    }
    loop.run()
    clients.join()
    queryLog.finish()
    factory.ledger?.close()
    backgroundWork.close()
    ruleParts.sets.close()
    factory.state.leave()
  }

  /// Stops reading, finishes the queries in flight within 2 s, and ends `run`. Resolver's loop only.
  ///
  /// Queries that arrive from now on wait in the sockets: in those of a service manager, until the next process reads
  /// them. Every query that was read gets an answer, at the end of that time with stale data or SERVFAIL.
  package func stop() {
    ruleParts.lists.stop()
    clients.stop()
  }

  /// Whether it has stopped reading queries and ends when those in flight are answered. Resolver's loop only.
  package var isStopping: Bool { clients.isStopping }

  private func finishTurn() {
    if !clients.outbox.isEmpty, let action = beforeFirstAnswer {
      beforeFirstAnswer = nil
      action()
    }
    clients.outbox.flush()
    afterTurn?()
  }

  private func turn() {
    resolver.assumeIsolated { $0.takeQueries() }
    clients.logRefusals(by: preparation)
    queryLog.turn()
  }

  private func makeBackgroundWork() -> BackgroundWork {
    BackgroundWork(
      configuration,
      BackgroundWork.Parts(
        resolver: resolver, providers: { [weak self] in self?.providers ?? ProviderSet() }, cache: surroundings.cache,
        network: surroundings.network, local: local, loopGuard: loopGuard, nat64: nat64,
        keep: routed(configuration.refresh.keep), preload: routed(configuration.refresh.preload),
        meanings: CacheMeanings(preparation), state: factory.state, networkLog: networkLog,
        fleet: FleetConnection.Parts(
          resolver: resolver, local: local, localClient: localClient, nat64: nat64, logger: logger,
          ledger: FleetLedger(in: factory.state, on: loop, logger), version: version),
        routes: preparation.plan.routes,
        addressesMayHaveChanged: { [weak self] in self?.addressesMayHaveChanged() },
        cacheIsLoaded: { [weak self] in self?.ruleParts.sets.refill() },
        networkHasChanged: { [weak self] in self?.ruleParts.lists.networkHasChanged() },
        searchDomainsFound: { [weak self] in self?.searchDomainsFound($0, isNew: $1) }),
      loop: loop, logger: logger)
  }

  /// The store that daemons share; nil without one. Resolver's loop only.
  ///
  /// - Parameter withMembers: whether to ask the store which daemons there are.
  package func fleetReport(withMembers: Bool) async -> FleetReport? {
    guard let fleet = backgroundWork?.fleet else { return nil }
    return withMembers ? await fleet.fullReport() : fleet.report
  }

  /// Makes the providers of another configuration. Nothing uses them yet.
  ///
  /// - Throws: `StartError.other` if a provider cannot be made.
  func providers(for configuration: Configuration) throws(StartError) -> ProviderSet {
    factory.follow(configuration, logger, occasional)
    do throws(ProviderSetupError) {
      return try providers.following(configuration, factory)
    } catch { throw .other(error.description) }
  }

  /// Switches to another configuration; the listener threads follow a moment later. Resolver's loop only.
  ///
  /// - Parameter renewal: the files of the encrypted listeners; nil without such listeners.
  func use(_ preparation: Preparation, _ providers: ProviderSet, _ renewal: EncryptedFiles.Renewal?) {
    let old = self.providers
    self.providers = providers
    let (configuration, routes) = (preparation.configuration, preparation.plan.routes)
    let servers = local.allServers
    local.use(configured: configuration.localDNS.servers, others: routes.map(\.localServers))
    nat64.follow(configuration.names.dns64)
    let resolved = ResolverConfiguration(
      ResolverSettings(configuration, routes), providers.upstreams, providerNumbers: preparation.providerNumbers)
    resolver.assumeIsolated { $0.use(resolved, preparation.plan.table) }
    providers.start()
    old.retire(for: providers)
    surroundings.cache.setStaleTTL(configuration.cache.staleTTL.ttl)
    use(tablesOf: preparation, renewal, isForNetwork: false)
    if local.allServers != servers { loopGuard.probe(local.allServers) }
  }

  /// Switches to other tables; the listener threads follow a moment later. Resolver's loop only.
  ///
  /// - Parameter isForNetwork: whether only the network has changed, and not the configuration.
  func use(
    tablesOf preparation: Preparation, _ renewal: EncryptedFiles.Renewal? = nil, isForNetwork: Bool = true
  ) {
    self.preparation = preparation
    nameRules()
    let configuration = preparation.configuration
    resolver.assumeIsolated { $0.use(preparation.plan.table) }
    clients.use(preparation, renewal)
    backgroundWork?.use(
      configuration, keep: routed(configuration.refresh.keep), preload: routed(configuration.refresh.preload),
      CacheMeanings(preparation), preparation.plan.routes, isForNetwork: isForNetwork)
    ruleParts.use(preparation.plan)
  }

  /// The addresses by which a server of lists is reached: by the rules' names, but not by lists and clients, so that no list can
  /// block or misroute its own host.
  private func addresses(ofListHost host: String) async -> [IPAddress] {
    if let address = IPAddress(text: host) { return nat64.reach([address]) }
    guard let name = DomainName(text: host)?.lowercased else { return [] }
    var found: [IPAddress] = []
    for type in [RecordType.a, .aaaa] {
      found += await addresses(type, of: name, decision(name, type, withLists: false), fresh: false) ?? []
    }
    return nat64.reach(found)
  }

  /// The network provides these search domains: logs what they mean, and has the tables rebuilt if they differ.
  private func searchDomainsFound(_ domains: [DomainName], isNew: Bool) {
    let isOther = SearchDomain.judged(domains) != preparation.plan.searchDomains
    if isNew || isOther, let line = NetworkView.line(about: SearchDomain.judged(domains), configuration) {
      networkLog.log("search domains", line)
    }
    if isOther { tablesAreOutdated?(!local.systemServers.isEmpty) }
  }

  /// The addresses of the machine may have changed: has the tables rebuilt if `"connected"` stands for other networks.
  private func addressesMayHaveChanged() {
    let clients = [
      (configuration.listen.allow, preparation.tables.access),
      (configuration.encryptedClients, preparation.encrypted?.tables.access ?? preparation.tables.access),
    ]
    let isOther = clients.contains { $0.contains(.connected) && Set($0.now) != $1.allowed }
    if isOther { tablesAreOutdated?(true) }
  }

  /// The questions for those names in the types of `refresh.types`, without those that are answered locally.
  private func routed(_ names: [DomainName]) -> [RoutedQuestion] {
    names.flatMap { name in
      configuration.refresh.types.compactMap { type in
        route(of: name, type).map {
          RoutedQuestion(question: HTTPDNSQuestion(name: name.lowercased, type: type), route: $0)
        }
      }
    }
  }

  /// The route of a name; nil if it is answered locally.
  func route(of name: DomainName, _ type: RecordType) -> UInt16? {
    guard case .route(let number) = decision(name, type) else { return nil }
    return number
  }

  /// - Parameter withLists: whether lists count.
  func decision(
    _ name: DomainName, _ type: RecordType, from client: IPAddress? = nil, withLists: Bool = true
  ) -> RouteDecision {
    let table = preparation.plan.table
    let group = client.map { table.classes.number(of: $0) } ?? ClientClasses.none
    return name.lowercased.octets.withUnsafeBufferPointer {
      table.find($0.baseAddress!, length: $0.count, type: type.rawValue, from: group, withLists: withLists).decision
    }
  }

  /// Resolves as the daemon does, but past the cache: rules, special names, providers, LocalDNS. Runs the loop until
  /// the answer arrives; needs no bound socket.
  ///
  /// - Parameter client: who asks, for rules with `clients`; nil for the daemon itself.
  package func ask(_ question: Question, from client: IPAddress? = nil) -> ResolvedAnswer? {
    let decision = decision(question.name, question.type, from: client)
    return runLoop { [self] in await answer(to: question, decision, fresh: true) }
  }

  /// The addresses that a name has for others: past the rules, special names and the cache. Runs the loop until the answers
  /// arrive, which it can do once; needs no bound socket. Nil if an address type has no answer.
  package func addressesElsewhere(of name: DomainName) -> [IPAddress]? {
    let found = runLoop { [self] in
      var found: [IPAddress] = []
      for type in [RecordType.a, .aaaa] {
        guard let some = await addresses(type, of: name, .route(Route.Number.standard), fresh: true) else {
          return nil as [IPAddress]?
        }
        found += some
      }
      return found
    }
    return found ?? nil
  }

  /// The addresses of one type that a name has; nil without an answer.
  private func addresses(
    _ type: RecordType, of name: DomainName, _ decision: RouteDecision, fresh: Bool
  ) async -> [IPAddress]? {
    let question = Question(name: name, type: type)
    let answer = await answer(to: question, decision, fresh: fresh)
    guard let message = answer.response.message(to: question),
      message.responseCode == .noError || message.responseCode == .nxDomain
    else { return nil }
    return message.answers.filter { $0.type == type }.compactMap { IPAddress(octets: $0.rdata) }
  }

  private func answer(to question: Question, _ decision: RouteDecision, fresh: Bool) async -> ResolvedAnswer {
    switch decision {
    case .local(let index): return ResolvedAnswer(preparation.plan.table.localAnswers[Int(index)], to: question.name)
    case .route(let route):
      let upstreamQuestion = HTTPDNSQuestion(name: question.name.lowercased, type: question.type)
      return await resolver.resolve(upstreamQuestion, route: route, fresh: fresh)
    }
  }

  /// Runs the loop until `body` returns, and returns its value; for callers that serve no clients.
  func runLoop<Value: Sendable>(_ body: @escaping () async -> Value) -> Value? {
    var value: Value?
    loop.startTask { [loop] in
      value = await body()
      loop.stop()
    }
    loop.run()
    return value
  }
}
