// Ranker.swift -- measures the addresses of names in use in the background, and orders cached answers.
//
// No client waits for a measurement: a new answer is ordered by earlier measurements, and its addresses are measured
// after it was sent. Each such answer has an entry, and a timer looks at the entry from time to time. If the answer had
// hits since its last measurement, a round measures its addresses; otherwise the next look follows later. Resolver's
// loop only.

import DNSWire
import EventLoop
import FairShares
import MessageCache

/// Measures addresses and orders answers. The resolver owns it.
package final class Ranker {
  /// The state of an answer that is measured while it is used.
  struct Entry {
    /// Hits of the answer at its last measurement. Further hits mean that the answer is in use.
    var hits: UInt32
    /// When it was last measured; nil if it was not measured on this network.
    var measuredAt: Int64?
    /// When the next look is due.
    var dueAt: Int64
    /// The time between two looks while the answer is not used.
    var wait: Int64
    /// Whether the next look measures it even without a hit.
    var isEager: Bool
    var isIPv6: Bool
    /// Whether its name is on the keep list: it is measured even without a hit.
    var isKept: Bool
    /// The client and the domain that its probes are charged to; empty for the daemon's own names.
    var shares: [UInt64]
    /// The hash of the key of the name's answer for the other family, if the families are compared.
    var partner: UInt64?
    var hidden: HiddenAddresses

    var all: [[UInt8]]? {
      get { hidden.all }
      set { hidden.all = newValue }
    }
  }

  /// Identifies a measurement, so that two answers with the same address share it.
  private struct Measured: Hashable {
    var address: IPAddress
    var kind: ProbeKind
  }

  private struct CanaryQuestion: Hashable {
    var isIPv6: Bool
    var network: UInt32
  }

  var counters = RankingCounters()
  /// The reports of programs.
  var reports: AddressReports
  /// The hashes of the keys of answers with reported addresses, by name.
  var reported: [DomainName: Set<UInt64>] = [:]
  let reportTimer = OwnedTimer()
  /// The beginning of the second in which reports are counted. `reportCount` is their number.
  var reportsSince: BootInstant
  var reportCount = 0

  let loop: any Loop
  let cache: MessageCache
  let network: CurrentNetwork
  let prober: any AddressProber
  private let log: @Sendable (String) -> Void
  package private(set) var settings: RankingSettings
  private(set) var table = MeasurementTable()
  private var pacing: ProbePacing
  private(set) var canary = CanaryWatch()
  /// The canaries in flight, with the rounds that wait for them.
  private var canaries: [CanaryQuestion: [ProbeRound]] = [:]
  var entries: [UInt64: Entry] = [:]
  /// The number of entries for each client and domain.
  private var entryCounts: [UInt64: Int] = [:]
  private var looks = DueQueue()
  private var rounds: [UInt64: ProbeRound] = [:]
  /// Probes that have not begun.
  private var waiting: [ProbeJob] = []
  /// When the next waiting probe may begin; `max` if no probe waits, or if all wait for the end of another one.
  private var waitingDue = Int64.max
  /// The uses of the least used name with a waiting probe, when the probes were last sorted.
  private var leastUses: UInt32 = 0
  /// The job that performs a measurement. Jobs of other answers wait for its result.
  private var measuring: [Measured: ProbeJob] = [:]
  private let timer = OwnedTimer()
  private var timerAt = Int64.max

  /// Maximum answers that are measured.
  static let mostEntries = 10_000
  /// Maximum answers for one client or one domain, so that others can add some.
  static let mostEntriesOfOne = mostEntries * 3 / 4
  /// If this many probes wait, a further answer is measured only in place of one that is used less.
  static let mostWaiting = 1_024
  /// Maximum addresses of an answer that are measured.
  static let mostAddresses = 8
  private static let second: Int64 = 1_000_000_000
  /// The time from storing an answer to the first look.
  private static let firstLook = 2 * second
  /// The time between looks while the answer is not used, for `closeLooks` after it was stored.
  private static let (nextLook, closeLooks) = (3 * second, 30 * second)
  /// After `closeLooks` that time doubles with each look, up to this maximum.
  private static let longestWait = 60 * second
  /// The time after which an address that has failed once is measured again.
  private static let doubt = 5 * second + second / 10

  /// - Parameter log: logs a line.
  package init(
    _ settings: RankingSettings, of cache: MessageCache, _ network: CurrentNetwork, prober: any AddressProber,
    on loop: any Loop, log: @escaping @Sendable (String) -> Void
  ) {
    self.settings = settings
    self.cache = cache
    self.network = network
    self.prober = prober
    self.loop = loop
    self.log = log
    pacing = ProbePacing(perMinute: settings.probesPerMinute)
    reports = AddressReports(badFor: settings.badFor.nanoseconds)
    reportsSince = loop.now
    prober.prepare(settings.allKinds)
  }

  /// Whether any name is measured.
  package var measures: Bool { settings.measures }

  /// Whether an answer is measured while it is used.
  package func measures(_ hash: UInt64) -> Bool { entries[hash] != nil }

  /// Whether programs may report addresses.
  package var takesReports: Bool { settings.takesReports }

  private var now: Int64 { loop.now.nanoseconds }
  private var interval: Int64 { settings.interval.nanoseconds }

  // MARK: Answers in use

  /// Adds or updates the entry of an answer that was stored. It is measured after its first hit; if its name is listed
  /// in `ranking.domains` or on the keep list, it is measured immediately.
  ///
  /// - Parameter hidden: the addresses that the new answer omits; nil if the answer is not new.
  package func stored(
    _ name: DomainName, _ type: RecordType, hash: UInt64, isKept: Bool, for client: ClientKey = .ourselves,
    hiding hidden: HiddenAddresses? = nil
  ) {
    if let hidden { entries[hash]?.hidden = hidden }
    guard measures, type == .a || type == .aaaa else { return drop(hash) }
    let (kinds, isListed) = settings.measures(for: name)
    guard !kinds.isEmpty else { return drop(hash) }
    let isIPv6 = type == .aaaa
    let partner = comparesFamilies ? otherFamily(of: hash) : nil
    let hasBoth = partner.map { self.run(of: $0, isIPv6: !isIPv6) != nil } ?? false
    guard let run = run(of: hash, isIPv6: isIPv6, hidden), let state = cache.state(hash: hash),
      run.addresses.count > 1 || hasBoth, !measurable(run, isListed: isListed).isEmpty
    else { return drop(hash) }
    if var entry = entries[hash] {
      // A refresh inherits the progress of the previous entry.
      entry.hits = min(entry.hits, state.hits)
      (entry.isKept, entry.partner) = (isKept, partner)
      entries[hash] = entry
      return
    }
    let shares = isKept ? [] : [client.value, DomainKey(of: name).value].filter { $0 != 0 }
    // A shortened answer always gets an entry, since the entry holds its other addresses.
    guard hidden?.all != nil || mayAdd(shares) else { return }
    let isEager = isListed || isKept
    let due = now + (isEager ? 0 : Ranker.firstLook)
    entries[hash] = Entry(
      hits: state.hits, measuredAt: nil, dueAt: due, wait: Ranker.nextLook, isEager: isEager, isIPv6: isIPv6,
      isKept: isKept, shares: shares, partner: partner, hidden: hidden ?? HiddenAddresses())
    for share in shares { entryCounts[share, default: 0] += 1 }
    look(at: hash, due)
    if hasBoth, let partner, entries[partner] == nil {
      // The other answer came first and has one address. It is measured too, now that the families can be compared.
      stored(name, isIPv6 ? .a : .aaaa, hash: partner, isKept: isKept, for: client)
    }
  }

  private func mayAdd(_ shares: [UInt64]) -> Bool {
    entries.count < Ranker.mostEntries
      && shares.allSatisfy { entryCounts[$0, default: 0] < Ranker.mostEntriesOfOne }
  }

  /// Ends the measurement of an answer.
  private func drop(_ hash: UInt64) {
    guard let entry = entries.removeValue(forKey: hash) else { return }
    for share in entry.shares {
      let count = entryCounts[share, default: 1] - 1
      entryCounts[share] = count > 0 ? count : nil
    }
  }

  /// The addresses of a cached answer, with those that it omits; nil if it has no addresses of that family.
  ///
  /// - Parameter hidden: the addresses that it omits; nil to use those of its entry.
  package func run(of hash: UInt64, isIPv6: Bool, _ hidden: HiddenAddresses? = nil) -> AddressRun? {
    let hidden = hidden ?? entries[hash]?.hidden ?? HiddenAddresses()
    guard var run = cache.addressRun(octets: isIPv6 ? 16 : 4, hash: hash) else {
      guard hidden.withheld != nil, let all = hidden.all else { return nil }
      return AddressRun(addresses: all, rotating: nil)
    }
    if let all = hidden.all { run.addresses += all.filter { !run.addresses.contains($0) } }
    return run
  }

  private func measurable(_ run: AddressRun, isListed: Bool) -> [IPAddress] {
    run.addresses.prefix(Ranker.mostAddresses).compactMap { IPAddress(octets: $0) }
      .filter { settings.mayMeasure($0, isListed: isListed) }
  }

  /// The kinds of probes for a name, in order of preference.
  func kinds(for name: DomainName) -> [ProbeKind] { settings.measures(for: name).kinds }

  /// The measurement of an address on this network; nil if it was never measured, or has expired.
  func known(_ address: IPAddress, _ kind: ProbeKind) -> Measurement? {
    table.measurement(of: address, by: kind, network: network.number, now: now, interval: interval)
  }

  /// Whether a kind of probe can be used for an address and is not ignored on this network.
  func isUsable(_ kind: ProbeKind, _ address: IPAddress) -> Bool {
    guard prober.canUse(kind, isIPv6: address.isIPv6) else { return false }
    if case .tcp = kind, !address.isLoopback { return !canary.isVoid(isIPv6: address.isIPv6, on: network.number) }
    return true
  }

  // MARK: Looks

  private func look(at hash: UInt64, _ due: Int64) {
    if looks.isCrowded { looks.compact { entries[$0.ticket]?.dueAt == $0.due } }
    looks.insert(hash, due: due)
    arm()
  }

  private func arm() {
    let next = min(looks.earliestDue ?? .max, waitingDue)
    guard next < timerAt || !timer.isSet && next < .max else { return }
    timer.cancel()
    timerAt = next
    timer.set(after: .nanoseconds(max(0, next - now)), on: loop, for: self) {
      $0.timerAt = .max
      $0.fire()
    }
  }

  private func fire() {
    loop.assertCurrent()
    let now = now
    while let element = looks.popFirst(dueBy: now) {
      guard let entry = entries[element.ticket], entry.dueAt == element.due else { continue }
      look(element.ticket, entry)
    }
    if waitingDue <= now { sendWaiting() }
    arm()
  }

  /// Measures an answer that has been used since its last measurement; otherwise looks again later.
  private func look(_ hash: UInt64, _ entry: Entry) {
    guard rounds[hash] == nil else { return }
    guard let state = cache.state(hash: hash), now < state.expiresAt || state.isImmutable || entry.isEager else {
      return drop(hash)
    }
    guard entry.isEager || state.hits > entry.hits else {
      let isClose = now - state.storedAt < Ranker.closeLooks
      return lookLater(hash, entry, isClose ? Ranker.nextLook : min(Ranker.longestWait, entry.wait * 2))
    }
    guard hasRoom(for: state.hits &- entry.hits) else { return lookLater(hash, entry, Ranker.nextLook) }
    begin(hash, entry, state)
  }

  private func lookLater(_ hash: UInt64, _ entry: Entry, _ wait: Int64) {
    var entry = entry
    entry.wait = wait
    entry.dueAt = now + wait
    entries[hash] = entry
    looks.insert(hash, due: entry.dueAt)
  }

  /// Whether the probes of a name with this many uses may wait. Removes the least used name if too many probes wait.
  private func hasRoom(for uses: UInt32) -> Bool {
    guard waiting.count >= Ranker.mostWaiting else { return true }
    guard uses > leastUses, let least = waiting.min(by: { $0.round.uses < $1.round.uses })?.round else { return false }
    leastUses = least.uses
    guard uses > least.uses else { return false }
    waiting.removeAll { $0.round === least }
    rounds[least.hash] = nil
    if let entry = entries[least.hash] { lookLater(least.hash, entry, Ranker.nextLook) }
    return true
  }

  // MARK: Rounds

  private func begin(_ hash: UInt64, _ entry: Entry, _ state: EntryState) {
    guard let parts = cache.key(hash: hash).flatMap({ KeyParts($0) }), let run = run(of: hash, isIPv6: entry.isIPv6)
    else { return drop(hash) }
    // The answer is from another network's resolver. On this network its addresses may be those of other machines.
    guard parts.scope.network == 0 || parts.scope.network == network.number else {
      return lookLater(hash, entry, Ranker.longestWait)
    }
    let name = parts.name
    let (kinds, isListed) = settings.measures(for: name)
    let addresses = measurable(run, isListed: isListed)
    guard !kinds.isEmpty, !addresses.isEmpty else { return drop(hash) }
    let round = ProbeRound(
      hash, name, isIPv6: entry.isIPv6, kinds, uses: state.hits &- entry.hits, shares: entry.shares)
    rounds[hash] = round
    round.left = addresses.count + 1
    askCanary(for: round, addresses)
    for address in addresses { advance(ProbeJob(address, in: round)) }
    finishedOne(of: round)
  }

  /// Queues the probe of the next kind that needs one, or finishes the address if no kind does.
  private func advance(_ job: ProbeJob) {
    while job.rank < job.round.kinds.count {
      if isUsable(job.kind, job.address) {
        guard let known = known(job.address, job.kind), now - known.measuredAt < interval else { return wait(job) }
        // A single failure may be chance: the address is measured again after 5 s.
        if isInDoubt(known, job.address) {
          if now - known.measuredAt >= 5 * Ranker.second { return wait(job) }
          job.round.hasDoubt = true
        }
        // The address was measured recently, for another name that has it.
        if !known.isFailing { break }
      }
      job.tryNextKind()
    }
    finishedOne(of: job.round)
  }

  private func wait(_ job: ProbeJob) {
    waiting.append(job)
    waitingDue = min(waitingDue, now)
  }

  /// Sends the waiting probes that may begin, those of the most used names first.
  private func sendWaiting() {
    waitingDue = .max
    guard !waiting.isEmpty else { return }
    waiting.sort { $0.round.uses > $1.round.uses }
    var left: [ProbeJob] = []
    var isFull = false
    for job in waiting {
      guard rounds[job.round.hash] === job.round else { continue }
      let measured = Measured(address: job.address, kind: job.kind)
      guard !isFull, measuring[measured] == nil || measuring[measured] === job else {
        left.append(job)
        continue
      }
      switch pacing.begin(job.address, for: job.round.shares, now: now) {
      case nil:
        measuring[measured] = job
        send(job)
      case .address: left.append(job)
      case .share:
        left.append(job)
        putOff(job)
      case .busy, .budget:
        left.append(job)
        isFull = true
      }
    }
    if pacing.nextTime(now: now) != nil { for job in left { putOff(job) } }
    waiting = left
    leastUses = left.last?.round.uses ?? 0
    waitingDue = nextProbe()
    arm()
  }

  /// Counts a job as deferred, once.
  private func putOff(_ job: ProbeJob) {
    guard !job.isDeferred else { return }
    job.isDeferred = true
    counters.deferred += 1
  }

  /// When the next waiting probe may begin; `max` if no probe waits, or if all wait for the end of another one.
  private func nextProbe() -> Int64 {
    let now = now
    if waiting.isEmpty { return .max }
    if let next = pacing.nextTime(now: now) { return next }
    var byShares: [[UInt64]: Int64?] = [:]
    var next = Int64.max
    for job in waiting {
      let shares = job.round.shares
      let share = byShares[shares] ?? pacing.nextTime(for: shares, now: now)
      byShares[shares] = .some(share)
      let times = [pacing.nextTime(for: job.address, now: now), share].compactMap(\.self)
      if let time = times.max() { next = min(next, time) }
    }
    return next
  }

  private func send(_ job: ProbeJob) {
    let (kind, number) = (job.kind, network.number)
    prober.probe(job.address, by: kind) { [weak self] result in
      self?.ended(job, kind, result, on: number)
    }
  }

  private func ended(_ job: ProbeJob, _ kind: ProbeKind, _ result: ProbeResult, on number: UInt32) {
    loop.assertCurrent()
    pacing.end()
    count(kind, result)
    let isCurrent = number == network.number
    if rounds[job.round.hash] === job.round {
      received(isCurrent ? result : .unknown, of: job, by: kind)
    } else {
      record(result, of: job.address, by: kind, network: number)
      let measured = Measured(address: job.address, kind: kind)
      if measuring[measured] === job {
        measuring[measured] = nil
        release(job.address, kind)
      }
    }
    sendWaiting()
  }

  private func record(_ result: ProbeResult, of address: IPAddress, by kind: ProbeKind, network: UInt32) {
    table.record(result, of: address, by: kind, network: network, now: now, interval: interval)
  }

  /// Repeats the probe if the result is not yet certain; otherwise records it and continues with the next kind if the
  /// address fails.
  private func received(_ result: ProbeResult, of job: ProbeJob, by kind: ProbeKind) {
    var result = result
    if let first = job.firstSample {
      // The lower of two samples counts.
      if case .answered(let second) = result {
        result = .answered(microseconds: min(first, second))
      } else {
        result = .answered(microseconds: first)
      }
      job.firstSample = nil
    } else if result == .failed, !job.isRepeated, known(job.address, kind) == nil {
      // A first measurement takes two samples, so that one lost packet does not make the address failing.
      job.isRepeated = true
      return wait(job)
    } else if case .answered(let sample) = result, !job.isRepeated, known(job.address, kind)?.microseconds == nil {
      job.firstSample = sample
      return wait(job)
    } else if result == .failed, !job.isRepeated, let known = known(job.address, kind), known.failures > 0,
      !known.isFailing
    {
      job.isRepeated = true
      return wait(job)
    }
    measuring[Measured(address: job.address, kind: kind)] = nil
    record(result, of: job.address, by: kind, network: network.number)
    release(job.address, kind)
    guard result == .failed, let known = known(job.address, kind) else { return finishedOne(of: job.round) }
    if isInDoubt(known, job.address) { job.round.hasDoubt = true }
    guard known.isFailing else { return finishedOne(of: job.round) }
    job.tryNextKind()
    advance(job)
  }

  /// Whether a single failure is not conclusive: two in a row are needed if the address has a round trip, or if the
  /// families are compared and it is an IPv6 address.
  private func isInDoubt(_ known: Measurement, _ address: IPAddress) -> Bool {
    guard known.failures > 0 else { return false }
    return !known.isFailing || comparesFamilies && address.isIPv6 && known.failures < FamilyComparison.failures
  }

  /// Continues the jobs of other answers that wait for this measurement.
  private func release(_ address: IPAddress, _ kind: ProbeKind) {
    let others = waiting.filter { $0.address == address && $0.kind == kind }
    guard !others.isEmpty else { return }
    waiting.removeAll { $0.address == address && $0.kind == kind }
    for job in others { advance(job) }
  }

  private func count(_ kind: ProbeKind, _ result: ProbeResult) {
    let label = kind.family
    switch result {
    case .answered: counters.answered[label, default: 0] += 1
    case .failed: counters.failed[label, default: 0] += 1
    case .unknown: counters.unknown[label, default: 0] += 1
    }
  }

  private func finishedOne(of round: ProbeRound) {
    round.left -= 1
    guard round.left == 0, rounds[round.hash] === round else { return }
    rounds[round.hash] = nil
    rearrange(round.hash, round.name, isIPv6: round.isIPv6)
    chooseFamily(after: round.hash, of: round.name)
    guard var entry = entries[round.hash] else { return }
    entry.measuredAt = now
    entry.hits = cache.state(hash: round.hash)?.hits ?? entry.hits
    entry.wait = Ranker.nextLook
    // After a single failure, the addresses are measured again even without a hit.
    entry.isEager = round.hasDoubt || entry.isKept
    entry.dueAt = now + (round.hasDoubt ? Ranker.doubt : interval)
    entries[round.hash] = entry
    look(at: round.hash, entry.dueAt)
  }

  // MARK: The canary

  /// Sends the canary if it is due, and makes the round wait for it if it is in flight: TCP measurements may be used
  /// only if the network does not answer every connection.
  private func askCanary(for round: ProbeRound, _ addresses: [IPAddress]) {
    guard addresses.contains(where: { !$0.isLoopback }) else { return }
    guard let kind = round.kinds.first(where: \.isConnection) else { return }
    let question = CanaryQuestion(isIPv6: round.isIPv6, network: network.number)
    guard canaries[question] == nil else {
      round.left += 1
      canaries[question]?.append(round)
      return
    }
    guard canary.isDue(isIPv6: question.isIPv6, on: question.network, now: now) else { return }
    canary.asks(isIPv6: question.isIPv6, on: question.network, now: now)
    round.left += 1
    canaries[question] = [round]
    prober.probe(CanaryWatch.address(isIPv6: question.isIPv6), by: kind) { [weak self] result in
      guard let self else { return }
      let hasAnswered = if case .answered = result { true } else { false }
      let isVoid = canary.ended(hasAnswered: hasAnswered, isIPv6: question.isIPv6, on: question.network)
      if isVoid { log(CanaryWatch.problem(kind, isIPv6: question.isIPv6)) }
      for round in canaries.removeValue(forKey: question) ?? [] {
        // TCP measurements are now ignored, so that the other kinds must be tried soon.
        if isVoid { round.hasDoubt = true }
        finishedOne(of: round)
      }
    }
  }

  // MARK: Changes

  /// Removes all failures and measures the names in use again, after a change or an outage of the network.
  package func networkHasChanged() {
    loop.assertCurrent()
    restoreAll()
    table.forgetFailures()
    forgetRounds()
    // The router, which identifies the network, may become known a moment later.
    let due = now + Ranker.second
    looks = DueQueue()
    for hash in entries.keys {
      entries[hash]?.measuredAt = nil
      entries[hash]?.dueAt = due
      looks.insert(hash, due: due)
    }
    arm()
  }

  private func forgetRounds() {
    rounds = [:]
    waiting = []
    waitingDue = .max
    measuring = [:]
  }

  /// Applies new settings, or retries what the kernel has refused. If no name is to be measured, all measurements are
  /// removed and their timer is cancelled.
  package func use(_ settings: RankingSettings) {
    loop.assertCurrent()
    guard settings != self.settings || prober.problem != nil else { return }
    restoreAll()
    if settings.answers != self.settings.answers || !settings.measures { showAll() }
    self.settings = settings
    pacing.restart(perMinute: settings.probesPerMinute)
    reports.badFor = settings.badFor.nanoseconds
    prober.cancelAll()
    canary.gaveUp(now: now)
    canaries = [:]
    forgetRounds()
    prober.prepare(settings.allKinds)
    guard !settings.measures else { return networkHasChanged() }
    timer.cancel()
    timerAt = .max
    (entries, entryCounts, looks, table) = ([:], [:], DueQueue(), MeasurementTable())
  }

  /// Cancels all probes and timers.
  package func close() {
    timer.cancel()
    reportTimer.cancel()
    prober.cancelAll()
  }
}
