// Refresher.swift -- refreshes names in use before they expire: which names, when, and at what cost.
//
// Every transfer may be billed, so a name is refreshed only as long as clients use it. The hot path does not report hits; the
// entry in the cache counts them, and carries the heat of the name on. So the refresher looks only when an entry is due:
//
// 1. An answer that was stored is due after the part `refresh.at` of its lifetime (`RefreshTiming`), somewhat earlier or later
//    by chance. Answers of one turn of the loop get the same jitter, so that those with equal lifetimes stay together.
// 2. When it is due, `HeatPolicy` decides. An answer with `hot_hits` hits is refreshed; then its name is, until
//    `give_up_after` refreshes in a row had no hit. Any other answer gets one last look shortly before it expires, since
//    clients may have come late.
// 3. Questions for the same source gather in a batch for a twentieth of the lifetime, at most 30 s; as many names as the
//    dialect and the budget allow (`RefreshBatches`).
// 4. In a fleet, the daemon that has the lease refreshes for all. The others adopt its answer, or look again later.
// 5. The budget pays for the batch (`RefreshSpending`). What it cannot pay for is tried again while the entry lives, and on the
//    keep list also afterwards. The resolver asks the source, stores the answers, and calls `schedule` for each: back to 1.
//
// Names of `refresh.keep` are refreshed whether or not they are used, and retried with growing pauses. `Preload` resolves them
// and those of `refresh.preload` at the start and on another network, there also hot names, and after a flush what went.
//
// No element of the queue is searched for to move or remove it. Whether the entry with its hash is still due then follows from
// the entry, whose time of storage gives the same due time or last look, or from its `Status`, whose time counts alone. Any
// other element is outdated. So a reload that changes the timing keeps the earlier one.
// Resolver's loop only, and one timer. A name that is not in use costs only its place in the queue.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Persistence

/// Refreshes names in use and those of `refresh.keep` before they expire.
package final class Refresher: @unchecked Sendable {
  /// What is known of a question beside its entry in the cache.
  private struct Status {
    /// The question if it is in `refresh.keep`: it is refreshed regardless of its hits.
    var kept: RoutedQuestion?
    /// The source of a kept question's last answer.
    var source = EntrySource.unknown
    /// How often a kept question's wait for a retry has doubled.
    var doublings: UInt8 = 0
    /// When it is due. Nil for a kept question that is not scheduled, and for another one that is due as its entry says.
    var due: Int64?
    /// How often its refresh was left to another daemon of the fleet.
    var looks = 0
    var isInFlight = false

    var isIdle: Bool { kept == nil && due == nil && looks == 0 && !isInFlight }
  }

  let resolver: any RefreshingResolver
  let loop: any Loop
  private let note: (String) -> Void
  private let cache: MessageCache
  private let spending: RefreshSpending
  package private(set) var counters = RefreshCounters()
  private var settings: Configuration.Refresh
  private var timing: RefreshTiming
  private var heat: HeatPolicy
  /// The timing before the last change, which identifies the queue's elements from that time.
  private var earlierTiming: RefreshTiming?
  private var keep: [RoutedQuestion] = []
  private var keepListQuestions: Set<HTTPDNSQuestion> = []
  private var preload: [RoutedQuestion] = []
  private var queue = DueQueue()
  /// By the hashes of the questions' keys.
  private var statuses: [UInt64: Status] = [:]
  private var batches = RefreshBatches()
  private let timer = OwnedTimer()
  /// When the log last said what was resolved after a flush.
  private var flushNotedAt: BootInstant?
  /// The questions that were hot when the machine went to sleep.
  private var hotAsleep: [(asked: RoutedQuestion, heat: Heat)] = []

  /// - Parameters:
  ///   - keep: always refreshed before they expire.
  ///   - preload: resolved at start and after a change of network.
  ///   - ledger: saves what is spent across restarts.
  ///   - note: logs one line.
  package init(
    _ configuration: Configuration, keep: [RoutedQuestion], preload: [RoutedQuestion], resolver: any RefreshingResolver,
    cache: MessageCache, loop: any Loop, ledger: RefreshLedger? = nil, note: @escaping (String) -> Void
  ) {
    settings = configuration.refresh
    timing = RefreshTiming(configuration)
    heat = HeatPolicy(hotHits: settings.hotHits, giveUpAfter: settings.giveUpAfter)
    self.note = note
    self.resolver = resolver
    self.cache = cache
    self.loop = loop
    spending = RefreshSpending(settings, on: loop, ledger: ledger, note: note)
    setNames(keep: keep, preload: preload)
  }

  private func setNames(keep: [RoutedQuestion], preload: [RoutedQuestion]) {
    self.keep = keep
    keepListQuestions = Set(keep.map(\.question))
    self.preload = preload.filter { !keep.contains($0) }
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
    _ configuration: Configuration, keep: [RoutedQuestion], preload: [RoutedQuestion], isForNetwork: Bool = false
  ) {
    loop.assertCurrent()
    settings = configuration.refresh
    let timing = RefreshTiming(configuration)
    if timing != self.timing { (earlierTiming, self.timing) = (self.timing, timing) }
    heat = HeatPolicy(hotHits: settings.hotHits, giveUpAfter: settings.giveUpAfter)
    spending.use(settings)
    let known = Set(self.keep + self.preload)
    setNames(keep: keep, preload: preload)
    markKeepList()
    startPreload(
      (keep + self.preload).filter { !known.contains($0) && !isFresh($0) },
      occasion: isForNetwork ? "for other search domains" : "after the reload", isBudgeted: isForNetwork)
  }

  /// Finds the entries of the names of `refresh.keep` on the current network, and schedules them.
  private func markKeepList() {
    let last = statuses.values.compactMap { status in status.kept.map { ($0, status.source) } }
    let sources = Dictionary(last) { first, _ in first }
    let kept = Dictionary(keep.map { (hash(of: $0), $0) }) { first, _ in first }
    for (hash, status) in statuses where status.kept != nil && kept[hash] == nil {
      change(hash) { ($0.kept, $0.due) = (nil, nil) }
    }
    for (hash, asked) in kept where statuses[hash]?.kept == nil {
      // An element that is already in the queue belongs to the entry of another network.
      change(hash) { ($0.kept, $0.due, $0.source, $0.doublings) = (asked, nil, sources[asked] ?? .unknown, 0) }
      guard let state = cache.state(hash: hash), loop.now.nanoseconds < state.expiresAt else { continue }
      change(hash) { $0.source = EntrySource(number: state.source) }
      let due = timing.dueOnKeepList(
        storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt, jitter: jitter(state.storedAt))
      schedule(hash, at: due)
    }
  }

  private func change(_ hash: UInt64, _ body: (inout Status) -> Void) {
    var status = statuses[hash] ?? Status()
    body(&status)
    statuses[hash] = status.isIdle ? nil : status
  }

  // MARK: What is known

  /// Whether a question is in `refresh.keep`. With DO, CD or a client subnet it is a different one, of which there may
  /// be any number.
  package func isOnKeepList(_ question: HTTPDNSQuestion) -> Bool {
    loop.assertCurrent()
    return !keepListQuestions.isEmpty && keepListQuestions.contains(question)
  }

  func hash(of asked: RoutedQuestion) -> UInt64 { resolver.assumeIsolated { $0.keyedHash(of: asked) } }

  /// Whether the cache has a fresh answer to the question.
  func isFresh(_ asked: RoutedQuestion) -> Bool {
    cache.state(hash: hash(of: asked)).map { loop.now.nanoseconds < $0.expiresAt } ?? false
  }

  /// The number of scheduled questions, including those whose entries have been replaced since.
  package var scheduled: Int { queue.count }

  /// When these entries are due, by the hashes of their keys; none for entries that are neither scheduled nor in
  /// flight.
  ///
  /// - Complexity: O(n) in the number of scheduled questions.
  package func plans(_ hashes: Set<UInt64>) -> [UInt64: RefreshPlan] {
    loop.assertCurrent()
    var plans: [UInt64: RefreshPlan] = [:]
    queue.forEach { element in
      guard hashes.contains(element.ticket), isCurrent(element) else { return }
      let wait = Duration.nanoseconds(max(0, element.due - loop.now.nanoseconds))
      if statuses[element.ticket]?.kept != nil {
        plans[element.ticket] = .keepList(in: wait)
      } else if let state = cache.state(hash: element.ticket) {
        let missing = heat.missingHits(hits: state.hits, heat: Heat(rawValue: state.heat))
        plans[element.ticket] = missing == 0 ? .hot(in: wait) : .ifHit(times: missing, in: wait)
      }
    }
    for (hash, status) in statuses where status.isInFlight && hashes.contains(hash) { plans[hash] = .inFlight }
    for hash in batches.hashes where hashes.contains(hash) { plans[hash] = .inFlight }
    return plans
  }

  /// The heat of the next entry if this one is refreshed now; nil to let it expire.
  package func heat(of state: EntryState) -> Heat? {
    let decision = heat.decide(hits: state.hits, heat: Heat(rawValue: state.heat), isOnKeepList: false)
    guard case .refresh(let next) = decision else { return nil }
    return next
  }

  /// The hot questions of all networks, which would be refreshed if they were due now, with the heat of their next
  /// entries.
  private func hotQuestions() -> [(asked: RoutedQuestion, heat: Heat)] {
    var found: [(RoutedQuestion, Heat)] = []
    queue.forEach { element in
      guard statuses[element.ticket]?.kept == nil, let state = cache.state(hash: element.ticket),
        isCurrent(element, state), let heat = heat(of: state), let asked = question(element.ticket, onAnyNetwork: true)
      else { return }
      found.append((asked, heat))
    }
    return found
  }

  /// The question that an entry answers; nil if the entry does not belong to the current configuration and network.
  ///
  /// - Parameter onAnyNetwork: accepts the entries of other networks as well.
  private func question(_ hash: UInt64, onAnyNetwork: Bool = false) -> RoutedQuestion? {
    guard let key = cache.key(hash: hash), let (name, scope) = CacheScope.parts(of: key) else { return nil }
    let question = HTTPDNSQuestion(
      name: name, type: RecordType(scope.type), dnssecOK: scope.dnssecOK, checkingDisabled: scope.checkingDisabled)
    let asked = RoutedQuestion(question: question, route: scope.route)
    guard var here = resolver.assumeIsolated({ $0.scope(of: asked) }) else { return nil }
    if onAnyNetwork { here.network = scope.network }
    return here == scope ? asked : nil
  }

  // MARK: Preloading

  /// Resolves the names of `keep` and `preload` that have no fresh answer. Call it once the network is known.
  package func start() {
    loop.assertCurrent()
    markKeepList()
    startPreload((keep + preload).filter { !isFresh($0) }, occasion: "at start", isBudgeted: false)
  }

  /// The machine has slept: notes the hot questions before the schedule finds their entries expired.
  package func hasSlept() {
    loop.assertCurrent()
    hotAsleep = hotQuestions()
  }

  /// The machine is on another network, or has slept: resolves the names of `keep` and `preload` and the hot questions.
  /// Other names are resolved when a client asks.
  package func networkHasChanged() {
    loop.assertCurrent()
    let hot = hotAsleep + hotQuestions()
    hotAsleep = []
    markKeepList()
    startPreload(
      keep + preload + hot.map(\.asked), heat: Dictionary(hot.map { ($0.asked, $0.heat) }) { first, _ in first },
      occasion: "for another network", isBudgeted: true)
  }

  /// The questions of `keep` about these names that have an entry.
  package func cached(among names: NameSelection) -> [RoutedQuestion] {
    loop.assertCurrent()
    return keep.filter { names.contains($0.question.name) && cache.state(hash: hash(of: $0)) != nil }
  }

  /// Resolves those of these questions again at once whose entries are gone. The log says so once a minute.
  package func mayHaveBeenFlushed(_ questions: [RoutedQuestion]) {
    loop.assertCurrent()
    let isNoted = flushNotedAt.map { loop.now - $0 >= .seconds(60) } ?? true
    if isNoted { flushNotedAt = loop.now }
    startPreload(
      questions.filter { cache.state(hash: hash(of: $0)) == nil }, occasion: "after a flush", isBudgeted: true,
      isNoted: isNoted)
  }

  /// Resolves questions in the background, and logs how many got an answer.
  ///
  /// - Parameter heat: the heat of questions that may have no entry any more; for others it is that of the entry.
  private func startPreload(
    _ names: [RoutedQuestion], heat: [RoutedQuestion: Heat] = [:], occasion: String, isBudgeted: Bool,
    isNoted: Bool = true
  ) {
    var seen: Set<RoutedQuestion> = []
    let names = names.filter { seen.insert($0).inserted }
    guard !names.isEmpty else { return }
    let begin = loop.now
    Task(executorPreference: loop) { [self] in
      let count = await Preload(refresher: self, heat: heat, isBudgeted: isBudgeted).resolve(names)
      retryKeepList()
      guard isNoted else { return }
      let time = (loop.now - begin).nanoseconds / 1_000_000
      note("\(count) of \(names.count) names and types resolved \(occasion) in \(time) ms")
    }
  }

  // MARK: Schedule

  /// Schedules entries loaded from the cache file like new answers, in portions, between which the loop answers
  /// queries.
  package func schedule(_ loaded: [LoadedEntry]) {
    loop.assertCurrent()
    Task(executorPreference: loop) { [self] in
      for (number, entry) in loaded.enumerated() {
        if number % Refresher.portion == Refresher.portion - 1 { await loop.sleep(for: .zero) }
        // A newer entry has been scheduled already.
        guard cache.state(hash: entry.hash)?.storedAt == entry.storedAt else { continue }
        schedule(entry.hash, entry.life, isNXDOMAIN: entry.isNXDOMAIN, storedAt: entry.storedAt)
      }
    }
  }

  /// Entries that are scheduled in one turn of the loop, which takes about half a millisecond.
  private static let portion = 512

  /// Schedules an answer that has just been cached.
  ///
  /// - Parameters:
  ///   - hash: that of the question's key.
  ///   - storedAt: in nanoseconds of the boot-time clock.
  package func schedule(_ hash: UInt64, _ life: EntryLife, isNXDOMAIN: Bool, storedAt: Int64) {
    loop.assertCurrent()
    let source = EntrySource(number: life.source)
    let lifetime = Int64(life.lifetime) * 1_000_000_000
    let jitter = jitter(storedAt)
    if let status = statuses[hash] {
      change(hash) { ($0.due, $0.looks, $0.doublings, $0.source) = (nil, 0, 0, source) }
      if status.kept != nil {
        return schedule(hash, at: timing.dueOnKeepList(storedAt: storedAt, lifetime: lifetime, jitter: jitter))
      }
    }
    guard settings.hotHits > 0, !isNXDOMAIN, !life.isImmutable, source != .unknown,
      let due = timing.due(storedAt: storedAt, lifetime: lifetime, jitter: jitter)
    else { return }
    insert(hash, at: due)
  }

  /// One number for all answers of one turn of the loop: those with equal lifetimes fall due together and share a
  /// transfer.
  private func jitter(_ storedAt: Int64) -> Double {
    var generator = JitterGenerator(seed: UInt64(bitPattern: storedAt) ^ cache.seed)
    return RefreshTiming.drawJitter(using: &generator)
  }

  /// Schedules a question at a time that does not follow from its entry.
  private func schedule(_ hash: UInt64, at due: Int64) {
    change(hash) { $0.due = due }
    insert(hash, at: due)
  }

  private func insert(_ hash: UInt64, at due: Int64) {
    if queue.isCrowded, queue.sweep(keeping: { isCurrent($0) }) {
      for (hash, status) in statuses where cache.state(hash: hash) == nil {
        change(hash) {
          $0.looks = 0
          if status.kept == nil { $0.due = nil }
        }
      }
    }
    queue.insert(hash, due: due)
    arm()
  }

  private func arm() {
    let next = min(queue.earliestDue ?? .max, batches.nextClosing)
    guard next < .max else { return }
    if let deadline = timer.deadline, deadline.nanoseconds <= next { return }
    timer.set(at: BootInstant(nanoseconds: next), on: loop, for: self) { $0.fire() }
  }

  private func fire() {
    let now = loop.now.nanoseconds
    while let element = queue.popFirst(dueBy: now) { isDue(element, now: now) }
    for batch in batches.takeClosed(now: now) { begin(batch, now: now) }
    timer.cancel()
    arm()
  }

  /// Whether an element of the queue still applies to the entry with its hash.
  private func isCurrent(_ element: DueQueue.Element) -> Bool {
    if let status = statuses[element.ticket], status.kept != nil { return status.due == element.due }
    return cache.state(hash: element.ticket).map { isCurrent(element, $0) } ?? false
  }

  private func isCurrent(_ element: DueQueue.Element, _ state: EntryState) -> Bool {
    if let due = statuses[element.ticket]?.due { return due == element.due }
    let lifetime = state.expiresAt - state.storedAt
    func matches(_ timing: RefreshTiming) -> Bool {
      element.due == timing.due(storedAt: state.storedAt, lifetime: lifetime, jitter: jitter(state.storedAt))
        || element.due == timing.lastLook(storedAt: state.storedAt, lifetime: lifetime)
    }
    return matches(timing) || earlierTiming.map(matches) ?? false
  }

  private func isDue(_ element: DueQueue.Element, now: Int64) {
    let hash = element.ticket
    let state = cache.state(hash: hash)
    let status = statuses[hash]
    let isCurrent = isCurrent(element)
    if status?.due == element.due { change(hash) { $0.due = nil } }
    if let status, let asked = status.kept {
      return isCurrent ? gather(asked, hash: hash, heat: .inactive, after: status.source, state, now: now) : ()
    }
    guard let state, isCurrent else { return }
    guard now < state.expiresAt, let heat = heat(of: state) else {
      // An entry that is queried late in its lifetime may still become hot.
      let last = timing.lastLook(storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt)
      return last > element.due && last > now ? insert(hash, at: last) : ()
    }
    guard let asked = question(hash) else { return }
    gather(asked, hash: hash, heat: heat, after: EntrySource(number: state.source), state, now: now)
  }

  /// Schedules retries for the names of `refresh.keep` that are neither scheduled nor being fetched.
  ///
  /// - Parameter isBack: whether a provider has recovered: names without a fresh answer that wait for a retry are then
  ///   due at once.
  package func retryKeepList(isBack: Bool = false) {
    loop.assertCurrent()
    let now = loop.now.nanoseconds
    for (hash, status) in statuses.filter({ $0.value.kept != nil }).sorted(by: { $0.key < $1.key }) {
      if let due = status.due {
        guard isBack, due > now, cache.state(hash: hash).map({ now >= $0.expiresAt }) ?? true else { continue }
        change(hash) { $0.doublings = 0 }
        schedule(hash, at: now)
      } else if !status.isInFlight {
        failed(hash, now: now)
      }
    }
  }

  // MARK: Transfers

  private func gather(
    _ asked: RoutedQuestion, hash: UInt64, heat: Heat, after last: EntrySource, _ state: EntryState?, now: Int64
  ) {
    guard let source = source(for: asked, after: last) else { return failed(hash, now: now) }
    var deadline = now
    if let state, source.mostNames > 1 {
      deadline = timing.gatheringDeadline(
        now: now, storedAt: state.storedAt, lifetime: state.expiresAt - state.storedAt)
    }
    let question = RefreshedQuestion(asked: asked, hash: hash, heat: heat, storedAt: state?.storedAt)
    if let batch = batches.add(question, to: source, deadline: deadline) { begin(batch, now: now) }
  }

  /// The source to ask, with as many names per transfer as the budget can pay for; nil if no source may be asked now.
  func source(for asked: RoutedQuestion, after last: EntrySource) -> RefreshSource? {
    guard var source = resolver.assumeIsolated({ $0.refreshSource(asked, after: last) }) else { return nil }
    source.mostNames = min(source.mostNames, settings.batch ? spending.mostNames(price(of: source.source)) : 1)
    return source
  }

  private func price(of source: EntrySource?) -> RefreshPrice {
    source.map { source in resolver.assumeIsolated { $0.refreshPrice(of: source) } } ?? .free
  }

  /// Sends a batch, without what another daemon of the fleet has refreshed, or is about to.
  private func begin(_ batch: RefreshBatch, now: Int64) {
    // An answer that arrived in the meantime has been scheduled again.
    let wanted = batch.questions.filter { isWanted($0) }
    guard !wanted.isEmpty else { return }
    guard case .provider = batch.source, resolver.assumeIsolated({ $0.sharesRefreshes }) else {
      return send(RefreshBatch(source: batch.source, questions: wanted), now: now)
    }
    setInFlight(wanted, true)
    Task(executorPreference: loop) { [self] in
      let ours = await withoutOthers(wanted)
      setInFlight(wanted, false)
      releaseLeases(of: ours.filter { !isWanted($0) })
      let questions = ours.filter { isWanted($0) }
      if !questions.isEmpty {
        send(RefreshBatch(source: batch.source, questions: questions), now: loop.now.nanoseconds)
      }
    }
  }

  /// Sends what the budget allows of a batch.
  private func send(_ batch: RefreshBatch, now: Int64) {
    let isPaid = zip(batch.questions, takeFromBudget(batch.questions.map(\.asked), batch.source))
    let unpaid = isPaid.filter { !$1 }.map(\.0)
    for question in unpaid { failed(question.hash, now: now) }
    releaseLeases(of: unpaid)
    let questions = isPaid.filter(\.1).map(\.0)
    guard !questions.isEmpty, let source = batch.source else { return }
    setInFlight(questions, true)
    Task(executorPreference: loop) { [self] in
      let results = await resolver.refresh(questions, from: source)
      setInFlight(questions, false)
      releaseLeases(of: questions)
      for (question, isThere) in zip(questions, results) { ended(question, isThere: isThere) }
    }
  }

  private func setInFlight(_ questions: [RefreshedQuestion], _ isInFlight: Bool) {
    for question in questions { change(question.hash) { $0.isInFlight = isInFlight } }
  }

  /// Whether the entry is still the one that is to be refreshed, or no longer exists.
  private func isWanted(_ question: RefreshedQuestion) -> Bool {
    cache.state(hash: question.hash).map { $0.storedAt == question.storedAt } ?? true
  }

  /// Releases the leases of refreshes that have ended or are not made.
  private func releaseLeases(of questions: [RefreshedQuestion]) {
    guard !questions.isEmpty else { return }
    resolver.assumeIsolated { resolver in
      for question in questions { resolver.releaseLease(of: question.asked) }
    }
  }

  /// Leaves out what another daemon of the fleet has refreshed, or is about to.
  private func withoutOthers(_ wanted: [RefreshedQuestion]) async -> [RefreshedQuestion] {
    var ours: [RefreshedQuestion] = []
    for question in wanted {
      let hash = question.hash
      let state = cache.state(hash: hash)
      let next = nextLook(at: hash, state)
      let turn = await resolver.turn(toRefresh: question, expiresAt: state?.expiresAt, mayWait: next != nil)
      if case .theirs = turn, let next {
        change(hash) { $0.looks += 1 }
        schedule(hash, at: next)
        continue
      }
      change(hash) { $0.looks = 0 }
      if case .adopted = turn { ended(question, isThere: true) } else { ours.append(question) }
    }
    return ours
  }

  /// When to look again for the answer of a daemon that refreshes: 1 s later, and once more at 95 % of the lifetime. Nil if
  /// there is no time left for that.
  private func nextLook(at hash: UInt64, _ state: EntryState?) -> Int64? {
    let now = loop.now.nanoseconds
    let looks = statuses[hash]?.looks ?? 0
    guard let state else {
      // A name of the keep list is not cached yet: the daemon waits once for the answer of the other one.
      return statuses[hash]?.kept != nil && looks == 0 ? now + 1_000_000_000 : nil
    }
    let last = state.expiresAt - (state.expiresAt - state.storedAt) / 20
    let next = looks == 0 ? min(now + 1_000_000_000, last) : last
    return looks < 2 && next > now ? next : nil
  }

  /// Handles the result of a refresh. An answer that was cached has been scheduled already. One that could not be
  /// cached has not, and a question in flight for another caller may still fail.
  private func ended(_ question: RefreshedQuestion, isThere: Bool) {
    if isThere { counters.answers += 1 } else { counters.failures += 1 }
    // NXDOMAIN is cached under another hash; a name of `refresh.keep` is scheduled all the same.
    let status = statuses[question.hash]
    let isScheduled =
      status?.kept == nil ? cache.state(hash: question.hash)?.storedAt != question.storedAt : status?.due != nil
    if !isThere || !isScheduled { failed(question.hash, now: loop.now.nanoseconds) }
  }

  /// Schedules a retry after a failed refresh: before the entry expires, for a name of `refresh.keep` also afterwards.
  private func failed(_ hash: UInt64, now: Int64) {
    let state = cache.state(hash: hash)
    if statuses[hash]?.kept != nil {
      var due = now
      change(hash) { due = timing.retryOnKeepList(now: now, expiresAt: state?.expiresAt, doublings: &$0.doublings) }
      schedule(hash, at: due)
    } else if let state, let due = timing.retry(now: now, expiresAt: state.expiresAt) {
      schedule(hash, at: due)
    }
  }

  // MARK: Cost

  /// Takes the cost of a transfer to `source` from the budget.
  ///
  /// - Returns: for each question, whether it may be asked.
  package func takeFromBudget(_ asked: [RoutedQuestion], _ source: EntrySource?) -> [Bool] {
    loop.assertCurrent()
    let isPaid = spending.take(
      asked.map { RefreshSpending.Item(name: $0.question.name, isOnKeepList: isOnKeepList($0.question)) },
      price(of: source))
    if isPaid.contains(true) { counters.transfers += 1 }
    if isPaid.contains(false) { counters.overBudget += 1 }
    return isPaid
  }

  /// Counts a refresh that an operator requested, to which no budget applies.
  package func countTransfer() {
    loop.assertCurrent()
    counters.transfers += 1
  }

  /// The question with the heat of its next entry, before it is due.
  ///
  /// - Parameter heat: nil for that of its entry.
  func refreshed(_ asked: RoutedQuestion, heat: Heat?) -> RefreshedQuestion {
    let hash = hash(of: asked)
    let heat = heat ?? cache.state(hash: hash).flatMap { self.heat(of: $0) } ?? .inactive
    return RefreshedQuestion(asked: asked, hash: hash, heat: heat)
  }
}

extension RefreshTiming {
  init(_ configuration: Configuration) {
    self.init(
      fraction: configuration.refresh.at, minimumTTL: configuration.refresh.minTTL.nanoseconds,
      isShared: configuration.cache.redis != nil)
  }
}
