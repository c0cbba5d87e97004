// Resolver.swift -- the cold path: gets an answer that is not at hand, once for everybody who asks for it.
//
// An actor on the resolver's loop: its state has one thread. Whatever happens upstream, a client is answered in time.

import CHotPath
import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Routing
import Telemetry
import Upstreams

/// What the resolver goes by. Immutable.
package struct ResolverSettings: Sendable {
  /// The routes, by number.
  package var routes: [Route]
  /// Questions under way upstream at once; beyond it SERVFAIL.
  package var maxInFlight: Int
  /// Whether answers are kept.
  package var cacheEnabled: Bool
  /// Whether NXDOMAIN covers the names below (RFC 8020).
  package var nxdomainCut: Bool
  /// The longest TTL of stale data, in seconds.
  package var staleTTL: UInt32
  /// How long LocalDNS may take.
  package var localTimeout: Duration
  /// The longest wait after failures.
  package var longestFailureWait: Duration
  /// Refuses private addresses, where that is switched on.
  package var rebindFilter: RebindFilter?
  /// Questions a second that one client may send upstream while others want to; 0 for no limit.
  package var missesPerClient = 0
  /// Questions a second about one domain that may go upstream; 0 for no limit.
  package var missesPerDomain = 0
  /// Names that are always kept fresh.
  package var keptNames: Set<DomainName> = []

  /// How long a provider may be silent before LocalDNS is asked as well.
  package static let localDNSDelay = Duration.seconds(1)
  /// When a client that has no answer yet gets SERVFAIL: glibc and systemd-resolved ask again after 5 s.
  package static let answerBy = Duration.milliseconds(4400)
  /// A client that asks again after this long may start another attempt.
  package static let retryAfter = Duration.seconds(1)
  /// Attempts of one question at once.
  package static let mostAttempts = 3
}

/// Numbers about the cold path.
package struct ResolverCounters: Sendable, Equatable {
  /// Questions that went upstream.
  package var pursuits: UInt64 = 0
  /// Queries that joined one that was under way.
  package var joined: UInt64 = 0
  /// Queries that came twice while the first one waited, and got one answer.
  package var duplicates: UInt64 = 0
  /// Queries that were taken as if they had no client subnet, since their name has enough of them.
  package var surplusSubnets: UInt64 = 0
  /// Queries that a limit of ours stood in the way of.
  package var shares = ShareCounters()
  /// Queries that were refused because too many were under way.
  package var overflows: UInt64 = 0
  /// Questions that LocalDNS answered in a provider's place.
  package var fallbacks: UInt64 = 0
  /// Questions that ended without an answer.
  package var failures: UInt64 = 0
  /// Times that stale data was given for want of a fresh answer.
  package var stale: UInt64 = 0
  /// Questions that LocalDNS was asked.
  package var localQuestions: UInt64 = 0
  /// Questions of those that it did not answer.
  package var localFailures: UInt64 = 0
  /// How long its answers took.
  package var localRoundTrips = LatencyHistogram()

  /// Nothing so far.
  package init() {}
}

/// Resolves what the hot path has no answer to.
package actor Resolver {
  nonisolated let loop: any Loop
  /// What the configuration says; another one after a reload.
  package private(set) var service: Service
  /// The one before, as long as listeners may hand over queries that were read under it.
  private var earlier: Service?
  let cache: MessageCache
  let network: CurrentNetwork
  let local: (any LocalUpstream)?
  let replies: ReplySender
  /// Which names take which route; nil where nobody has said so.
  private(set) var table: RouteTable?
  var inFlight: [QuestionKey: Pursuit] = [:]
  var failures: FailureCache
  /// Whose questions are in flight upstream.
  let places: PlaceShares<Pursuit>
  /// Questions that have lost their place, and whose transfers have not ended.
  var lingering = 0
  /// What clients and domains may ask for in a second.
  var misses: MissLimits
  /// For which client subnets names are asked.
  var subnets = SubnetShares()
  /// Queries that wait, by the domain that they ask for.
  var waiting: [DomainKey: Int] = [:]
  /// Names that have others below them.
  package var namesBelow = NamesBelow()
  /// Names below a search domain that the providers deny.
  var deniedNames = DeniedNames()
  /// Told of queries for the names by which it finds circles.
  package var loopGuard: LoopGuard?
  /// What is to be done when a provider is back.
  var recovery = Recovery()
  /// Told of each answer that is kept.
  weak var refresher: Refresher?
  /// What was asked about the busiest names.
  package let names: NameLedger
  /// Writes what is kept to the file that outlives the program; says why that failed.
  package var save: (@Sendable () async -> String?)?
  /// Numbers so far.
  package internal(set) var counters = ResolverCounters()
  /// Numbers about refreshing so far, and how many questions are scheduled for it; nil where nothing is kept.
  package var refreshing: (counters: RefreshCounters, scheduled: Int)? { refresher.map { ($0.counters, $0.scheduled) } }
  private var batch: [Int] = []
  /// Queries that the listeners have refused, as far as it was told.
  private var refusedQueries: UInt64 = 0
  private let keyBuffer = KeyBuffer()
  private let onFailure: @Sendable (String, UpstreamFailure) -> Void
  let onLimit: @Sendable (ReachedBound) -> Void

  /// The resolver's loop.
  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// A resolver that runs on `loop`.
  ///
  /// - Parameters:
  ///   - onLimit: told of each time that a limit of ours stands in a query's way; for logging.
  ///   - onFailure: told of each failure of an upstream, by the upstream's name; for counting and logging.
  package init(
    on loop: any Loop, settings: ResolverSettings, cache: MessageCache, network: CurrentNetwork,
    upstreams: sending [any Upstream], local: sending (any LocalUpstream)?, replies: sending ReplySender,
    table: RouteTable? = nil,
    onLimit: @escaping @Sendable (ReachedBound) -> Void = { _ in },
    onFailure: @escaping @Sendable (String, UpstreamFailure) -> Void
  ) {
    self.loop = loop
    service = Service(settings, upstreams)
    self.cache = cache
    self.network = network
    let names = NameLedger(of: cache, on: loop)
    self.names = names
    self.local = local
    self.replies = replies
    self.table = table
    self.onFailure = onFailure
    self.onLimit = onLimit
    places = PlaceShares(capacity: settings.maxInFlight)
    misses = MissLimits(perClient: settings.missesPerClient, perDomain: settings.missesPerDomain)
    failures = FailureCache(longestWait: settings.longestFailureWait)
    connectUpstreams(of: service)
  }

  /// What it goes by.
  var settings: ResolverSettings { service.settings }
  /// The providers, in the order of the configuration.
  package var upstreams: [any Upstream] { service.upstreams }

  /// Questions under way upstream.
  package var questionsUnderWay: Int { places.count }
  var underWay: Int { places.count }

  /// Lets the providers begin what goes on beside questions.
  package func startUpstreams() { for upstream in upstreams { upstream.start() } }

  /// The machine is on another network.
  package func networkHasChanged() {
    for upstream in upstreams { upstream.networkHasChanged() }
    failures.removeAll()
  }

  /// The number of the network is another one: what LocalDNS said on the one before is given to nobody, and it is asked again.
  package func networkIsAnother() {
    for pursuit in inFlight.values where pursuit.network != network.number && pursuit.held?.source == .localDNS {
      pursuit.held = nil
      pursuit.heldUntil = nil
      pursuit.hasAskedLocal = false
      setTimer(pursuit)
    }
  }

  /// Goes by another configuration from now on. What is under way goes on as it began, and nobody joins it any more.
  ///
  /// Queries with routes of the one before may come until `forgetEarlier`.
  package func use(_ service: Service, _ table: RouteTable? = nil) {
    use(table)
    earlier = self.service
    self.service = service
    connectUpstreams(of: service)
    inFlight = [:]
    failures = FailureCache(longestWait: settings.longestFailureWait)
    if misses.rates != (settings.missesPerClient, settings.missesPerDomain) {
      misses = MissLimits(perClient: settings.missesPerClient, perDomain: settings.missesPerDomain)
    }
    // Other providers may know them.
    deniedNames = DeniedNames()
    startUpstreams()
  }

  /// Names take their routes by another table from now on, as on a network with other search domains. What is under way, and
  /// what has failed, stays what it is.
  package func use(_ table: RouteTable?) { self.table = table }

  /// No listener reads queries under the configuration before this one any more: what they have read is taken over first.
  package func forgetEarlier() {
    takeQueries()
    earlier = nil
  }

  /// The route that a listener has found, in the service that it is of.
  private func place(_ number: UInt16) -> (service: Service, route: Route) {
    for service in [service, earlier] {
      if let service, let route = service.route(number) { return (service, route) }
    }
    return (service, service.settings.routes[Int(Route.Number.standard)])
  }

  /// Takes over every query that the listeners have handed over.
  package func takeQueries() {
    let refused = replies.queries.drain(into: &batch)
    if refused != refusedQueries {
      refusedQueries = refused
      onLimit(.share(.waiting))
    }
    for slot in batch { accept(slot) }
  }

  /// Answers a query from a slot, now or when its answer has come.
  package func accept(_ slot: Int) {
    let asked = replies.queries.slots[slot]
    let message = replies.queries.message(slot)
    let name = DomainName(
      unchecked: Array(UnsafeBufferPointer(start: message + QueryReader.headerLength, count: asked.query.nameLength)))
    if asked.route == Route.Number.loopProbe {
      loopGuard?.received(name)
      return replies.send(UpstreamFailure.ownProbe, to: slot)
    }
    let (service, route) = place(asked.route)
    let subnet = clientSubnet(asked, name.lowercased, service, route)
    let question = HTTPDNSQuestion(
      name: name.lowercased, type: RecordType(asked.query.type),
      dnssecOK: asked.query.dnssecOK && route.tellsDNSSECFlags,
      checkingDisabled: asked.query.checkingDisabled && route.tellsDNSSECFlags, clientSubnet: subnet.prefix)
    let key = questionKey(question, route, subnet)
    guard asked.wantsAnswer else {
      let client = replies.client(slot)
      replies.queries.release(slot)
      return refresh(question, key, service, route, subnet, client)
    }
    if let pursuit = inFlight[key] { return join(pursuit, slot) }
    if let answer = settings.cacheEnabled ? kept(question, key, route, subnet) : nil {
      return replies.send(answer, to: slot)
    }
    let stale = staleData(question, route, subnet)
    if let stale, stale.isServed(at: loop.now) { return replies.send(given(stale, or: .unserved, question), to: slot) }
    let isTrial = failures.isWaiting(key, now: loop.now)
    let (client, domain) = (replies.client(slot), DomainKey(of: question.name))
    if isTrial, route.providers.isEmpty || !failures.mayTry(key, of: domain, now: loop.now) {
      return replies.send(given(stale, or: .failedLately, question), to: slot)
    }
    let isKept = refresher?.keepsFresh(question) ?? false
    let limit =
      isCrowded(domain) && !isKept
      ? .waiting : refusal(route, service, client, domain, isKept: isKept, isInUse: stale?.isInUse ?? false)
    if let limit { return refuse(slot, limit, stale, question) }
    let pursuit = makePursuit(question, key, service, route, subnet, isKept ? .ourselves : client, domain)
    pursuit.isTrial = isTrial
    if isTrial { failures.tries(domain, now: loop.now) }
    if let asker = replies.asker(slot) { pursuit.askers.add(asker) }
    addWaiter(slot, pursuit)
    if stale != nil { giveStaleInTime(pursuit) }
    begin(pursuit)
  }

  /// Resolves a question for a caller inside the program.
  ///
  /// - Parameter fresh: whether to go upstream although an answer is kept.
  package func resolve(_ question: HTTPDNSQuestion, route number: UInt16, fresh: Bool) async -> ResolvedAnswer {
    let (service, route) = place(number)
    let subnet = QueryClientSubnet()
    let key = questionKey(question, route, subnet)
    if !fresh, let answer = kept(question, key, route, subnet) {
      return ResolvedAnswer(response: answer.response, lifetime: answer.lifetime, source: .cache)
    }
    return await withCheckedContinuation { continuation in
      if let pursuit = inFlight[key] {
        wait(for: pursuit)
        pursuit.continuations.append(continuation)
      } else {
        let pursuit = makePursuit(question, key, service, route, subnet)
        pursuit.continuations.append(continuation)
        begin(pursuit)
      }
    }
  }

  /// A new pursuit, under way from now on.
  ///
  /// - Parameter client: whose it is; without one it is the program's own, and nobody takes its place.
  func makePursuit(
    _ question: HTTPDNSQuestion, _ key: QuestionKey, _ service: Service, _ route: Route, _ subnet: QueryClientSubnet,
    _ client: ClientKey = .ourselves, _ domain: DomainKey? = nil
  ) -> Pursuit {
    let pursuit = Pursuit(
      key: key, question: question, service, route, scope: scope(question, route), subnet: subnet,
      domain: domain ?? DomainKey(of: question.name), epoch: cache.epoch, startedAt: loop.now)
    pursuit.network = network.number
    inFlight[key] = pursuit
    pursuit.place = places.enter(pursuit, client, pursuit.domain, now: loop.now.nanoseconds)
    counters.pursuits += 1
    return pursuit
  }

  private func begin(_ pursuit: Pursuit) {
    setTimer(pursuit)
    start(pursuit)
  }

  /// Somebody waits from now on for what nobody waited for.
  private func wait(for pursuit: Pursuit) {
    guard pursuit.isRefresh else { return }
    pursuit.isRefresh = false
    pursuit.startedAt = loop.now
    setTimer(pursuit)
  }

  /// A retry by the same client a second later may mean that the attempt under way is lost.
  private func join(_ pursuit: Pursuit, _ slot: Int) {
    let client = replies.client(slot)
    let asker = replies.asker(slot)
    let relation = asker.map { pursuit.askers.relation(of: $0) } ?? .new
    let isKept = refresher?.keepsFresh(pursuit.question) ?? false
    guard relation == .duplicate || isKept || !isCrowded(pursuit.domain) else {
      return refuse(slot, .waiting, staleData(pursuit.question, pursuit.route, pursuit.subnet), pursuit.question)
    }
    if let place = pursuit.place { places.join(place, client, now: loop.now.nanoseconds) }
    wait(for: pursuit)
    if pursuit.slots.isEmpty, staleData(pursuit.question, pursuit.route, pursuit.subnet) != nil {
      giveStaleInTime(pursuit)
      setTimer(pursuit)
    }
    if relation == .duplicate {
      counters.duplicates += 1
      replies.queries.release(slot)
    } else {
      counters.joined += 1
      if let asker { pursuit.askers.add(asker) }
      addWaiter(slot, pursuit)
    }
    // Where there is stale data one attempt is enough (RFC 8767 section 5).
    let mayStart =
      pursuit.attempts < ResolverSettings.mostAttempts && pursuit.staleAt == nil
      && loop.now - pursuit.lastAttempt >= ResolverSettings.retryAfter
    guard mayStart, relation != .new else { return }
    // Another attempt costs as much as the first one.
    let limit =
      isKept
      ? nil : missLimit(pursuit.route, pursuit.service, client, pursuit.domain, isInUse: isInUse(pursuit))
    if limit == nil { start(pursuit) }
  }

  /// The task prefers the loop as its executor: a continuation is resumed on the task's executor, not the actor's, and
  /// without the preference that would be a thread of the global pool.
  func start(_ pursuit: Pursuit) {
    pursuit.attempts += 1
    pursuit.lastAttempt = loop.now
    Task(executorPreference: loop) { await self.attempt(pursuit) }
  }

  private func attempt(_ pursuit: Pursuit) async {
    let outcome = await pursue(pursuit)
    pursuit.attempts -= 1
    settle(pursuit, outcome)
  }

  /// Tells of an upstream's failure.
  func note(_ name: String, _ failure: UpstreamFailure) { onFailure(name, failure) }

  /// Builds a cache key in the resolver's own buffer.
  func withKey<Value>(
    _ name: DomainName, _ scope: CacheScope, subnet: QueryClientSubnet = QueryClientSubnet(),
    _ body: (CacheKey) -> Value
  ) -> Value {
    keyBuffer.set(name)
    return body(cache.key(in: keyBuffer.octets, nameLength: name.octets.count, scope, subnet: subnet))
  }

  func questionKey(_ question: HTTPDNSQuestion, _ route: Route, _ subnet: QueryClientSubnet) -> QuestionKey {
    withKey(question.name, scope(question, route), subnet: subnet) { QuestionKey($0) }
  }

  /// The key of a question that is asked by that route, if there is one.
  func questionKey(_ question: HTTPDNSQuestion, route number: UInt16) -> QuestionKey {
    questionKey(question, place(number).route, QueryClientSubnet())
  }

  /// What a question's key consists of beside name and subnet.
  func scope(_ question: HTTPDNSQuestion, _ route: Route) -> CacheScope {
    CacheScope(
      type: question.type.rawValue, dnssecOK: question.dnssecOK && route.tellsDNSSECFlags,
      checkingDisabled: question.checkingDisabled && route.tellsDNSSECFlags,
      route: route.number, network: route.belongsToNetwork ? network.number : 0)
  }
}

extension QueryClientSubnet {
  /// The subnet as a prefix; nil where there is none.
  var prefix: IPPrefix? {
    guard family != 0 else { return nil }
    var octets: [UInt8] = []
    withUnsafeBytes(of: high.bigEndian) { octets += $0 }
    withUnsafeBytes(of: low.bigEndian) { octets += $0 }
    return IPAddress(octets: octets[..<(family == 1 ? 4 : 16)]).flatMap { IPPrefix($0, length: Int(sourceLength)) }
  }
}

/// Room for a cache key.
private final class KeyBuffer {
  let octets: UnsafeMutablePointer<UInt8>

  init() {
    octets = .allocate(capacity: CacheKey.longest)
    octets.initialize(repeating: 0, count: CacheKey.longest)
  }

  deinit { octets.deallocate() }

  func set(_ name: DomainName) {
    name.octets.withUnsafeBufferPointer { octets.update(from: $0.baseAddress!, count: $0.count) }
  }
}
