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
import Refresh
import Upstreams

final class Fetch: QuestionInFlight {
  private let resolver: Resolver
  let asked: ResolverQuestion
  /// The client that asked first, or the daemon itself.
  let client: ClientKey
  /// The registered domain of the name; shares and limits count by it.
  let domain: DomainKey
  /// The cache's epoch when it began: its answer belongs to the network of that time.
  let epoch: UInt32
  /// What its clients get, and who is asked for it.
  var state: FetchState
  /// The slots of the queries that wait for it.
  var slots: [Int] = []
  /// The clients of those over UDP, to recognise a retry.
  var askers = Askers()
  /// Its place among the questions in flight; nil if it has none or has lost it.
  var place: PlaceShares.Place?
  /// The provider that was asked last; nil before.
  var provider: (any Upstream)?
  /// What carries it now.
  private var carriers: [any QuestionCarrier] = []
  /// Whether one of those has ended while it waited for a connection, because of other questions.
  private(set) var hasWaitedInVain = false
  /// Clients beside the first one, as many as have a turn of their own while it waits for a connection.
  private var others: [ClientKey] = []
  /// Callers inside the daemon that wait for it.
  var continuations: [CheckedContinuation<ResolvedAnswer, Never>] = []
  /// Fires at the next event of the state.
  let timer = OwnedTimer()
  /// What the schedule of refreshes will remember of the entry.
  var heat: UInt32 = 0
  /// Hits that count as the entry's own.
  var hits: UInt32 = 0
  /// Why each upstream but the last gave no answer; only for callers inside the daemon.
  private(set) var trail: [TrailStep] = []

  var question: HTTPDNSQuestion { asked.question }
  var configuration: ResolverConfiguration { asked.configuration }
  var route: Route { asked.route }
  var key: QuestionKey { asked.key }

  init(
    _ asked: ResolverQuestion, by resolver: Resolver, for client: ClientKey, of domain: DomainKey, epoch: UInt32,
    _ state: FetchState
  ) {
    self.resolver = resolver
    self.asked = asked
    self.client = client
    self.domain = domain
    self.epoch = epoch
    self.state = state
  }

  /// Whether the provider that was asked last gives no verdicts. One that another question gets ends that.
  var isImpatient: Bool { provider?.pace.isSilent ?? false }

  var startedAt: BootInstant { state.startedAt }

  var isWanted: Bool { !state.isDisplaced }

  var hasNoClients: Bool { place == nil }

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

  func gotConnection() { state.gotConnection(isImpatient: isImpatient, now: resolver.loop.now) }

  /// Whether its clients may have an answer that came along with another question's: of the same network and configuration.
  func mayTakeAnswer(of other: Fetch) -> Bool {
    !state.isRefresh && epoch == other.epoch && configuration === other.configuration
  }

  /// An answer that is given so long after the clients' time is over has come before the machine slept.
  static let longestDelay = Duration.seconds(1)

  /// Whether a client or a caller waits for it.
  var isAwaited: Bool { !slots.isEmpty || !continuations.isEmpty }

  /// What its entry remembers of it.
  ///
  /// - Parameter isInSets: whether the firewall sets of its route have the addresses.
  func origin(_ source: AnswerSource, isInSets: Bool = false) -> EntryOrigin {
    EntryOrigin(
      source: source, epoch: epoch, network: state.network, heat: heat, hits: hits, client: client, isInSets: isInSets)
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
  /// - Parameters:
  ///   - client: the client whose place it takes; by default it is the daemon's own, which keeps its place.
  ///   - isRefresh: whether no client waits for it.
  func makeFetch(
    _ asked: ResolverQuestion, for client: ClientKey = .ourselves, of domain: DomainKey? = nil, isRefresh: Bool = false
  ) -> Fetch {
    let fetch = Fetch(
      asked, by: self, for: client, of: domain ?? DomainKey(of: asked.question.name), epoch: cache.epoch,
      FetchState(isRefresh: isRefresh, network: network.number, now: loop.now))
    inFlight[asked.key] = fetch
    admission.enter(fetch, now: loop.now)
    tally.fetches += 1
    return fetch
  }

  /// Puts a question in flight for which no client waits.
  func makeRefresh(_ asked: ResolverQuestion, for client: ClientKey = .ourselves) -> Fetch {
    makeFetch(asked, for: client, isRefresh: true)
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
    guard fetch.state.join(now: loop.now) else { return }
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
    guard relation == .duplicate || isPinned || !admission.isCrowded(fetch.domain, free: replies.queries.available)
    else { return refuse(slot: slot, .waiting, store.find(fetch.asked, now: loop.now), fetch.asked) }
    admission.join(fetch, client, now: loop.now)
    fetch.isJoined(by: client)
    wait(for: fetch)
    if fetch.slots.isEmpty, store.find(fetch.asked, now: loop.now) != nil {
      giveStaleInTime(fetch)
      setTimer(fetch)
    }
    if relation == .duplicate {
      tally.duplicates += 1
      replies.queries.release(slot)
    } else {
      tally.joined += 1
      if let asker { fetch.askers.add(asker) }
      addWaiter(slot: slot, to: fetch)
    }
    guard relation != .new, !fetch.isImpatient, fetch.state.mayRepeat(now: loop.now) else { return }
    // Another attempt costs as much as the first one.
    let isLimited =
      !isPinned
      && admission.missLimit(fetch.asked, client, fetch.domain, isInUse: isInUse(fetch), now: loop.now) != nil
    guard !isLimited else { return }
    fetch.state.beginAgain()
    start(fetch)
  }

  /// Adds a query to those that wait for a fetch.
  func addWaiter(slot: Int, to fetch: Fetch) {
    fetch.slots.append(slot)
    admission.addWaiter(of: fetch.domain)
  }

  /// The clients of a fetch get stale data if no answer arrives in time.
  func giveStaleInTime(_ fetch: Fetch) {
    let policy = fetch.route.stale
    if policy.mode != .off { fetch.state.giveStaleData(at: loop.now + policy.wait) }
  }
}

// MARK: Attempts

extension Resolver {
  /// Starts an attempt.
  func start(_ fetch: Fetch) {
    fetch.state.attemptBegins(now: loop.now)
    loop.startTask { await self.attempt(fetch) }
  }

  private func attempt(_ fetch: Fetch) async { attemptEnded(fetch, await askThroughNAT64(fetch)) }

  private func askNextProvider(_ fetch: Fetch) async {
    attemptEnded(fetch, await translated(await askProviders(fetch), to: fetch.asked))
  }

  private func askLocalAsWell(_ fetch: Fetch) async {
    let result = await localDNS.ask(fetch, isFallback: true)
    let timeouts = fetch.route.providers.map { fetch.configuration.upstreams[$0].timeout }
    let action = fetch.state.localDNSAttemptEnded(
      result, isImpatient: fetch.isImpatient, timeout: timeouts.max() ?? .zero,
      isSearched: localDNS.maySearch(fetch.route),
      now: loop.now)
    afterAttempt(fetch, action)
  }

  private func attemptEnded(_ fetch: Fetch, _ result: FetchResult) {
    afterAttempt(fetch, fetch.state.attemptEnded(result, isSearched: localDNS.maySearch(fetch.route)))
  }

  /// Carries out what follows the end of an attempt.
  func afterAttempt(_ fetch: Fetch, _ action: FetchState.Action) {
    carryOut(action, fetch)
    if fetch.state.attempts == 0 { admission.leave(fetch) }
  }

  private func carryOut(_ action: FetchState.Action, _ fetch: Fetch) {
    switch action {
    case .wait: break
    case .setTimer: setTimer(fetch)
    case .deliver(let result): deliver(fetch, result)
    case .askUpstreams: start(fetch)
    case .askNextProvider: loop.startTask { await self.askNextProvider(fetch) }
    case .askLocalDNS: loop.startTask { await self.askLocalAsWell(fetch) }
    }
  }

  // MARK: Time

  /// Sets the timer to the next event.
  func setTimer(_ fetch: Fetch) {
    fetch.timer.set(at: fetch.state.nextEvent(options(of: fetch)), on: loop, for: fetch) { self.timeHasCome($0) }
  }

  /// Begins to wait for a provider, or as long as usual.
  func beginPatience(_ fetch: Fetch, for upstream: (any Upstream)? = nil) {
    fetch.provider = upstream
    let end = fetch.state.beginPatience(
      upstream?.pace.shortPatience ?? .zero, isImpatient: fetch.isImpatient, now: loop.now)
    guard let deadline = fetch.timer.deadline, end < deadline, fetch.state.mayGoOn(options(of: fetch)) else { return }
    setTimer(fetch)
  }

  private func timeHasCome(_ fetch: Fetch) {
    let now = loop.now
    let hasStale = fetch.state.isStaleDue(at: now) && store.find(fetch.asked, now: now) != nil
    let actions = fetch.state.timeHasCome(options(of: fetch), hasStale: hasStale, isQueued: fetch.isQueued, now: now)
    for action in actions { carryOut(action, fetch) }
  }

  private func options(of fetch: Fetch) -> FetchState.Options {
    FetchState.Options(
      isImpatient: fetch.isImpatient, hasNextProvider: fetch.placeOfNextProvider != nil,
      fallsBack: !fetch.route.providers.isEmpty && localDNS.mayFallBack(fetch.route))
  }
}
