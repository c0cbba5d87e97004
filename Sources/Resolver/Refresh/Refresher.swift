// Refresher.swift -- refreshes names in use before they expire: which names, when, and at what cost.
//
// Resolver's loop only. It has one timer, for the next event. A name that is not in use costs only its place in the
// queue.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Persistence
import Refresh
import Upstreams

/// Refreshes names in use and those of `refresh.keep` before they expire.
package final class Refresher: @unchecked Sendable {
  /// A question of `refresh.keep`: it is refreshed regardless of its hits.
  private struct KeepListEntry {
    var asked: RoutedQuestion
    var source = EntrySource.unknown
    /// When it is due; `.max` while it is being fetched.
    var due = Int64.max
    var doublings: UInt8 = 0
  }

  /// A question that waits for others to share a transfer.
  private struct Gathered {
    var hash: UInt64
    var heat: Heat
    /// When its entry was stored; nil if it has none.
    var storedAt: Int64?
  }

  let resolver: Resolver
  let loop: any Loop
  private(set) var keep: [RoutedQuestion] { didSet { keepListQuestions = Set(keep.map(\.question)) } }
  private var keepListQuestions: Set<HTTPDNSQuestion>
  private(set) var preload: [RoutedQuestion]
  let note: (String) -> Void
  private(set) var counters = RefreshCounters()
  private var settings: RefresherSettings
  /// How often refreshes have been left to another daemon of the fleet, by the hash of the entry.
  private var awaited: [UInt64: Int] = [:]
  /// The timing before the last change, which identifies the queue's elements from that time.
  private var earlierTiming: RefreshTiming?
  private let cache: MessageCache
  private let spending: RefreshSpending
  private var queue = DueQueue()
  private var keepList: [UInt64: KeepListEntry] = [:]
  private var retries: [UInt64: Int64] = [:]
  private var gatherings: [RefreshJourney: RefreshGathering<DomainName>] = [:]
  private var gathered: [RoutedQuestion: Gathered] = [:]
  /// The hashes of the questions in flight.
  private var inFlight: Set<UInt64> = []
  private let timer = OwnedTimer()
  /// When the log last said what was resolved after a flush.
  var flushNotedAt: BootInstant?
  /// The questions that were hot when the machine went to sleep.
  var hotAsleep: [(asked: RoutedQuestion, heat: Heat)] = []

  /// - Parameters:
  ///   - keep: always refreshed before they expire.
  ///   - preload: resolved at start and after a change of network.
  ///   - ledger: saves what is spent across restarts.
  ///   - note: logs one line.
  package init(
    _ settings: RefresherSettings, keep: [RoutedQuestion], preload: [RoutedQuestion], resolver: Resolver,
    cache: MessageCache, loop: any Loop, ledger: RefreshLedger? = nil, note: @escaping (String) -> Void
  ) {
    self.settings = settings
    self.keep = keep
    keepListQuestions = Set(keep.map(\.question))
    self.preload = preload.filter { !keep.contains($0) }
    self.note = note
    self.resolver = resolver
    self.cache = cache
    self.loop = loop
    spending = RefreshSpending(settings.limits, on: loop, ledger: ledger, note: note)
    spending.reserve(forKeepList: keep.count)
  }

  /// Starts to schedule what the resolver caches. Call it on the resolver's loop.
  package func begin() {
    loop.assertCurrent()
    markKeepList()
    resolver.assumeIsolated { $0.refresher = self }
  }

  /// Changes the settings, and resolves names that were added. The schedule stays, and units spent in the last day
  /// still count.
  ///
  /// - Parameter isForNetwork: whether a change of network is the reason; the budget then applies.
  package func use(
    _ settings: RefresherSettings, keep: [RoutedQuestion], preload: [RoutedQuestion], isForNetwork: Bool = false
  ) {
    loop.assertCurrent()
    if settings.timing != self.settings.timing { earlierTiming = self.settings.timing }
    spending.use(settings.limits)
    spending.reserve(forKeepList: keep.count)
    self.settings = settings
    let known = Set(self.keep + self.preload)
    self.keep = keep
    self.preload = preload.filter { !keep.contains($0) }
    markKeepList()
    let new = (keep + self.preload).filter { !known.contains($0) && !isFresh($0) }
    resolveAhead(
      new, occasion: isForNetwork ? "for other search domains" : "after the reload", isBudgeted: isForNetwork)
  }

  /// Finds the entries of the names of `refresh.keep` on the current network, and schedules them.
  func markKeepList() {
    let last = Dictionary(keepList.values.map { ($0.asked, $0) }) { first, _ in first }
    let now = Dictionary(keep.map { (hash(of: $0), last[$0] ?? KeepListEntry(asked: $0)) }) { first, _ in first }
    keepList = keepList.filter { now[$0.key] != nil }
    for (hash, name) in now where keepList[hash] == nil {
      // An element that is already in the queue belongs to the entry of another network.
      keepList[hash] = KeepListEntry(asked: name.asked, source: name.source)
      guard let state = cache.state(hash: hash), loop.now.nanoseconds < state.expiresAt else { continue }
      keepList[hash]?.source = EntrySource(number: state.source)
      let due = settings.timing.dueOnKeepList(
        storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt, jitter: jitter(state.storedAt))
      schedule(onKeepList: hash, at: due)
    }
  }

  /// Schedules entries loaded from the cache file like new answers, in portions, between which the loop answers
  /// queries.
  package func schedule(_ loaded: [LoadedEntry]) {
    loop.assertCurrent()
    Task(executorPreference: loop) { [self] in
      for (number, entry) in loaded.enumerated() {
        if number % Refresher.portion == Refresher.portion - 1 { await loop.sleep(for: .zero) }
        // A newer entry has been scheduled already.
        guard cache.state(hash: entry.hash)?.storedAt == entry.storedAt else { continue }
        schedule(
          StoredAnswer(
            hash: entry.hash, entryHash: entry.hash, life: entry.life, isNXDOMAIN: entry.isNXDOMAIN,
            storedAt: entry.storedAt))
      }
    }
  }

  /// Entries that are scheduled in one turn of the loop, which takes about half a millisecond.
  private static let portion = 512

  /// Whether a question is in `refresh.keep`. With DO, CD or a client subnet it is a different one, of which there may
  /// be any number.
  func isOnKeepList(_ question: HTTPDNSQuestion) -> Bool {
    loop.assertCurrent()
    return !keepListQuestions.isEmpty && keepListQuestions.contains(question)
  }

  /// Whether the cache has a fresh answer to the question.
  func isFresh(_ asked: RoutedQuestion) -> Bool {
    cache.state(hash: hash(of: asked)).map { loop.now.nanoseconds < $0.expiresAt } ?? false
  }

  /// Whether a question has an entry, fresh or not.
  func isCached(_ asked: RoutedQuestion) -> Bool { cache.state(hash: hash(of: asked)) != nil }

  /// Schedules retries for the names of `refresh.keep` that are neither scheduled nor being fetched.
  ///
  /// - Parameter isBack: whether a provider has recovered: names without a fresh answer that wait for a retry are then
  ///   due at once.
  func retryKeepList(isBack: Bool = false) {
    loop.assertCurrent()
    let now = loop.now.nanoseconds
    for (hash, name) in keepList.sorted(by: { $0.key < $1.key }) {
      if name.due == .max {
        if !inFlight.contains(hash) { failed(hash, now: now) }
      } else if isBack, name.due > now, cache.state(hash: hash).map({ now >= $0.expiresAt }) ?? true {
        keepList[hash]?.doublings = 0
        schedule(onKeepList: hash, at: now)
      }
    }
  }

  /// The hot questions of all networks, which would be refreshed if they were due now, with the heat of their next
  /// entries.
  func hotQuestions() -> [(asked: RoutedQuestion, heat: Heat)] {
    var found: [(RoutedQuestion, Heat)] = []
    queue.forEach { element in
      guard keepList[element.ticket] == nil, let state = cache.state(hash: element.ticket), isCurrent(element, state),
        let heat = heat(of: state), let asked = question(element.ticket, onAnyNetwork: true)
      else { return }
      found.append((asked, heat))
    }
    return found
  }

  /// When these entries are due, by the hashes of their keys; none for entries that are neither scheduled nor in
  /// flight.
  ///
  /// - Complexity: O(n) in the number of scheduled questions.
  func plans(_ hashes: Set<UInt64>) -> [UInt64: RefreshPlan] {
    loop.assertCurrent()
    var plans: [UInt64: RefreshPlan] = [:]
    queue.forEach { element in
      guard hashes.contains(element.ticket), isCurrent(element) else { return }
      let wait = Duration.nanoseconds(max(0, element.due - loop.now.nanoseconds))
      if keepList[element.ticket] != nil {
        plans[element.ticket] = .keepList(in: wait)
      } else if let state = cache.state(hash: element.ticket) {
        let missing = settings.heat.missingHits(hits: state.hits, heat: Heat(rawValue: state.heat))
        plans[element.ticket] = missing == 0 ? .hot(in: wait) : .ifHit(times: missing, in: wait)
      }
    }
    for hash in hashes.intersection(inFlight.union(gathered.values.map(\.hash))) { plans[hash] = .inFlight }
    return plans
  }

  /// Counts a refresh that an operator requested, to which no budget applies.
  func countTransfer() {
    loop.assertCurrent()
    counters.transfers += 1
  }

  /// The number of scheduled questions, including those whose entries have been replaced since.
  var scheduled: Int { queue.count }

  /// Schedules an answer that has just been cached.
  func schedule(_ answer: StoredAnswer) {
    loop.assertCurrent()
    let source = EntrySource(number: answer.life.source)
    let lifetime = Int64(answer.life.lifetime) * 1_000_000_000
    let jitter = jitter(answer.storedAt)
    if !retries.isEmpty { retries[answer.hash] = nil }
    if !awaited.isEmpty { awaited[answer.hash] = nil }
    if keepList[answer.hash] != nil {
      keepList[answer.hash]?.source = source
      keepList[answer.hash]?.doublings = 0
      let due = settings.timing.dueOnKeepList(storedAt: answer.storedAt, lifetime: lifetime, jitter: jitter)
      return schedule(onKeepList: answer.hash, at: due)
    }
    guard settings.heat.hotHits > 0, !answer.isNXDOMAIN, !answer.life.isImmutable, source != .unknown,
      let due = settings.timing.due(storedAt: answer.storedAt, lifetime: lifetime, jitter: jitter)
    else { return }
    insert(answer.hash, at: due)
  }

  /// One number for all answers of one turn of the loop: those with equal lifetimes fall due together and share a
  /// transfer.
  private func jitter(_ storedAt: Int64) -> Double {
    var generator = JitterGenerator(seed: UInt64(bitPattern: storedAt) ^ cache.seed)
    return RefreshTiming.drawJitter(using: &generator)
  }

  private func schedule(onKeepList hash: UInt64, at due: Int64) {
    keepList[hash]?.due = due
    insert(hash, at: due)
  }

  private func insert(_ hash: UInt64, at due: Int64) {
    if queue.isCrowded, queue.sweep(keeping: { isCurrent($0) }) {
      retries = retries.filter { cache.state(hash: $0.key) != nil }
      awaited = awaited.filter { cache.state(hash: $0.key) != nil }
    }
    queue.insert(hash, due: due)
    arm()
  }

  private func arm() {
    let closing = gatherings.values.compactMap(\.nextClosing).min() ?? .max
    let next = min(queue.earliestDue ?? .max, closing)
    guard next < .max else { return }
    if let deadline = timer.deadline, deadline.nanoseconds <= next { return }
    timer.set(at: BootInstant(nanoseconds: next), on: loop, for: self) { $0.fire() }
  }

  private func fire() {
    let now = loop.now.nanoseconds
    while let element = queue.popFirst(dueBy: now) { take(element, now: now) }
    sendClosed(now: now)
    timer.cancel()
    arm()
  }

  /// Whether an element of the queue still applies to the entry with its hash.
  private func isCurrent(_ element: DueQueue.Element) -> Bool {
    if let name = keepList[element.ticket] { return name.due == element.due }
    return cache.state(hash: element.ticket).map { isCurrent(element, $0) } ?? false
  }

  private func isCurrent(_ element: DueQueue.Element, _ state: EntryState) -> Bool {
    if let retry = retries[element.ticket] { return retry == element.due }
    let lifetime = state.expiresAt - state.storedAt
    return [settings.timing, earlierTiming].contains { timing in
      guard let timing else { return false }
      return element.due == timing.due(storedAt: state.storedAt, lifetime: lifetime, jitter: jitter(state.storedAt))
        || element.due == timing.lastLook(storedAt: state.storedAt, lifetime: lifetime)
    }
  }

  private func take(_ element: DueQueue.Element, now: Int64) {
    let hash = element.ticket
    if let name = keepList[hash] {
      guard name.due == element.due else { return }
      keepList[hash]?.due = .max
      return gather(
        name.asked, hash: hash, heat: .inactive, after: name.source, cache.state(hash: hash), now: now)
    }
    let state = cache.state(hash: hash)
    let isDue = state.map { isCurrent(element, $0) } ?? false
    if retries[hash] == element.due { retries[hash] = nil }
    guard let state, isDue else { return }
    guard now < state.expiresAt, let heat = heat(of: state) else {
      // An entry that is queried late in its lifetime may still become hot.
      let last = settings.timing.lastLook(storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt)
      return last > element.due && last > now ? insert(hash, at: last) : ()
    }
    guard let asked = question(hash) else { return }
    gather(asked, hash: hash, heat: heat, after: EntrySource(number: state.source), state, now: now)
  }

  /// The heat of the next entry if this one is refreshed now; nil to let it expire.
  func heat(of state: EntryState) -> Heat? {
    let decision = settings.heat.decide(hits: state.hits, heat: Heat(rawValue: state.heat), isOnKeepList: false)
    guard case .refresh(let next) = decision else { return nil }
    return next
  }

  /// The question that an entry answers; nil if the entry does not belong to the current configuration and network.
  ///
  /// - Parameter onAnyNetwork: accepts the entries of other networks as well.
  private func question(_ hash: UInt64, onAnyNetwork: Bool = false) -> RoutedQuestion? {
    guard let key = cache.key(hash: hash), let (name, scope) = CacheScope.parts(of: key) else { return nil }
    let question = HTTPDNSQuestion(
      name: name, type: RecordType(scope.type), dnssecOK: scope.dnssecOK, checkingDisabled: scope.checkingDisabled)
    let isHere = resolver.assumeIsolated { resolver in
      guard let route = resolver.configuration.route(scope.route) else { return false }
      var here = resolver.store.scope(question, route)
      if onAnyNetwork { here.network = scope.network }
      return here == scope
    }
    return isHere ? RoutedQuestion(question: question, route: scope.route) : nil
  }

  private func gather(
    _ asked: RoutedQuestion, hash: UInt64, heat: Heat, after last: EntrySource, _ state: EntryState?, now: Int64
  ) {
    guard let (source, mostNames) = way(of: asked, after: last) else { return failed(hash, now: now) }
    gathered[asked] = Gathered(hash: hash, heat: heat, storedAt: state?.storedAt)
    guard mostNames > 0, let family = asked.question.family else {
      return send(RefreshTransfer(source: source, asked: [asked]), now: now)
    }
    var deadline = now
    if let state, mostNames > 1 {
      deadline = settings.timing.gatheringDeadline(
        now: now, storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt)
    }
    let journey = RefreshJourney(source: source, route: asked.route)
    gatherings[journey, default: RefreshGathering(mostNames: mostNames)]
      .add(asked.question.name, family, deadline: deadline)
  }

  private func sendClosed(now: Int64) {
    for journey in gatherings.keys {
      for group in gatherings[journey]?.takeClosed(now: now) ?? [] {
        for transfer in journey.transfers(of: group) { send(transfer, now: now) }
      }
    }
  }

  private func send(_ transfer: RefreshTransfer, now: Int64) {
    let due = transfer.asked.compactMap { asked in gathered.removeValue(forKey: asked).map { (asked, $0) } }
    // An answer that arrived in the meantime has been scheduled again.
    let wanted = due.filter { isDue($0.1) }
    guard !wanted.isEmpty else { return }
    guard case .provider = transfer.source, resolver.assumeIsolated({ $0.sharesRefreshes }) else {
      return send(wanted, transfer.source, now: now)
    }
    inFlight.formUnion(wanted.map(\.1.hash))
    Task(executorPreference: loop) { [self] in
      let ours = await withoutOthers(wanted)
      inFlight.subtract(wanted.map(\.1.hash))
      let due = ours.filter { isDue($0.1) }
      releaseLeases(of: ours.map(\.0).filter { asked in !due.contains { $0.0 == asked } })
      if !due.isEmpty { send(due, transfer.source, now: loop.now.nanoseconds) }
    }
  }

  private func send(_ wanted: [(RoutedQuestion, Gathered)], _ source: EntrySource?, now: Int64) {
    let isPaid = takeFromBudget(wanted.map(\.0), source)
    for (detail, isPaid) in zip(wanted.map(\.1), isPaid) where !isPaid { failed(detail.hash, now: now) }
    let asked = zip(wanted, isPaid).filter(\.1).map(\.0)
    releaseLeases(of: zip(wanted, isPaid).filter { !$0.1 }.map(\.0.0))
    guard !asked.isEmpty else { return }
    let details = asked.map(\.1)
    let questions = asked.map { RefreshedQuestion(asked: $0, heat: $1.heat.rawValue) }
    inFlight.formUnion(details.map(\.hash))
    Task(executorPreference: loop) { [self] in
      let results = await ask(questions, source)
      inFlight.subtract(details.map(\.hash))
      releaseLeases(of: asked.map(\.0))
      for (detail, isThere) in zip(details, results) { ended(detail, isThere: isThere) }
    }
  }

  /// Whether the entry is still the one that is to be refreshed, or no longer exists.
  private func isDue(_ detail: Gathered) -> Bool {
    cache.state(hash: detail.hash).map { $0.storedAt == detail.storedAt } ?? true
  }

  /// Releases the leases of refreshes that have ended or are not made.
  private func releaseLeases(of asked: [RoutedQuestion]) {
    guard !asked.isEmpty else { return }
    resolver.assumeIsolated { resolver in
      for asked in asked { resolver.releaseLease(of: asked) }
    }
  }

  /// Leaves out what another daemon of the fleet has refreshed, or is about to.
  private func withoutOthers(_ wanted: [(RoutedQuestion, Gathered)]) async -> [(RoutedQuestion, Gathered)] {
    var ours: [(RoutedQuestion, Gathered)] = []
    for (asked, detail) in wanted {
      let state = cache.state(hash: detail.hash)
      let next = nextLook(at: detail.hash, state)
      let turn = await resolver.turn(
        toRefresh: RefreshedQuestion(asked: asked, heat: detail.heat.rawValue), expiresAt: state?.expiresAt,
        mayWait: next != nil)
      if case .theirs = turn, let next {
        awaited[detail.hash, default: 0] += 1
        if keepList[detail.hash] != nil {
          schedule(onKeepList: detail.hash, at: next)
        } else {
          retries[detail.hash] = next
          insert(detail.hash, at: next)
        }
        continue
      }
      awaited[detail.hash] = nil
      if case .adopted = turn { ended(detail, isThere: true) } else { ours.append((asked, detail)) }
    }
    return ours
  }

  /// When to look again for the answer of a daemon that refreshes: 1 s later, and once more at 95 % of the lifetime. Nil if
  /// there is no time left for that.
  private func nextLook(at hash: UInt64, _ state: EntryState?) -> Int64? {
    let now = loop.now.nanoseconds
    guard let state else {
      // A name of the keep list is not cached yet: the daemon waits once for the answer of the other one.
      return keepList[hash] != nil && awaited[hash] == nil ? now + 1_000_000_000 : nil
    }
    let last = state.expiresAt - (state.expiresAt - state.storedAt) / 20
    switch awaited[hash, default: 0] {
    case 0: return min(now + 1_000_000_000, last) > now ? min(now + 1_000_000_000, last) : nil
    case 1: return last > now ? last : nil
    default: return nil
    }
  }

  func ask(_ questions: [RefreshedQuestion], _ source: EntrySource?) async -> [Bool] {
    if case .provider(let index) = source { return await resolver.refresh(questions, from: index) }
    return [await resolver.refreshLocally(questions[0])]
  }

  /// Handles the result of a refresh. An answer that was cached has been scheduled already. One that could not be
  /// cached has not, and a question in flight for another caller may still fail.
  private func ended(_ detail: Gathered, isThere: Bool) {
    if isThere { counters.answers += 1 } else { counters.failures += 1 }
    // NXDOMAIN is cached under another hash; a name of `refresh.keep` is scheduled all the same.
    let isScheduled =
      keepList[detail.hash].map { $0.due < .max }
      ?? (cache.state(hash: detail.hash)?.storedAt != detail.storedAt)
    if !isThere || !isScheduled { failed(detail.hash, now: loop.now.nanoseconds) }
  }

  /// Takes the cost of a transfer to `source` from the budget.
  ///
  /// - Returns: for each question, whether it may be asked.
  func takeFromBudget(_ asked: [RoutedQuestion], _ source: EntrySource?) -> [Bool] {
    loop.assertCurrent()
    let isPaid = spending.take(
      asked.map { RefreshSpending.Item(name: $0.question.name, isOnKeepList: isOnKeepList($0.question)) },
      price(of: source))
    if isPaid.contains(true) { counters.transfers += 1 }
    if isPaid.contains(false) { counters.overBudget += 1 }
    return isPaid
  }

  private func price(of source: EntrySource?) -> RefreshPrice {
    guard case .provider(let number) = source else { return .free }
    return resolver.assumeIsolated { resolver in
      resolver.configuration.place(ofProvider: number).map { resolver.upstreams[$0].refreshPrice } ?? .free
    }
  }

  /// The source to ask and the maximum number of names per transfer: 0 if each question travels alone. Nil if no source
  /// may be asked now.
  func way(of asked: RoutedQuestion, after last: EntrySource) -> (source: EntrySource, mostNames: Int)? {
    let way = resolver.assumeIsolated { resolver in
      resolver.refreshSource(asked, after: last).map { ($0, resolver.mostNames($0)) }
    }
    guard let (source, mostNames) = way else { return nil }
    return (source, min(mostNames, settings.batches ? spending.mostNames(price(of: source)) : 1))
  }

  /// The heat of the next entry of a question that is fetched before it is due.
  func heat(of asked: RoutedQuestion) -> Heat {
    cache.state(hash: hash(of: asked)).flatMap { heat(of: $0) } ?? .inactive
  }

  private func hash(of asked: RoutedQuestion) -> UInt64 {
    resolver.assumeIsolated { $0.keyedHash(of: asked) }
  }

  /// Schedules a retry after a failed refresh: before the entry expires, for a name of `refresh.keep` also afterwards.
  private func failed(_ hash: UInt64, now: Int64) {
    let state = cache.state(hash: hash)
    if var name = keepList[hash] {
      let due = settings.timing.retryOnKeepList(now: now, expiresAt: state?.expiresAt, doublings: &name.doublings)
      keepList[hash] = name
      return schedule(onKeepList: hash, at: due)
    }
    guard let state, let due = settings.timing.retry(now: now, expiresAt: state.expiresAt) else { return }
    retries[hash] = due
    insert(hash, at: due)
  }
}
