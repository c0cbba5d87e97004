// Forwarder.swift -- the whole program without its command line: tables, threads, listeners, resolver.
//
// Made and run on the main thread, which becomes the resolver's. Listener threads run the hot path only.

import Configuration
import DNSWire
import EventLoop
import FairShares
import Frontend
import Glibc
import HTTPClient
import HTTPDNS
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

/// A forwarder. Reloader.swift gives it another configuration.
package final class Forwarder {
  /// The resolver's loop.
  package let loop: EventLoop
  /// The cold path.
  package let resolver: Resolver
  /// The numbers of what it does; to be read on the loop.
  package let statistics = StatisticsSource()
  /// Off unless somebody switches it on. Resolver's loop only, or before that runs.
  package let queryLog: QueryLog
  /// Names whose clients got SERVFAIL.
  let failingNames = FailingNames()
  /// What it has from its configuration.
  private(set) var preparation: Preparation
  private(set) var providers: ProviderSet
  /// What all configurations have in common.
  let surroundings: Preparation.Surroundings
  private let logger: Logger
  private let queries: ClientQueries
  private let outbox: UDPOutbox
  private let local: LocalDNSUpstream
  private let loopGuard: LoopGuard
  private let inherited: [InheritedSocket]
  private var factory: ProviderFactory
  private(set) var upkeep: Upkeep?
  private(set) var listenerThreads: [ListenerThread] = []
  private let connections: TCPConnectionTable
  private var tcpListeners: [TCPListener] = []
  private let tcpService: TCPService
  /// Queries beyond the rate limit, as far as the log was told.
  private var toldLimited = ToldRefusals()
  /// Queries over TCP that were put off, as far as the log has been told.
  private var toldDelayed: UInt64 = 0
  /// For failures that may be many.
  package let occasional: OccasionalLog
  private let networkLog: NetworkLog
  let watch: AnswerWatch
  /// Whether it reads no more queries, and ends when those under way are answered. Resolver's loop only.
  package private(set) var isStopping = false
  /// Called when the network hands out other search domains than those that the tables were made with.
  var searchDomainsHaveChanged: ((_ hasResolvers: Bool) -> Void)?
  /// Called in every turn of the loop, when everything else has been done.
  package var afterTurn: (() -> Void)?

  /// What clients may wait for at once, as a multiple of the questions under way: many wait for one question.
  private static let waitersPerQuestion = 4
  /// How long SIGTERM waits for what is under way.
  private static let drainTime = Duration.seconds(2)
  /// How long TCP clients have after that to take their last answers.
  private static let lastWords = Duration.milliseconds(200)
  /// How often it looks whether that is done.
  private static let drainCheck = Duration.milliseconds(10)

  /// Builds everything; binds and asks nothing yet.
  ///
  /// - Parameters:
  ///   - inherited: sockets from the service manager, which are served in the place of `listen.addresses`.
  ///   - recorder: gets the counts of `tellCounts`.
  /// - Throws: `StartError`
  package init(
    _ given: Configuration, inherited: [InheritedSocket] = [], logger: Logger, recorder: FlightRecorder? = nil
  ) throws(StartError) {
    let listeners =
      inherited.isEmpty ? given.listen.addresses.map { SocketAddress($0) } : inherited.map(\.address)
    self.inherited = inherited
    self.logger = logger
    let loop: EventLoop
    do { loop = try EventLoop() } catch { throw .other(error.description) }
    self.loop = loop
    queryLog = QueryLog(loop)
    let occasional = OccasionalLog(logger, recorder: recorder, on: loop)
    self.occasional = occasional
    networkLog = NetworkLog(occasional)
    let client = LocalDNSClient(loop: loop)
    let loopGuard = LoopGuard(client, loop: loop, logger: logger)
    self.loopGuard = loopGuard
    let cache = MessageCache(
      CacheBounds(
        maxOctets: given.cache.maxBytes, maxEntries: given.cache.maxEntries,
        staleTTL: UInt32(clamping: given.cache.staleTTL.components.seconds)))
    surroundings = Preparation.Surroundings(
      listeners: listeners, cache: cache, network: CurrentNetwork(of: cache), loopZone: loopGuard.zone, logger: logger)
    let preparation = try Preparation(given, ServiceNumbers(), surroundings)
    self.preparation = preparation
    let configuration = preparation.configuration
    let local = LocalDNSUpstream(
      client, systemServers: preparation.system.servers, configured: LocalServers(configuration.localDNS.servers),
      others: preparation.plan.routes.map(\.localServers), loopGuard: loopGuard)
    self.local = local
    factory = ProviderFactory(
      loop: loop, localClient: client,
      systemServers: { local.addresses(LocalServers([LocalServers.Entry.system])) }, localServers: [],
      maxInFlight: configuration.listen.maxInFlight, state: StateFolder(configuration.stateDirectory, logger),
      ledger: nil
    ) { [logger] in logger.log(level: $0, "\($1)") }
    factory.follow(configuration, logger, occasional)
    do throws(ProviderSetupError) {
      providers = try ProviderSet().following(configuration, factory)
    } catch { throw .other(error.description) }
    nonisolated(unsafe) let upstreams = providers.upstreams
    queries = ClientQueries(capacity: configuration.listen.maxInFlight * Forwarder.waitersPerQuestion)
    let outbox = UDPOutbox(responseSize: configuration.listen.maxUDPPayload + ResponseWriter.overhead)
    self.outbox = outbox
    nonisolated(unsafe) let replies = ReplySender(
      queries, maxUDPPayload: configuration.listen.maxUDPPayload, keepalive: configuration.keepalive,
      counters: statistics.waiting
    ) { outbox.add($0, through: $1, to: $2) }
    replies.log = queryLog
    replies.failing = failingNames
    let watch = AnswerWatch(on: loop) { [logger] in logger.debug("\($0)") }
    self.watch = watch
    replies.watch = watch
    // The resolver gets what is used on its loop only; nobody else touches these objects on another thread.
    resolver = Resolver(
      on: loop, settings: ResolverSettings(configuration, preparation.plan.routes), cache: cache,
      network: surroundings.network,
      upstreams: upstreams, local: local, replies: replies, table: preparation.plan.table,
      onLimit: { bound in occasional.log(bound, now: BootInstant.now) }
    ) { name, failure in
      occasional.log(failure, of: name, now: BootInstant.now)
    }
    connections = TCPConnectionTable(
      limits: TCPLimits(
        connections: configuration.listen.tcpConnections, perClient: configuration.listen.tcpPerClient,
        idle: configuration.listen.tcpIdle))
    connections.log(to: occasional)
    tcpService = TCPService(
      preparation.tables, queries: queries, replies: replies, loop: loop, counters: statistics.tcp
    ) { [resolver] slot in resolver.assumeIsolated { $0.accept(slot) } }
    tcpService.log = queryLog
    statistics.follow(
      StatisticsSource.Parts(
        resolver: resolver, cache: cache, queries: queries, connections: connections,
        mostQuestionsUnderWay: configuration.listen.maxInFlight,
        delayedQueries: { [tcpService] in tcpService.delayed }, outbox: outbox))
  }

  /// What it goes by.
  var configuration: Configuration { preparation.configuration }

  /// Listens on every configured address, or on the sockets that were handed over.
  ///
  /// - Returns: the addresses, with the ports that the kernel chose where 0 was given.
  /// - Throws: `StartError.listen`; a missing IPv6 loopback is only logged.
  package func bind() throws(StartError) -> [ListeningAddress] {
    let service = tcpService
    let streams = ListeningSockets.Streams(loop: loop, table: connections) { service.accept($0, $1) }
    let endpoints = configuration.listen.addresses.map { SocketAddress($0) }
    let sockets =
      inherited.isEmpty
      ? try ListeningSockets(binding: endpoints, streams, logger)
      : try ListeningSockets(adopting: inherited, insteadOf: endpoints, streams, logger)
    tcpListeners = sockets.streams
    for listener in tcpListeners {
      listener.onFailure = { [occasional] code in
        let text = "a TCP connection is not accepted: \(String(cString: strerror(code)))"
        occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
      }
    }
    statistics.follow(sockets.datagrams)
    for socket in sockets.datagrams {
      do {
        try addThreads(for: socket)
      } catch { throw .other("no listener thread for \(socket.address): \(error)") }
    }
    return sockets.addresses
  }

  /// Makes the threads of one socket, the last helper first: each wakes the one that was made before it.
  private func addThreads(for socket: UDPSocket) throws {
    let count = configuration.listen.workers == 0 ? sysconf(Int32(_SC_NPROCESSORS_ONLN)) : configuration.listen.workers
    var helper: ListenerThread?
    for left in (0..<count).reversed() {
      let port = try UDPPort(
        UDPListener(on: socket, responseSize: responseSize),
        path: QueryPath(preparation.tables, statistics.makeListener()), queries: queries, resolverLoop: loop,
        tap: queryLog.makeTap())
      let name = "listener \(left + 1) of \(socket.address)"
      let thread = try ListenerThread(port, left == 0 ? .first : .helper, helper: helper, name: name)
      listenerThreads.append(thread)
      helper = thread
    }
  }

  /// The threads beside the resolver's, for a watchdog; none before `bind`.
  package var watchedThreads: [any WatchedThread] { listenerThreads }

  /// The names of those that do not go round when they are asked to; none while it ends. To be called from a task that
  /// prefers the loop.
  package func standingThreads(within patience: Duration) async -> [String] {
    let standing = isStopping ? [] : await RollCall.standing(watchedThreads, on: loop, within: patience)
    return isStopping ? [] : standing
  }

  /// Serves until `stop`; the calling thread becomes the resolver's.
  ///
  /// - Throws: `StartError.other` where there is no thread for a listener.
  package func run() throws(StartError) {
    loop.everyTurn { [unowned self] in turn() }
    loop.beforeWaiting { [unowned self] in
      outbox.flush()
      afterTurn?()
    }
    do throws(StartError) {
      for thread in listenerThreads { try thread.start() }
    } catch {
      for thread in listenerThreads { thread.join() }
      throw error
    }
    factory.state.use()
    // Not before the loop runs: until then no thread is the resolver's.
    let upkeep = makeUpkeep()
    self.upkeep = upkeep
    loop.execute { [loop, surroundings] in upkeep.start(on: loop, notAt: surroundings.listeners) }
    loop.run()
    for thread in listenerThreads { thread.join() }
    queryLog.finish()
    factory.ledger?.close()
    upkeep.close()
    factory.state.leave()
  }

  /// Stops reading, finishes what is under way within 2 s, and ends `run`. Resolver's loop only.
  ///
  /// What comes from now on waits in the sockets: in those of a service manager until the next process reads it. Whatever
  /// was read is answered, at the end of that time with stale data or SERVFAIL.
  package func stop() {
    guard !isStopping else { return }
    isStopping = true
    stopWhenDone()
    for listener in tcpListeners { listener.stop() }
    connections.drain()
    loop.schedule(after: Forwarder.drainTime) { [unowned self] in
      resolver.assumeIsolated { $0.giveUp() }
      loop.schedule(after: Forwarder.lastWords) { [unowned self] in
        connections.closeAll()
        loop.stop()
      }
    }
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

  private func turn() {
    resolver.assumeIsolated { $0.takeQueries() }
    tellLimited()
    tellRefused()
    queryLog.turn()
  }

  /// A listener thread has woken the loop for that, or it turns anyway.
  private func tellRefused() {
    let now = loop.now.nanoseconds
    guard let refused = preparation.tables.access.takeRefused(now: now) else { return }
    occasional.log(.info, reason: "listen.allow", now: now, refused.text)
  }

  /// A listener thread has woken the loop for that, or it turns anyway.
  private func tellLimited() {
    let isDelayed = tcpService.delayed > toldDelayed
    toldDelayed = tcpService.delayed
    guard toldLimited.hasNews(of: preparation.tables.rateLimit) || isDelayed else { return }
    let text =
      "clients send more queries than listen.rate_limit allows: over UDP they get an empty answer with TC, over TCP they "
      + "wait up to 1 s; raise it if they may"
    occasional.log(.warning, reason: "rate_limit", now: BootInstant.now.nanoseconds, text)
  }

  private func makeUpkeep() -> Upkeep {
    Upkeep(
      configuration,
      Upkeep.Parts(
        resolver: resolver, cache: surroundings.cache, network: surroundings.network, local: local,
        loopGuard: loopGuard, keep: routed(configuration.refresh.keep), preload: routed(configuration.refresh.preload),
        meanings: CacheMeanings(preparation), state: factory.state, networkLog: networkLog
      ) { [unowned self] in searchDomainsFound($0, isNews: $1) },
      loop: loop, logger: logger)
  }

  /// The providers of another configuration, of which nothing is used yet.
  ///
  /// - Throws: `StartError.other` where one cannot be made.
  func providers(for configuration: Configuration) throws(StartError) -> ProviderSet {
    factory.follow(configuration, logger, occasional)
    do throws(ProviderSetupError) {
      return try providers.following(configuration, factory)
    } catch { throw .other(error.description) }
  }

  /// Goes by another configuration from now on; the listener threads in a moment. Resolver's loop only.
  func use(_ preparation: Preparation, _ providers: ProviderSet) {
    let old = self.providers
    self.providers = providers
    let (configuration, routes) = (preparation.configuration, preparation.plan.routes)
    let servers = local.allServers
    local.use(configured: LocalServers(configuration.localDNS.servers), others: routes.map(\.localServers))
    let service = Service(
      ResolverSettings(configuration, routes), providers.upstreams, providerNumbers: preparation.providerNumbers)
    resolver.assumeIsolated { $0.use(service, preparation.plan.table) }
    old.retire(for: providers)
    surroundings.cache.setStaleTTL(UInt32(clamping: configuration.cache.staleTTL.components.seconds))
    use(tablesOf: preparation, isForNetwork: false)
    if local.allServers != servers { loopGuard.probe(local.allServers) }
  }

  /// Finds routes by other tables from now on; the listener threads in a moment. Resolver's loop only.
  ///
  /// - Parameter isForNetwork: whether the configuration is the same, and only the network another one.
  func use(tablesOf preparation: Preparation, isForNetwork: Bool = true) {
    self.preparation = preparation
    let configuration = preparation.configuration
    resolver.assumeIsolated { $0.use(preparation.plan.table) }
    tcpService.use(preparation.tables)
    for thread in listenerThreads { thread.offer(preparation.tables) }
    upkeep?.use(
      configuration, keep: routed(configuration.refresh.keep), preload: routed(configuration.refresh.preload),
      CacheMeanings(preparation), isForNetwork: isForNetwork)
  }

  /// The network hands out those search domains: says what they mean, and rebuilds the tables where they differ.
  private func searchDomainsFound(_ domains: [DomainName], isNews: Bool) {
    let isOther = SearchDomain.judged(domains) != preparation.plan.searchDomains
    if isNews || isOther, let line = NetworkView.line(about: SearchDomain.judged(domains), configuration) {
      networkLog.tell("search domains", line)
    }
    if isOther { searchDomainsHaveChanged?(!local.systemServers.isEmpty) }
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

  /// The route of a name; nil where it is answered here.
  func route(of name: DomainName, _ type: RecordType) -> UInt16? {
    guard case .route(let number) = decision(name, type) else { return nil }
    return number
  }

  private func decision(_ name: DomainName, _ type: RecordType) -> RouteDecision {
    name.lowercased.octets.withUnsafeBufferPointer {
      preparation.plan.table.find($0.baseAddress!, length: $0.count, type: type.rawValue)
    }
  }

  /// Asks as the daemon would, past the cache: rules, special names, providers, LocalDNS. Runs the loop until the answer
  /// is there; nothing needs to be bound.
  package func ask(_ question: Question) -> ResolvedAnswer? {
    switch decision(question.name, question.type) {
    case .local(let index):
      return ResolvedAnswer(preparation.plan.table.localAnswers[Int(index)], to: question.name)
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
}

/// Carries a value from a task on the loop to the thread that runs the loop: the same one.
private final class ValueBox<Value>: @unchecked Sendable {
  var value: Value?
}
