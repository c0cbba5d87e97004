// Fetch.swift -- one question in flight: its clients, its attempts, its timer, and its end.
//
// Resolver's loop only. UpstreamOrder.swift has the upstreams that an attempt asks.

import Configuration
import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Upstreams

/// The result of a fetch or of one attempt, and its source.
struct FetchResult {
  var result: Result<FinishedAnswer, UpstreamFailure>
  var source: AnswerSource
  /// The failure; nil if there is an answer.
  var failure: UpstreamFailure? { if case .failure(let failure) = result { failure } else { nil } }
  /// The answer; nil if there is a failure.
  var answer: FinishedAnswer? { if case .success(let answer) = result { answer } else { nil } }

  /// A failure of the daemon itself or of no upstream in particular.
  static func failure(_ failure: UpstreamFailure) -> FetchResult {
    FetchResult(result: .failure(failure), source: .ourselves)
  }

  /// Removes the scope of the answer: the addresses for which it is valid.
  mutating func dropScope() {
    guard var answer else { return }
    answer.scope = nil
    result = .success(answer)
  }
}

/// A question in flight. Unchecked, since timers and tasks of the resolver's loop carry it: nothing else may touch it.
final class Fetch: @unchecked Sendable {
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
  /// Callers inside the daemon that wait for it.
  var continuations: [CheckedContinuation<ResolvedAnswer, Never>] = []
  /// Fires at the next of these: LocalDNS is asked as well, its answer is given, stale data is given, the last moment.
  var timer: LoopTimer?
  /// Whether the clients have been answered.
  var isAnswered = false
  /// Whether that was with an upstream's answer, not with stale data or a failure.
  var hasAnswer = false
  /// Whether it probes for a provider's recovery, so that a provider that is down is asked anyway.
  var isTrial = false
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
    _ asked: ResolverQuestion, for client: ClientKey, of domain: DomainKey, epoch: UInt32, network: UInt32,
    startedAt: BootInstant
  ) {
    self.asked = asked
    self.client = client
    self.domain = domain
    self.epoch = epoch
    self.network = network
    self.startedAt = startedAt
    lastAttempt = startedAt
  }

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
      asked, for: client, of: domain ?? DomainKey(of: asked.question.name), epoch: cache.epoch, network: network.number,
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
    setTimer(fetch)
    start(fetch)
  }

  /// A client joins a fetch; if no client waited before, its time begins now.
  func wait(for fetch: Fetch) {
    guard fetch.isRefresh else { return }
    fetch.isRefresh = false
    fetch.startedAt = loop.now
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
      fetch.attempts < ResolverSettings.mostAttempts && fetch.staleAt == nil
      && loop.now - fetch.lastAttempt >= ResolverSettings.retryAfter
    guard mayStart, relation != .new else { return }
    // Another attempt costs as much as the first one.
    let limit =
      isPinned ? nil : missLimit(fetch.asked, client, fetch.domain, isInUse: isInUse(fetch))
    if limit == nil { start(fetch) }
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
    let result = await askUpstreams(fetch)
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
    if !fetch.hasAskedLocal, mayAskLocalAsWell(fetch) {
      next = min(next, fetch.startedAt + ResolverSettings.localDNSDelay)
    }
    if fetch.held != nil, let end = fetch.heldUntil { next = min(next, end) }
    if let stale = fetch.staleAt { next = min(next, stale) }
    fetch.timer?.cancel()
    fetch.timer = loop.schedule(at: next) { [unowned self] in
      assumeIsolated { $0.timeHasCome(fetch) }
    }
  }

  /// Asks LocalDNS beside a slow provider; gives its answer or stale data when the provider's time is over; ends the
  /// wait at the last moment.
  private func timeHasCome(_ fetch: Fetch) {
    guard !fetch.isAnswered, !fetch.isRefresh else { return }
    let now = loop.now
    var staleIsDue = fetch.staleAt.map { $0 <= now } ?? false
    if staleIsDue, store.find(fetch.asked, now: now) == nil {
      // The stale data is gone, so the clients wait for the answer.
      fetch.staleAt = nil
      staleIsDue = false
    }
    if let held = fetch.held, staleIsDue || (fetch.heldUntil ?? fetch.end) <= now { return deliver(fetch, held) }
    guard !staleIsDue, now < fetch.end else { return deliver(fetch, .failure(.noAnswerInTime)) }
    if !fetch.hasAskedLocal, mayAskLocalAsWell(fetch), now >= fetch.startedAt + ResolverSettings.localDNSDelay {
      fetch.hasAskedLocal = true
      fetch.attempts += 1
      Task(executorPreference: loop) { await self.askLocalAsWell(fetch) }
    }
    setTimer(fetch)
  }

  private func mayAskLocalAsWell(_ fetch: Fetch) -> Bool {
    !fetch.isDecided && !fetch.route.providers.isEmpty && mayFallBack(fetch.route)
  }

  private func askLocalAsWell(_ fetch: Fetch) async {
    let result = await askLocal(fetch, isFallback: true)
    fetch.attempts -= 1
    // A provider's answer is preferred as long as its attempt has time.
    let timeouts = fetch.route.providers.map { fetch.configuration.upstreams[$0].timeout }
    let providerEnd = fetch.startedAt + min(timeouts.max() ?? .zero, ResolverSettings.answerBy)
    guard result.answer != nil, fetch.attempts > 0, loop.now < providerEnd, !fetch.isAnswered, !fetch.isDecided else {
      return settle(fetch, result)
    }
    fetch.held = result
    fetch.heldUntil = providerEnd
    setTimer(fetch)
  }

  /// The clients of a fetch get stale data if no answer arrives in time.
  func giveStaleInTime(_ fetch: Fetch) {
    let policy = fetch.route.stale
    if policy.mode != .off { fetch.staleAt = loop.now + policy.wait }
  }
}

// MARK: End

extension Resolver {
  /// Ends an attempt: answers all clients, or leaves that to the attempts that are still in progress.
  func settle(_ fetch: Fetch, _ result: FetchResult) {
    switch result.result {
    // Our own limits never lead to LocalDNS, and a provider's reply is final.
    case .success where result.source.isLocalDNS && fetch.isDecided:
      guard fetch.attempts == 0 else {
        mayNeedLocalAgain(fetch)
        break
      }
      deliver(fetch, fetch.held ?? .failure(.limitedBefore))
    case .success: deliver(fetch, result)
    case .failure(let reason) where result.source.isProvider && !reason.leadsToLocalDNS:
      keepLocalOut(of: fetch)
      if reason.isFinal || fetch.attempts == 0 { deliver(fetch, result) }
    case .failure where fetch.attempts > 0: break
    case .failure: deliver(fetch, fetch.held ?? result)
    }
    if fetch.attempts == 0 { leave(fetch) }
  }

  /// A provider has replied, or one of our own limits prevents that it is asked: LocalDNS's answer no longer counts.
  func keepLocalOut(of fetch: Fetch) {
    fetch.isDecided = true
    guard fetch.held?.source.isLocalDNS == true else { return }
    fetch.held = nil
    mayNeedLocalAgain(fetch)
  }

  /// Below a search domain, the next provider's NXDOMAIN makes LocalDNS's answer count after all, and it was dropped.
  private func mayNeedLocalAgain(_ fetch: Fetch) {
    if maySearch(fetch.route) { fetch.hasAskedLocal = false }
  }

  /// Answers all clients with what is available: the daemon is stopping.
  package func giveUp() {
    endRanking()
    for fetch in Array(inFlight.values) { deliver(fetch, fetch.held ?? .failure(.ending)) }
  }

  /// Stores the answer and gives it to all clients. An answer that arrives after that is only stored.
  func deliver(_ fetch: Fetch, _ result: FetchResult) {
    var result = result
    var given = result.result
    switch result.result {
    case .success(let answer):
      failures.succeeded(fetch.key)
      if fetch.isAnswered, result.source.isLocalDNS, isSettledWithoutLocal(fetch) { return }
      fetch.hasAnswer = true
      given = .success(insert(answer, to: fetch.asked, fetch.origin(result.source)))
      result.result = given
    case .failure(let reason):
      guard !fetch.isAnswered else {
        if result.source.isProvider, reason.isFinal { removeLocalAnswer(of: fetch, reason) }
        return
      }
      if fetch.isRefresh { goOnServingStale(fetch, reason) } else { given = afterFailure(fetch, reason) }
    }
    guard !fetch.isAnswered else { return }
    fetch.isAnswered = true
    fetch.timer?.cancel()
    fetch.timer = nil
    fetch.held = nil
    if inFlight[fetch.key] === fetch { inFlight[fetch.key] = nil }
    answer(fetch.slots, of: fetch.domain, given, result.source)
    fetch.slots = []
    guard !fetch.continuations.isEmpty else { return }
    var resolved = ResolvedAnswer(result)
    resolved.trail = fetch.trail
    for continuation in fetch.continuations { continuation.resume(returning: resolved) }
    fetch.continuations = []
  }

  /// The maximum number of responses to one question per turn of the loop, so that other queries are served in between.
  static let answersPerTurn = 1024

  /// Answers all waiting queries of a fetch, at most `answersPerTurn` of them per turn of the loop.
  func answer(
    _ slots: [Int], of domain: DomainKey, _ result: Result<FinishedAnswer, UpstreamFailure>, _ source: AnswerSource
  ) {
    for slot in slots.prefix(Resolver.answersPerTurn) { replies.send(result, to: slot, from: source) }
    let count = min(slots.count, Resolver.answersPerTurn)
    if count > 0 {
      let left = (waiting[domain] ?? 0) - count
      waiting[domain] = left > 0 ? left : nil
    }
    guard slots.count > Resolver.answersPerTurn else { return }
    let rest = Array(slots[Resolver.answersPerTurn...])
    loop.schedule(after: .zero) { [self] in assumeIsolated { $0.answer(rest, of: domain, result, source) } }
  }

  /// Takes the place from a fetch. Its clients get what is available now; an answer that still arrives is cached.
  func displace(_ fetch: Fetch) {
    guard let place = fetch.place else { return }
    places.leave(place)
    fetch.place = nil
    fetch.isDisplaced = true
    lingering += 1
    counters.shares.displaced += 1
    guard !fetch.isAnswered else { return }
    let isStale = store.find(fetch.asked, now: loop.now) != nil
    counters.shares.add(.places, stale: isStale, queries: fetch.slots.count)
    onLimit(.share(.places))
    let held = fetch.held?.source.isLocalDNS == true ? nil : fetch.held
    deliver(fetch, held ?? .failure(.limited(.places)))
  }

  /// Releases the place of a fetch whose last attempt has ended.
  func leave(_ fetch: Fetch) {
    if let place = fetch.place {
      places.leave(place)
      fetch.place = nil
    } else if fetch.isDisplaced {
      fetch.isDisplaced = false
      lingering -= 1
    }
  }

  /// Puts the addresses of an answer in order, stores it and schedules its refresh.
  ///
  /// - Returns: the answer as clients get it.
  @discardableResult
  func insert(_ answer: FinishedAnswer, to asked: ResolverQuestion, _ origin: EntryOrigin) -> FinishedAnswer {
    var answer = answer
    let question = asked.question
    let hidden = ranker?.arrange(
      &answer.response, to: question.name, hash: asked.key.keyedHash,
      isPlain: !question.dnssecOK && !answer.response.isAuthenticated)
    guard let stored = store.insert(answer, to: asked, origin, now: loop.now) else { return answer }
    refresher?.schedule(stored)
    guard let ranker, ranker.measures else { return answer }
    let hasSeveral = answer.response.rotation.size > 0 || hidden?.all != nil
    guard hasSeveral || ranker.comparesFamilies || ranker.entries[stored.entryHash] != nil else { return answer }
    ranker.stored(
      question.name, question.type, hash: stored.entryHash, isKept: refresher?.isOnKeepList(question) ?? false,
      for: origin.client, hiding: hidden)
    return answer
  }

  /// Whether LocalDNS's late answer must not replace a provider's.
  private func isSettledWithoutLocal(_ fetch: Fetch) -> Bool {
    fetch.hasAnswer || fetch.isDecided || store.freshAnswer(to: fetch.asked, now: loop.now) != nil
  }

  /// A provider's final reply arrives after LocalDNS's answer was given: that answer leaves the cache.
  private func removeLocalAnswer(of fetch: Fetch, _ reason: UpstreamFailure) {
    if store.removeLocalAnswers(to: fetch.asked, now: loop.now), fetch.configuration === configuration {
      failures.failed(fetch.key, reason.blame, reason: reason.reason, now: loop.now)
    }
  }

  /// The result for the clients of a fetch that failed: stale data, with half a minute before the next attempt, or the
  /// failure, which is cached (RFC 9520) unless it is one of our own limits.
  private func afterFailure(_ fetch: Fetch, _ reason: UpstreamFailure) -> Result<FinishedAnswer, UpstreamFailure> {
    let entry = store.find(fetch.asked, now: loop.now)
    let given = given(entry, or: reason, fetch.asked)
    switch given {
    case .success:
      guard let entry, isRemembered(reason, of: fetch) else { break }
      store.serveStale(entry, to: fetch.asked, now: loop.now)
      if reason.blame.endsWithRecovery { awaitsRecovery(fetch) }
    case .failure:
      counters.failures += 1
      if isRemembered(reason, of: fetch) {
        failures.failed(fetch.key, reason.blame, reason: reason.reason, now: loop.now)
      }
    }
    return given
  }

  /// A refresh failed: stale data that was served when it began is served for another half a minute.
  private func goOnServingStale(_ fetch: Fetch, _ reason: UpstreamFailure) {
    guard reason.blame.isRemembered, let entry = store.find(fetch.asked, now: loop.now), !entry.isFresh,
      entry.isServed(at: fetch.startedAt)
    else { return }
    store.serveStale(entry, to: fetch.asked, now: loop.now)
  }

  /// The entry's answer; without one the failure.
  func given(
    _ entry: CachedAnswer?, or failure: UpstreamFailure, _ asked: ResolverQuestion
  ) -> Result<FinishedAnswer, UpstreamFailure> {
    guard let entry, let answer = store.answer(to: asked, by: entry, now: loop.now) else { return .failure(failure) }
    if !entry.isFresh { counters.stale += 1 }
    return .success(answer)
  }
}

/// The result of a question for a caller inside the daemon.
package struct ResolvedAnswer: Sendable {
  /// The response as it is cached, or an empty one with RCODE and extended error.
  package var response: ComposedResponse
  /// Seconds until the answer expires; 0 for a failure.
  package var lifetime: UInt32
  /// The source of the answer.
  package var source: AnswerSource
  /// The reason of a failure; nil if there is an answer.
  package var failure: String?
  /// Whether it is an empty answer that may only mean that the name is not in the list of the provider's account.
  package var isAmbiguous = false
  /// Why each upstream but the last gave no answer.
  package var trail: [TrailStep] = []
  /// What an ambiguous answer means.
  package static let ambiguity = "an empty answer; the name may not be in the list of the provider's account"

  /// Creates a result; a failure has a lifetime of 0 seconds and its reason.
  package init(
    response: ComposedResponse, lifetime: UInt32, source: AnswerSource, failure: String? = nil, trail: [TrailStep] = []
  ) {
    self.response = response
    self.lifetime = lifetime
    self.source = source
    self.failure = failure
    self.trail = trail
  }
}

extension ResolvedAnswer {
  init(_ result: FetchResult) {
    switch result.result {
    case .success(let answer):
      self.init(response: answer.response, lifetime: answer.lifetime, source: result.source)
      isAmbiguous = answer.isAmbiguous
    case .failure(let reason):
      self.init(
        response: ComposedResponse(.servFail, extendedError: reason.extendedError), lifetime: 0, source: result.source,
        failure: reason.explanation)
    }
  }
}
