// Refresher.swift -- refreshes names in use before they expire: which names, when, and at what cost.
//
// Resolver's loop only. One timer for the next event; what is not in use costs nothing but its place in the queue.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Persistence
import Refresh
import Upstreams

/// Keeps what is in use fresh.
package final class Refresher: @unchecked Sendable {
  /// A name of `refresh.keep`: it is fetched again whatever happens.
  private struct KeptName {
    var asked: RoutedQuestion
    var source = EntrySource.nobody
    /// When it is due; `.max` while it is being fetched.
    var due = Int64.max
    var doublings: UInt8 = 0
  }

  /// A question that waits for others to travel with.
  private struct Gathered {
    var hash: UInt64
    var heat: Heat
    /// When what is kept was stored.
    var storedAt: Int64?
  }

  let resolver: Resolver
  let loop: any Loop
  private(set) var keep: [RoutedQuestion] { didSet { keptQuestions = Set(keep.map(\.question)) } }
  private var keptQuestions: Set<HTTPDNSQuestion>
  private(set) var preload: [RoutedQuestion]
  let note: (String) -> Void
  private(set) var counters = RefreshCounters()
  private var settings: RefresherSettings
  /// By which what was scheduled before a reload is known.
  private var earlierTiming: RefreshTiming?
  private let cache: MessageCache
  private let spending: RefreshSpending
  private var queue = RefreshQueue()
  private var kept: [UInt64: KeptName] = [:]
  private var retries: [UInt64: Int64] = [:]
  private var gatherings: [RefreshJourney: RefreshGathering<DomainName>] = [:]
  private var gathered: [RoutedQuestion: Gathered] = [:]
  /// The hashes of the questions in flight.
  private var inFlight: Set<UInt64> = []
  private var timer: LoopTimer?
  /// What was hot when the machine fell asleep.
  var hotAsleep: [(asked: RoutedQuestion, heat: Heat)] = []

  /// - Parameters:
  ///   - keep: kept fresh always.
  ///   - preload: resolved at start and on another network.
  ///   - ledger: keeps what is spent beyond the program's life.
  ///   - note: told in one line what came of that.
  package init(
    _ settings: RefresherSettings, keep: [RoutedQuestion], preload: [RoutedQuestion], resolver: Resolver,
    cache: MessageCache, loop: any Loop, ledger: RefreshLedger? = nil, note: @escaping (String) -> Void
  ) {
    self.settings = settings
    self.keep = keep
    keptQuestions = Set(keep.map(\.question))
    self.preload = preload.filter { !keep.contains($0) }
    self.note = note
    self.resolver = resolver
    self.cache = cache
    self.loop = loop
    spending = RefreshSpending(settings.limits, on: loop, ledger: ledger, note: note)
    spending.reserve(forKept: keep.count)
  }

  /// Begins to follow what the resolver keeps. The loop runs.
  package func begin() {
    markKept()
    resolver.assumeIsolated { $0.refresher = self }
  }

  /// Changes the settings, and resolves the names that were added. The schedule stays, and what was spent today stays
  /// spent.
  ///
  /// - Parameter isForNetwork: whether another network is the reason: then the budget counts.
  package func use(
    _ settings: RefresherSettings, keep: [RoutedQuestion], preload: [RoutedQuestion], isForNetwork: Bool = false
  ) {
    if settings.timing != self.settings.timing { earlierTiming = self.settings.timing }
    spending.use(settings.limits)
    spending.reserve(forKept: keep.count)
    self.settings = settings
    let known = Set(self.keep + self.preload)
    self.keep = keep
    self.preload = preload.filter { !keep.contains($0) }
    markKept()
    let new = (keep + self.preload).filter { !known.contains($0) && !isFresh($0) }
    resolveAhead(new, isForNetwork ? "for other search domains" : "after the reload", isBudgeted: isForNetwork)
  }

  /// Finds the entries of the names that are always kept: where they belong to a network, it is the present one.
  func markKept() {
    let last = Dictionary(kept.values.map { ($0.asked, $0) }) { first, _ in first }
    let now = Dictionary(keep.map { (hash(of: $0), last[$0] ?? KeptName(asked: $0)) }) { first, _ in first }
    kept = kept.filter { now[$0.key] != nil }
    for (hash, name) in now where kept[hash] == nil {
      // What was scheduled is the entry of another network.
      kept[hash] = KeptName(asked: name.asked, source: name.source)
      guard let state = cache.state(hash: hash), loop.now.nanoseconds < state.expiresAt else { continue }
      kept[hash]?.source = EntrySource(number: state.source)
      let due = settings.timing.dueOfKept(
        storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt, jitter: jitter(state.storedAt))
      schedule(kept: hash, at: due)
    }
  }

  /// What came out of a file is looked at when it is due, as what has just come; in portions, between which queries are
  /// answered.
  package func schedule(_ loaded: [LoadedEntry]) {
    Task(executorPreference: loop) { [self] in
      for (number, entry) in loaded.enumerated() {
        if number % Refresher.portion == Refresher.portion - 1 { await loop.sleep(for: .zero) }
        // A newer one has been scheduled already.
        guard cache.state(hash: entry.hash)?.storedAt == entry.storedAt else { continue }
        schedule(
          StoredAnswer(hash: entry.hash, life: entry.life, isNXDOMAIN: entry.isDenial, storedAt: entry.storedAt))
      }
    }
  }

  /// Entries that are scheduled in one turn of the loop: half a millisecond or so.
  private static let portion = 512

  /// Whether a question is one of those that are always kept fresh. With DO, CD or a client's subnet it is another one, of
  /// which there may be any number.
  func keepsFresh(_ question: HTTPDNSQuestion) -> Bool { !keptQuestions.isEmpty && keptQuestions.contains(question) }

  /// Whether there is a fresh answer.
  func isFresh(_ asked: RoutedQuestion) -> Bool {
    cache.state(hash: hash(of: asked)).map { loop.now.nanoseconds < $0.expiresAt } ?? false
  }

  /// Kept names that nobody has an answer for, and that are not being fetched, are tried again after a wait.
  ///
  /// - Parameter isBack: whether a provider is back: then those that have expired and wait already do so no longer.
  func retryKept(isBack: Bool = false) {
    let now = loop.now.nanoseconds
    for (hash, name) in kept.sorted(by: { $0.key < $1.key }) {
      if name.due == .max {
        if !inFlight.contains(hash) { failed(hash, now: now) }
      } else if isBack, name.due > now, cache.state(hash: hash).map({ now >= $0.expiresAt }) ?? true {
        kept[hash]?.doublings = 0
        schedule(kept: hash, at: now)
      }
    }
  }

  /// Questions that are hot, on whichever network: they have been refreshed for that reason, or would be now. With what
  /// the schedule will remember of them.
  func hotQuestions() -> [(asked: RoutedQuestion, heat: Heat)] {
    var found: [(RoutedQuestion, Heat)] = []
    queue.forEach { element in
      guard kept[element.ticket] == nil, let state = cache.state(hash: element.ticket), isCurrent(element, state),
        let heat = heat(of: state), let asked = question(element.ticket, onAnyNetwork: true)
      else { return }
      found.append((asked, heat))
    }
    return found
  }

  /// When these entries are due, by the hashes of their keys; nothing for entries that are neither scheduled nor in flight.
  ///
  /// - Complexity: O(n) in the number of scheduled questions.
  func plans(_ hashes: Set<UInt64>) -> [UInt64: RefreshPlan] {
    var plans: [UInt64: RefreshPlan] = [:]
    queue.forEach { element in
      guard hashes.contains(element.ticket), isCurrent(element) else { return }
      let wait = Duration.nanoseconds(max(0, element.due - loop.now.nanoseconds))
      if kept[element.ticket] != nil {
        plans[element.ticket] = .kept(in: wait)
      } else if let state = cache.state(hash: element.ticket) {
        let missing = settings.heat.missingHits(hits: state.hits, heat: Heat(rawValue: state.heat))
        plans[element.ticket] = missing == 0 ? .hot(in: wait) : .ifHit(times: missing, in: wait)
      }
    }
    for hash in hashes.intersection(inFlight.union(gathered.values.map(\.hash))) { plans[hash] = .inFlight }
    return plans
  }

  /// Counts a refresh that an operator requested, for which no budget counts.
  func countTransfer() { counters.transfers += 1 }

  /// How many questions are scheduled; some of them may have been replaced since.
  var scheduled: Int { queue.count }

  /// An answer was kept: it will be looked at when it is due.
  func schedule(_ answer: StoredAnswer) {
    let source = EntrySource(number: answer.life.source)
    let lifetime = Int64(answer.life.lifetime) * 1_000_000_000
    let jitter = jitter(answer.storedAt)
    if !retries.isEmpty { retries[answer.hash] = nil }
    if kept[answer.hash] != nil {
      kept[answer.hash]?.source = source
      kept[answer.hash]?.doublings = 0
      let due = settings.timing.dueOfKept(storedAt: answer.storedAt, lifetime: lifetime, jitter: jitter)
      return schedule(kept: answer.hash, at: due)
    }
    guard settings.heat.hotHits > 0, !answer.isNXDOMAIN, !answer.life.isImmutable, source != .nobody,
      let due = settings.timing.due(storedAt: answer.storedAt, lifetime: lifetime, jitter: jitter)
    else { return }
    insert(answer.hash, at: due)
  }

  /// One number for everything that came in one turn: with equal lifetimes it falls due together and travels together.
  private func jitter(_ storedAt: Int64) -> Double {
    var generator = JitterGenerator(seed: UInt64(bitPattern: storedAt) ^ cache.seed)
    return RefreshTiming.drawJitter(using: &generator)
  }

  private func schedule(kept hash: UInt64, at due: Int64) {
    kept[hash]?.due = due
    insert(hash, at: due)
  }

  private func insert(_ hash: UInt64, at due: Int64) {
    if queue.isCrowded {
      queue.compact { isCurrent($0) }
      retries = retries.filter { cache.state(hash: $0.key) != nil }
    }
    queue.insert(hash, due: due)
    arm()
  }

  private func arm() {
    let closing = gatherings.values.compactMap(\.nextClosing).min() ?? .max
    let next = min(queue.earliestDue ?? .max, closing)
    guard next < .max else { return }
    if let timer, timer.isPending, timer.deadline.nanoseconds <= next { return }
    timer?.cancel()
    timer = loop.schedule(at: BootInstant(nanoseconds: next)) { [unowned self] in fire() }
  }

  private func fire() {
    let now = loop.now.nanoseconds
    while let element = queue.popFirst(dueBy: now) { take(element, now: now) }
    sendClosed(now: now)
    timer?.cancel()
    arm()
  }

  /// Whether an element of the queue still means what is kept under its hash.
  private func isCurrent(_ element: RefreshQueue.Element) -> Bool {
    if let name = kept[element.ticket] { return name.due == element.due }
    return cache.state(hash: element.ticket).map { isCurrent(element, $0) } ?? false
  }

  private func isCurrent(_ element: RefreshQueue.Element, _ state: EntryState) -> Bool {
    if let retry = retries[element.ticket] { return retry == element.due }
    let lifetime = state.expiresAt - state.storedAt
    return [settings.timing, earlierTiming].contains { timing in
      guard let timing else { return false }
      return element.due == timing.due(storedAt: state.storedAt, lifetime: lifetime, jitter: jitter(state.storedAt))
        || element.due == timing.lastLook(storedAt: state.storedAt, lifetime: lifetime)
    }
  }

  private func take(_ element: RefreshQueue.Element, now: Int64) {
    let hash = element.ticket
    if let name = kept[hash] {
      guard name.due == element.due else { return }
      kept[hash]?.due = .max
      return gather(name.asked, hash, .inactive, name.source, cache.state(hash: hash), now: now)
    }
    let state = cache.state(hash: hash)
    let isDue = state.map { isCurrent(element, $0) } ?? false
    if retries[hash] == element.due { retries[hash] = nil }
    guard let state, isDue else { return }
    guard now < state.expiresAt, let heat = heat(of: state) else {
      // What is asked for late in its TTL may still become hot.
      let last = settings.timing.lastLook(storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt)
      return last > element.due && last > now ? insert(hash, at: last) : ()
    }
    guard let asked = question(hash) else { return }
    gather(asked, hash, heat, EntrySource(number: state.source), state, now: now)
  }

  /// What is to be remembered of an entry that is refreshed now; nil where it is left to expire.
  func heat(of state: EntryState) -> Heat? {
    let decision = settings.heat.decide(hits: state.hits, heat: Heat(rawValue: state.heat), isKept: false)
    guard case .refresh(let next) = decision else { return nil }
    return next
  }

  /// The question that an entry answers, if it is one of the network that the machine is on, or of any.
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
    _ asked: RoutedQuestion, _ hash: UInt64, _ heat: Heat, _ last: EntrySource, _ state: EntryState?, now: Int64
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
    let wanted = due.filter { _, detail in
      cache.state(hash: detail.hash).map { $0.storedAt == detail.storedAt } ?? true
    }
    guard !wanted.isEmpty else { return }
    let isPaid = takeFromBudget(wanted.map(\.0), transfer.source)
    for (detail, isPaid) in zip(wanted.map(\.1), isPaid) where !isPaid { failed(detail.hash, now: now) }
    let asked = zip(wanted, isPaid).filter(\.1).map(\.0)
    guard !asked.isEmpty else { return }
    let details = asked.map(\.1)
    let questions = asked.map { RefreshedQuestion(asked: $0, heat: $1.heat.rawValue) }
    inFlight.formUnion(details.map(\.hash))
    Task(executorPreference: loop) { [self] in
      let results = await ask(questions, transfer.source)
      inFlight.subtract(details.map(\.hash))
      for (detail, isThere) in zip(details, results) { ended(detail, isThere: isThere) }
    }
  }

  func ask(_ questions: [RefreshedQuestion], _ source: EntrySource?) async -> [Bool] {
    if case .provider(let index) = source { return await resolver.refresh(questions, from: index) }
    return [await resolver.refreshLocally(questions[0])]
  }

  /// A refresh has ended. An answer that was kept has been scheduled already; one that could not be kept has not, and one
  /// that is in flight for another caller may fail.
  private func ended(_ detail: Gathered, isThere: Bool) {
    if isThere { counters.answers += 1 } else { counters.failures += 1 }
    // A denial lies under another hash: a kept name's is scheduled all the same.
    let isScheduled =
      kept[detail.hash].map { $0.due < .max }
      ?? (cache.state(hash: detail.hash)?.storedAt != detail.storedAt)
    if !isThere || !isScheduled { failed(detail.hash, now: loop.now.nanoseconds) }
  }

  /// Spends what a transfer to `source` costs that asks those questions: which of them it may ask.
  func takeFromBudget(_ asked: [RoutedQuestion], _ source: EntrySource?) -> [Bool] {
    let isPaid = spending.take(
      asked.map { RefreshSpending.Item(name: $0.question.name, isKept: keepsFresh($0.question)) }, price(of: source))
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

  /// Who is asked, and how many names one transfer there carries: 0 where each question travels alone.
  func way(of asked: RoutedQuestion, after last: EntrySource) -> (source: EntrySource, mostNames: Int)? {
    let way = resolver.assumeIsolated { resolver in
      resolver.refreshSource(asked, after: last).map { ($0, resolver.mostNames($0)) }
    }
    guard let (source, mostNames) = way else { return nil }
    return (source, min(mostNames, settings.batches ? spending.mostNames(price(of: source)) : 1))
  }

  /// What an entry that is fetched ahead shall remember: as much as before.
  func heat(of asked: RoutedQuestion) -> Heat {
    cache.state(hash: hash(of: asked)).flatMap { heat(of: $0) } ?? .inactive
  }

  private func hash(of asked: RoutedQuestion) -> UInt64 {
    resolver.assumeIsolated { $0.keyedHash(of: asked) }
  }

  /// After a failure the entry stays and is tried again before it expires; a name of `refresh.keep` also afterwards.
  private func failed(_ hash: UInt64, now: Int64) {
    let state = cache.state(hash: hash)
    if var name = kept[hash] {
      let due = settings.timing.retryOfKept(now: now, expiresAt: state?.expiresAt, doublings: &name.doublings)
      kept[hash] = name
      return schedule(kept: hash, at: due)
    }
    guard let state, let due = settings.timing.retry(now: now, expiresAt: state.expiresAt) else { return }
    retries[hash] = due
    insert(hash, at: due)
  }
}
