// Fetch.swift -- one question in flight: its clients, its attempts and its timer.
//
// Resolver's loop only. UpstreamOrder.swift has the upstreams that an attempt asks, FetchEnd.swift its end.

import Configuration
import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Upstreams

/// A question in flight. Unchecked, since timers and tasks of the resolver's loop carry it: nothing else may touch it.
final class Fetch: QuestionInFlight, @unchecked Sendable {
  private let resolver: Resolver
  let asked: ResolverQuestion
  /// The client that asked first, or the daemon itself.
  let client: ClientKey
  /// The registered domain of the name; shares and limits count by it.
  let domain: DomainKey
  /// The cache's epoch when it began: its answer belongs to the network of that time.
  let epoch: UInt32
  /// The network whose LocalDNS was asked last; before that, the one on which it began.
  var network: UInt32
  /// When it began, or when the first client joined a refresh.
  var startedAt: BootInstant
  /// When the last attempt began. A client that retries a second later may start another one.
  var lastAttempt: BootInstant
  /// Attempts in progress.
  var attempts = 0
  /// The slots of the queries that wait for it.
  var slots: [Int] = []
  /// The clients of those over UDP, to recognise a retry.
  var askers = Askers()
  /// Its place among the questions in flight; nil if it has none or has lost it.
  var place: PlaceShares.Place?
  /// Whether another question has its place while its transfers have not ended. It asks no further upstream.
  var isDisplaced = false
  /// The place in the route of the next provider to ask.
  var nextProvider = 0
  var askedProviders = 0
  /// When the provider that was asked last has had its time, before which no other upstream's answer is given.
  var providerEnd: BootInstant
  /// How long that is.
  var providerTime = Duration.zero
  /// That provider; nil before.
  var provider: (any Upstream)?
  /// When the next upstream is asked as well; nil if none is.
  var patienceEnd: BootInstant?
  /// When that is while the provider gives verdicts.
  var usualPatienceEnd: BootInstant
  /// What carries it now.
  private var carriers: [any QuestionCarrier] = []
  /// Whether one of those has ended while it waited for a connection, because of other questions.
  private(set) var hasWaitedInVain = false
  /// Clients beside the first one, as many as have a turn of their own while it waits for a connection.
  private var others: [ClientKey] = []
  /// The failure to report if no upstream has an answer: the first one that excludes LocalDNS, or the last one.
  var failed: FetchResult?
  /// The first empty answer that may only mean "not in the list".
  var empty: FetchResult?
  /// Callers inside the daemon that wait for it.
  var continuations: [CheckedContinuation<ResolvedAnswer, Never>] = []
  /// Fires at the next of these: the next upstream is asked as well, LocalDNS's answer is given, stale data is given, the last
  /// moment.
  let timer = OwnedTimer()
  /// Whether the clients have been answered.
  var isAnswered = false
  /// Whether that was with an upstream's answer, not with stale data or a failure.
  var hasAnswer = false
  /// Whether a provider has given a final reply without an answer, so that LocalDNS's answer no longer counts.
  var isDecided = false
  /// The answer to give if no better one arrives in time: LocalDNS's while a provider is asked, or a provider's empty one
  /// while LocalDNS is asked.
  var held: FetchResult?
  /// When `held` is given at the latest; nil for the last moment.
  var heldUntil: BootInstant?
  /// When stale data is given if there is no answer; nil if there is no stale data.
  var staleAt: BootInstant?
  /// Whether no client waits: it refreshes a cached answer, and its failure changes nothing.
  var isRefresh = false
  /// What the schedule of refreshes will remember of the entry.
  var heat: UInt32 = 0
  /// Hits that count as the entry's own.
  var hits: UInt32 = 0
  /// Whether LocalDNS has been asked.
  var hasAskedLocal = false
  /// Whether LocalDNS is being asked.
  var isAskingLocal = false
  /// Why each upstream but the last gave no answer; only for callers inside the daemon.
  private(set) var trail: [TrailStep] = []

  var question: HTTPDNSQuestion { asked.question }
  var configuration: ResolverConfiguration { asked.configuration }
  var route: Route { asked.route }
  var key: QuestionKey { asked.key }

  init(
    _ asked: ResolverQuestion, by resolver: Resolver, for client: ClientKey, of domain: DomainKey, epoch: UInt32,
    network: UInt32, startedAt: BootInstant
  ) {
    self.resolver = resolver
    self.asked = asked
    self.client = client
    self.domain = domain
    self.epoch = epoch
    self.network = network
    self.startedAt = startedAt
    lastAttempt = startedAt
    providerEnd = startedAt
    usualPatienceEnd = startedAt + ResolverSettings.localDNSDelay
  }

  /// Whether the provider that was asked last gives no verdicts. One that another question gets ends that.
  var isImpatient: Bool { provider?.isSilent ?? false }

  var isWanted: Bool { !isDisplaced }

  var hasNoClients: Bool { place == nil }

  /// The timer fires.
  func timeHasCome() { resolver.assumeIsolated { $0.timeHasCome(self) } }

  func isCarried(by carrier: any QuestionCarrier) {
    carriers.append(carrier)
    for client in others { carrier.isJoined(by: client) }
    if hasNoClients { carrier.isLate() }
  }

  func wasCarried(by carrier: any QuestionCarrier) {
    if carrier.isQueued { hasWaitedInVain = true }
    carriers.removeAll { $0 === carrier }
  }

  /// Whether it waits for a connection, because of other questions.
  var isQueued: Bool { carriers.contains { $0.isQueued } }

  /// A client waits for it as well.
  func isJoined(by client: ClientKey) {
    guard client != self.client, others.count < Fetch.mostOthers, !others.contains(client) else { return }
    others.append(client)
    for carrier in carriers { carrier.isJoined(by: client) }
  }

  /// Its clients have been answered, and its transfers have not ended.
  func isLate() { for carrier in carriers { carrier.isLate() } }

  func gotConnection() {
    let now = resolver.loop.now
    usualPatienceEnd = now + ResolverSettings.localDNSDelay
    if !isImpatient, patienceEnd != nil { patienceEnd = usualPatienceEnd }
    providerEnd = max(providerEnd, now + providerTime)
  }

  /// Whether its clients may have an answer that came along with another question's: of the same network and configuration.
  func mayTakeAnswer(of other: Fetch) -> Bool {
    !isRefresh && epoch == other.epoch && configuration === other.configuration
  }

  /// How often the timer looks at a question that waits for a connection.
  static let queueInterval = ResolverSettings.localDNSDelay / 4
  /// An answer that is given so long after the clients' time is over has come before the machine slept.
  static let longestDelay = Duration.seconds(1)

  /// When the clients are answered at the latest.
  var end: BootInstant { startedAt + ResolverSettings.answerBy }

  /// What its entry remembers of it.
  func origin(_ source: AnswerSource) -> EntryOrigin {
    EntryOrigin(source: source, epoch: epoch, network: network, heat: heat, hits: hits, client: client)
  }

  private static let longestTrail = 16

  /// Records why the next upstream is asked.
  func trace(_ step: @autoclosure () -> TrailStep) {
    if !continuations.isEmpty, trail.count < Fetch.longestTrail { trail.append(step()) }
  }

  /// Records several steps.
  func trace(_ steps: @autoclosure () -> [TrailStep]) {
    if !continuations.isEmpty { for step in steps() { trace(step) } }
  }
}

// MARK: Begin

extension Resolver {
  /// Puts a question in flight; `begin` or `start` sends it.
  ///
  /// - Parameter client: the client whose place it takes; by default it is the daemon's own, which keeps its place.
  func makeFetch(
    _ asked: ResolverQuestion, for client: ClientKey = .ourselves, of domain: DomainKey? = nil
  ) -> Fetch {
    let fetch = Fetch(
      asked, by: self, for: client, of: domain ?? DomainKey(of: asked.question.name), epoch: cache.epoch,
      network: network.number,
      startedAt: loop.now)
    inFlight[asked.key] = fetch
    fetch.place = places.enter(fetch, client, fetch.domain, now: loop.now.nanoseconds)
    counters.fetches += 1
    return fetch
  }

  /// Puts a question in flight for which no client waits.
  func makeRefresh(_ asked: ResolverQuestion, for client: ClientKey = .ourselves) -> Fetch {
    let fetch = makeFetch(asked, for: client)
    fetch.isRefresh = true
    return fetch
  }

  /// A fresh answer that is replaced before its refresh was due passes its heat and hits on.
  func inherit(_ fetch: Fetch) {
    if let state = store.inheritance(fetch.asked, now: loop.now) { (fetch.heat, fetch.hits) = state }
  }

  func begin(_ fetch: Fetch) {
    beginPatience(fetch)
    setTimer(fetch)
    start(fetch)
  }

  /// A client joins a fetch; if no client waited before, its time begins now.
  func wait(for fetch: Fetch) {
    guard fetch.isRefresh else { return }
    fetch.isRefresh = false
    fetch.startedAt = loop.now
    beginPatience(fetch)
    setTimer(fetch)
  }

  /// Lets a query wait for a question in flight. A retry by the same client a second later may mean that the attempt in
  /// progress is lost, and starts another one.
  func join(_ fetch: Fetch, slot: Int) {
    let client = replies.client(slot)
    let asker = replies.asker(slot)
    let relation = asker.map { fetch.askers.relation(of: $0) } ?? .new
    let isPinned = refresher?.isOnKeepList(fetch.question) ?? false
    guard relation == .duplicate || isPinned || !isCrowded(fetch.domain) else {
      return refuse(slot: slot, .waiting, store.find(fetch.asked, now: loop.now), fetch.asked)
    }
    if let place = fetch.place { places.join(place, client, now: loop.now.nanoseconds) }
    fetch.isJoined(by: client)
    wait(for: fetch)
    if fetch.slots.isEmpty, store.find(fetch.asked, now: loop.now) != nil {
      giveStaleInTime(fetch)
      setTimer(fetch)
    }
    if relation == .duplicate {
      counters.duplicates += 1
      replies.queries.release(slot)
    } else {
      counters.joined += 1
      if let asker { fetch.askers.add(asker) }
      addWaiter(slot: slot, to: fetch)
    }
    // With stale data one attempt is enough (RFC 8767 section 5).
    let mayStart =
      fetch.attempts < ResolverSettings.mostAttempts && fetch.staleAt == nil && !fetch.isImpatient
      && loop.now - fetch.lastAttempt >= ResolverSettings.retryAfter
    guard mayStart, relation != .new else { return }
    // Another attempt costs as much as the first one.
    let limit =
      isPinned ? nil : missLimit(fetch.asked, client, fetch.domain, isInUse: isInUse(fetch))
    guard limit == nil else { return }
    fetch.nextProvider = 0
    start(fetch)
  }

  /// Starts an attempt.
  ///
  /// The task prefers the loop as its executor: a continuation resumes on the task's executor, not on the actor's, and
  /// without the preference that is a thread of the global pool.
  func start(_ fetch: Fetch) {
    fetch.attempts += 1
    fetch.lastAttempt = loop.now
    Task(executorPreference: loop) { await self.attempt(fetch) }
  }

  private func attempt(_ fetch: Fetch) async {
    let result = await askThroughNAT64(fetch)
    fetch.attempts -= 1
    settle(fetch, result)
  }

  /// Asks the next providers beside the one that is silent.
  private func goOn(_ fetch: Fetch) {
    fetch.attempts += 1
    Task(executorPreference: loop) { await self.askOthers(fetch) }
  }

  private func askOthers(_ fetch: Fetch) async {
    let result = await translated(await askProviders(fetch), to: fetch.asked)
    fetch.attempts -= 1
    settle(fetch, result)
  }

  /// Adds a query to those that wait for a fetch.
  func addWaiter(slot: Int, to fetch: Fetch) {
    fetch.slots.append(slot)
    waiting[fetch.domain, default: 0] += 1
  }
}

// MARK: Time

extension Resolver {
  /// Sets the timer to the next event.
  func setTimer(_ fetch: Fetch) {
    var next = fetch.end
    if let end = fetch.patienceEnd, mayGoOn(fetch) { next = min(next, end) }
    if fetch.held != nil, let end = fetch.heldUntil { next = min(next, end) }
    if let stale = fetch.staleAt { next = min(next, stale) }
    fetch.timer.set(at: next, on: loop, for: fetch) { $0.timeHasCome() }
  }

  /// Begins to wait for a provider, or as long as usual.
  func beginPatience(_ fetch: Fetch, for upstream: (any Upstream)? = nil) {
    fetch.provider = upstream
    fetch.providerTime = upstream?.shortPatience ?? .zero
    fetch.providerEnd = loop.now + fetch.providerTime
    fetch.usualPatienceEnd = max(fetch.providerEnd, fetch.startedAt + ResolverSettings.localDNSDelay)
    fetch.patienceEnd = fetch.isImpatient ? fetch.providerEnd : fetch.usualPatienceEnd
    if let deadline = fetch.timer.deadline, fetch.patienceEnd! < deadline, mayGoOn(fetch) { setTimer(fetch) }
  }

  /// Whether another upstream may be asked beside the present one: the next provider if that one has been silent, else
  /// LocalDNS.
  private func mayGoOn(_ fetch: Fetch) -> Bool {
    fetch.isImpatient && peekProvider(of: fetch) != nil || !fetch.hasAskedLocal && mayAskLocalAsWell(fetch)
  }

  /// Asks the next upstream beside a silent provider; gives LocalDNS's answer or stale data when the provider's time is over;
  /// ends the wait at the last moment.
  fileprivate func timeHasCome(_ fetch: Fetch) {
    guard !fetch.isAnswered, !fetch.isRefresh else { return }
    let now = loop.now
    var staleIsDue = fetch.staleAt.map { $0 <= now } ?? false
    if staleIsDue, store.find(fetch.asked, now: now) == nil {
      // The stale data is gone, so the clients wait for the answer.
      fetch.staleAt = nil
      staleIsDue = false
    }
    if let held = fetch.held, staleIsDue || (fetch.heldUntil ?? fetch.end) <= now {
      // LocalDNS's answer is not given before the last provider has been asked.
      guard !staleIsDue, held.source.isLocalDNS, now < fetch.end, let end = lastProviderHasUntil(fetch) else {
        return deliver(fetch, held)
      }
      fetch.heldUntil = end
    }
    guard !staleIsDue, now < fetch.end else {
      // One provider has given a verdict without an answer, and the next one has not replied.
      let verdict = fetch.failed.flatMap { $0.failure?.consequence == .verdict ? $0 : nil }
      return deliver(fetch, verdict ?? fetch.empty ?? .failure(.noAnswerInTime))
    }
    if let end = fetch.patienceEnd, end <= now, mayGoOn(fetch), !hasTimeLeft(fetch) {
      fetch.patienceEnd = nil
      if fetch.isImpatient, peekProvider(of: fetch) != nil {
        goOn(fetch)
      } else {
        fetch.hasAskedLocal = true
        fetch.attempts += 1
        Task(executorPreference: loop) { await self.askLocalAsWell(fetch) }
      }
    }
    setTimer(fetch)
  }

  /// Whether a provider that gives verdicts has time left, or other questions have all its connections: then it goes on later.
  private func hasTimeLeft(_ fetch: Fetch) -> Bool {
    guard !fetch.isImpatient else { return false }
    let end = fetch.isQueued ? loop.now + Fetch.queueInterval : fetch.usualPatienceEnd
    guard end > loop.now else { return false }
    fetch.patienceEnd = end
    return true
  }

  /// When the last provider has had its time, before which LocalDNS's answer is not given; nil if it has. Asks the next one
  /// if it has not been asked.
  private func lastProviderHasUntil(_ fetch: Fetch) -> BootInstant? {
    if peekProvider(of: fetch) != nil {
      goOn(fetch)
      return loop.now + ResolverSettings.leastPatience
    }
    return fetch.askedProviders > 0 && loop.now < fetch.providerEnd ? fetch.providerEnd : nil
  }

  private func mayAskLocalAsWell(_ fetch: Fetch) -> Bool {
    !fetch.isDecided && !fetch.route.providers.isEmpty && mayFallBack(fetch.route)
  }

  private func askLocalAsWell(_ fetch: Fetch) async {
    let result = await askLocal(fetch, isFallback: true)
    fetch.attempts -= 1
    guard result.answer != nil, fetch.attempts > 0, !fetch.isAnswered, !fetch.isDecided else {
      return settle(fetch, result)
    }
    // A provider's answer is preferred as long as its attempt has time.
    let timeouts = fetch.route.providers.map { fetch.configuration.upstreams[$0].timeout }
    let end = fetch.startedAt + min(timeouts.max() ?? .zero, ResolverSettings.answerBy)
    fetch.held = result
    fetch.heldUntil = fetch.isImpatient ? loop.now : end
    setTimer(fetch)
  }

  /// The clients of a fetch get stale data if no answer arrives in time.
  func giveStaleInTime(_ fetch: Fetch) {
    let policy = fetch.route.stale
    if policy.mode != .off { fetch.staleAt = loop.now + policy.wait }
  }
}
