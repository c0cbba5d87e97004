// Resolver.swift -- the cold path: resolves what the hot path has no answer for, once for all clients that ask.
//
// An actor on the resolver's loop: one thread owns its state. Whatever happens upstream, a client gets a response in time.

import BusyNames
import DNSWire
import EventLoop
import FairShares
import Fleet
import Frontend
import HTTPDNS
import MessageCache
import Ranking
import Refresh
import Routing
import Upstreams

/// Resolves questions: by the cache, by a question in flight, or by the upstreams of their route.
package actor Resolver: RefreshingResolver {
  nonisolated let loop: any Loop
  /// The current configuration; a reload replaces it.
  package private(set) var configuration: ResolverConfiguration
  /// The previous one, as long as listeners may hand over queries that they routed by it.
  private var earlier: ResolverConfiguration?
  let cache: MessageCache
  let network: CurrentNetwork
  let replies: ReplySender
  /// The cached answers.
  let store: AnswerStore
  let composer: AnswerComposer
  var inFlight: [QuestionKey: Fetch] = [:]
  let createdAt: BootInstant
  /// What earlier questions have shown of the upstreams.
  let memory: UpstreamMemory
  /// When LocalDNS is asked.
  let localDNS: LocalDNSOrder
  /// Which questions may go upstream.
  let admission: Admission
  /// Answers that the cache does not keep.
  var recent = RecentAnswers()
  /// Receives queries for the names by which it detects loops.
  package var loopGuard: LoopGuard?
  /// What a provider's recovery starts.
  let recovery: Recovery
  /// Schedules the refresh of each answer that is stored.
  package weak var refresher: Refresher?
  /// Puts the addresses of answers in order.
  var ranker: Ranker?
  /// How IPv4 is reached on the current network; nil in tests that need none.
  package var nat64: NAT64?
  /// Shares answers with other daemons; nil if there is no store.
  var fleet: FleetLevel?
  /// Statistics of the busiest names.
  package let names: NameLedger
  /// Saves the cache to its file; returns the reason of a failure.
  package var save: (@Sendable () async -> String?)?
  /// Counters since the start, without those of `localDNS`.
  var tally = ResolverCounters()
  /// Counters of refreshing, and the number of scheduled questions; nil if the cache is off.
  package var refreshing: (counters: RefreshCounters, scheduled: Int)? { refresher.map { ($0.counters, $0.scheduled) } }
  private var inbox = QueryInbox()
  private let moreQueries = OwnedTimer()
  private let onFailure: @Sendable (String, UpstreamFailure) -> Void
  let onLimit: @Sendable (ReachedBound) -> Void

  /// The resolver's loop.
  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Creates a resolver that runs on `loop`.
  ///
  /// - Parameters:
  ///   - onLimit: called each time one of our own limits stops a query; for logging.
  ///   - onFailure: called for each failure of an upstream, with the upstream's name; for counting and logging.
  package init(
    on loop: any Loop, settings: ResolverSettings, cache: MessageCache, network: CurrentNetwork,
    upstreams: sending [any Upstream], local: sending (any LocalUpstream)?, replies: sending ReplySender,
    table: RouteTable? = nil,
    onLimit: @escaping @Sendable (ReachedBound) -> Void = { _ in },
    onFailure: @escaping @Sendable (String, UpstreamFailure) -> Void
  ) {
    self.loop = loop
    createdAt = loop.now
    let configuration = ResolverConfiguration(settings, upstreams)
    self.configuration = configuration
    self.cache = cache
    self.network = network
    let names = NameLedger(of: cache, on: loop)
    self.names = names
    store = AnswerStore(of: cache, network, names, configuration)
    composer = AnswerComposer(store, table, on: loop)
    self.replies = replies
    self.onFailure = onFailure
    self.onLimit = onLimit
    admission = Admission(settings)
    memory = UpstreamMemory(configuration)
    localDNS = LocalDNSOrder(local, store, composer, memory, network, names, on: loop, onFailure: onFailure)
    let recovery = Recovery()
    self.recovery = recovery
    connectUpstreams(of: configuration, recovery, observer: names)
  }

  var settings: ResolverSettings { configuration.settings }
  /// Counters since the start.
  package var counters: ResolverCounters { tally.with(localDNS.counters) }
  /// The providers, in the order of the configuration.
  package var upstreams: [any Upstream] { configuration.upstreams }
  /// Fetches that hold one of the `listen.max_in_flight` places.
  package var questionsInFlight: Int { admission.count }

  // MARK: Queries

  /// Takes over queries that the listeners have handed over, at most `queriesPerTurn` in a turn of the loop, since each
  /// of them takes about 50 µs.
  package func takeQueries() {
    if inbox.receive(from: replies.queries) { onLimit(.share(.waiting)) }
    if !moreQueries.isSet { takeQueued(atMost: Resolver.queriesPerTurn) }
  }

  /// Takes over a query in this turn of the loop or in one of the next.
  package func queue(_ slot: Int) { inbox.add(slot) }

  private func takeQueued(atMost most: Int) {
    for _ in 0..<most {
      guard let slot = inbox.takeNext() else { return }
      accept(slot)
    }
    guard !inbox.isEmpty else { return }
    moreQueries.set(after: .zero, on: loop, for: self) { resolver in
      resolver.assumeIsolated { $0.takeQueued(atMost: Resolver.queriesPerTurn) }
    }
  }

  /// The most queries that are taken over in one turn.
  private static let queriesPerTurn = 64

  /// Answers the query of a slot, now or when its answer arrives.
  package func accept(_ slot: Int) {
    let query = replies.queries.slots[slot]
    let message = replies.queries.message(slot)
    let name = DomainName(
      unchecked: Array(UnsafeBufferPointer(start: message + QueryReader.headerLength, count: query.query.nameLength)))
    if query.route == Route.Number.loopProbe {
      loopGuard?.received(name)
      return replies.send(UpstreamFailure.ownProbe, to: slot)
    }
    let asked = question(of: query, name.lowercased)
    let client = replies.client(slot)
    guard query.wantsAnswer else {
      replies.queries.release(slot)
      return refreshServed(asked, for: client)
    }
    if let fetch = inFlight[asked.key] { return join(fetch, slot: slot) }
    let now = loop.now
    let entry = store.find(asked, now: now)
    if let answer = store.freshAnswer(to: asked, entry, now: now) { return replies.send(answer, to: slot) }
    if let entry, entry.isServed(at: now) { return replies.send(given(entry, or: .unserved, asked), to: slot) }
    let domain = DomainKey(of: asked.question.name)
    if let failure = failureBefore(asked, domain) { return replies.send(given(entry, or: failure, asked), to: slot) }
    let isPinned = refresher?.isOnKeepList(asked.question) ?? false
    let limit =
      !isPinned && admission.isCrowded(domain, free: replies.queries.available)
      ? .waiting
      : admission.refusal(
        asked, client, domain, isPinned: isPinned, isInUse: entry?.isInUse ?? false, now: now
      ) { displace($0) }
    if let limit { return refuse(slot: slot, limit, entry, asked) }
    let fetch = makeFetch(asked, for: isPinned ? .ourselves : client, of: domain)
    if let asker = replies.asker(slot) { fetch.askers.add(asker) }
    addWaiter(slot: slot, to: fetch)
    if entry != nil { giveStaleInTime(fetch) }
    begin(fetch)
  }

  private func question(of query: ClientQuery, _ name: DomainName) -> ResolverQuestion {
    let (configuration, route) = configurationAndRoute(query.route)
    let subnet = clientSubnet(query, name, route)
    let question = HTTPDNSQuestion(
      name: name, type: RecordType(query.query.type),
      dnssecOK: query.query.dnssecOK && route.tellsDNSSECFlags,
      checkingDisabled: query.query.checkingDisabled && route.tellsDNSSECFlags, clientSubnet: subnet.prefix)
    return store.question(question, configuration, route, subnet: subnet)
  }

  /// The route that a listener found, and the configuration that it belongs to.
  private func configurationAndRoute(_ number: UInt16) -> (configuration: ResolverConfiguration, route: Route) {
    if let route = configuration.route(number) { return (configuration, route) }
    if let earlier, let route = earlier.route(number) { return (earlier, route) }
    return (configuration, configuration.settings.routes[Int(Route.Number.standard)])
  }

  /// Resolves a question for a caller inside the daemon.
  ///
  /// - Parameter fresh: whether upstreams are asked even if an answer is cached.
  package func resolve(_ question: HTTPDNSQuestion, route number: UInt16, fresh: Bool) async -> ResolvedAnswer {
    let (configuration, route) = configurationAndRoute(number)
    let asked = store.question(question, configuration, route)
    return await withCheckedContinuation { continuation in
      // In here, since a fetch may end between a look before and this.
      if !fresh, let answer = store.freshAnswer(to: asked, now: loop.now) {
        continuation.resume(
          returning: ResolvedAnswer(response: answer.response, lifetime: answer.lifetime, source: .cache))
      } else if let fetch = inFlight[asked.key] {
        wait(for: fetch)
        fetch.continuations.append(continuation)
      } else {
        let fetch = makeFetch(asked)
        fetch.continuations.append(continuation)
        begin(fetch)
      }
    }
  }

  /// If the question's route no longer exists, the standard route stands in.
  package func keyedHash(of routed: RoutedQuestion) -> UInt64 {
    let (configuration, route) = configurationAndRoute(routed.route)
    return store.question(routed.question, configuration, route, subnet: routed.subnet).key.keyedHash
  }

  func note(_ name: String, _ failure: UpstreamFailure) { onFailure(name, failure) }

  // MARK: Changes

  /// Forgets failures after a change of network.
  package func networkHasChanged() {
    memory.networkHasChanged(now: loop.now)
    recent.removeAll()
    ranker?.networkHasChanged()
  }

  /// Drops what LocalDNS of the previous network has answered to questions in flight, and asks the current one. What was
  /// measured since `networkHasChanged` was noted for the previous network.
  package func networkIsAnother() {
    ranker?.networkHasChanged()
    for fetch in inFlight.values {
      if fetch.state.networkIsAnother(network.number, now: loop.now) { setTimer(fetch) }
    }
  }

  /// Switches to another configuration. Questions in flight end under the one that they began with, and no query joins
  /// them any more. Queries with routes of the previous one may arrive until `forgetEarlier`.
  package func use(_ configuration: ResolverConfiguration, _ table: RouteTable? = nil) {
    use(table)
    earlier = self.configuration
    self.configuration = configuration
    store.configuration = configuration
    connectUpstreams(of: configuration, recovery, observer: names)
    inFlight = [:]
    recent.removeAll()
    memory.use(configuration)
    admission.use(settings)
    // Other providers may know these names.
    localDNS.forget(.everything)
  }

  /// Routes names by another table, as on a network with other search domains. Questions in flight and cached failures
  /// stay.
  package func use(_ table: RouteTable?) { composer.table = table }

  /// Forgets the previous configuration: all listeners use the current one. First takes over what they handed over before.
  package func forgetEarlier() {
    takeQueries()
    takeQueued(atMost: .max)
    earlier = nil
  }
}
