// Ranker.swift -- measures the addresses of names in use in the background, and keeps cached answers in order.
//
// No client waits for it: an answer is put in order by what is known already, and measured after it was sent. Resolver's
// loop only.

import DNSWire
import EventLoop
import FairShares
import Frontend
import MessageCache
import Ranking
import Refresh

/// Orders the addresses of answers.
final class Ranker {
  /// An answer that is measured while it is used.
  struct Entry {
    /// Hits of the answer that have been taken into account.
    var hits: UInt32
    /// When it was last measured; nil if it never was.
    var measuredAt: Int64?
    /// When it is looked at again.
    var dueAt: Int64
    /// The time between two looks, while it is not used.
    var wait: Int64
    /// Whether the next look measures it even without a hit.
    var isEager: Bool
    var isIPv6: Bool
    /// All addresses of the answer, if it shows only the best of them (`ranking.answers`) or none (`ranking.families`).
    var all: [[UInt8]]?
    /// The client and the domain whose probes are counted; none for the daemon's own names.
    var shares: [UInt64]
    /// The hash of the key of the name's answer for the other family, if the families are compared.
    var partner: UInt64?
    /// The answer with its addresses, while it is withheld (`ranking.families`).
    var withheld: ComposedResponse?
  }

  /// What a job measures.
  private struct Measured: Hashable {
    var address: IPAddress
    var kind: ProbeKind
  }

  private struct CanaryQuestion: Hashable {
    var isIPv6: Bool
    var network: UInt32
  }

  var counters = RankingCounters()
  /// What programs have reported.
  var reports: AddressReports
  /// The keys' hashes of answers with reported addresses, by name.
  var reported: [DomainName: Set<UInt64>] = [:]
  var reportTimer: LoopTimer?
  /// The beginning of the second in which reports are counted, and their number.
  var reportsSince: BootInstant
  var reportCount = 0

  let loop: any Loop
  let cache: MessageCache
  let network: CurrentNetwork
  let prober: any AddressProber
  private let note: @Sendable (String) -> Void
  private(set) var settings: RankingSettings
  private var table = MeasurementTable()
  private var pacing: ProbePacing
  private(set) var canary = CanaryWatch()
  /// The canaries in flight, with the rounds that end after them.
  private var canaries: [CanaryQuestion: [ProbeRound]] = [:]
  var entries: [UInt64: Entry] = [:]
  private var looks = RefreshQueue()
  private var rounds: [UInt64: ProbeRound] = [:]
  /// Probes that could not begin yet.
  private var waiting: [ProbeJob] = []
  /// The job that measures an address: those of other answers wait for what it finds.
  private var measuring: [Measured: ProbeJob] = [:]
  private var timer: LoopTimer?
  private var timerAt = Int64.max

  /// Maximum answers that are measured.
  static let mostEntries = 10_000
  /// Maximum addresses of an answer that are measured.
  static let mostAddresses = 8
  private static let second: Int64 = 1_000_000_000
  /// How long after it was stored an answer is looked at first, and then again and again while it is not used.
  private static let firstLook = 2 * second
  private static let nextLook = 3 * second
  private static let longestWait = 60 * second
  /// For how long the looks follow each other closely.
  private static let closeLooks = 30 * second
  /// When an address that worked and has failed once is measured again.
  private static let doubt = 5 * second + second / 10

  /// Creates a ranker.
  ///
  /// - Parameter note: takes a line for the log.
  init(
    _ settings: RankingSettings, of cache: MessageCache, _ network: CurrentNetwork, prober: any AddressProber,
    on loop: any Loop, note: @escaping @Sendable (String) -> Void
  ) {
    self.settings = settings
    self.cache = cache
    self.network = network
    self.prober = prober
    self.loop = loop
    self.note = note
    pacing = ProbePacing(perMinute: settings.probesPerMinute)
    reports = AddressReports(badFor: settings.badFor.nanoseconds)
    reportsSince = loop.now
  }

  /// Whether any name is measured.
  var measures: Bool { settings.measures }

  /// Whether programs may report addresses.
  var takesReports: Bool { settings.takesReports }

  private var now: Int64 { loop.now.nanoseconds }
  private var interval: Int64 { settings.interval.nanoseconds }

  // MARK: Answers

  /// Puts a new answer in order by what is known.
  ///
  /// - Parameters:
  ///   - hash: of the key under which it will be stored.
  ///   - isPlain: whether neither DNSSEC data nor AD goes with it.
  func arrange(_ response: inout ComposedResponse, to name: DomainName, hash: UInt64, isPlain: Bool) {
    putInOrder(&response, to: name, hash: hash, isPlain: isPlain)
    withholdIfWorse(&response, to: name, hash: hash, isPlain: isPlain)
  }

  private func putInOrder(_ response: inout ComposedResponse, to name: DomainName, hash: UInt64, isPlain: Bool) {
    entries[hash]?.all = nil
    guard table.count > 0 || reports.count > 0, response.rotation.count > 1 else { return }
    let addresses = response.rotatingAddresses
    let band = band(of: hash, cache.addressRun(octets: addresses[0].count, hash: hash))
    let order = order(of: addresses, name, band: band)
    response.arrange(order.indices, rotating: order.bandCount)
    guard let best = shortened(order, of: addresses, isPlain: isPlain), entries[hash] != nil,
      let fewer = response.showing(best, of: name)
    else { return }
    entries[hash]?.all = addresses
    response = fewer
    response.limitRotation(to: order.bandCount)
  }

  /// The addresses that an answer keeps (`ranking.answers`); nil if it keeps all.
  ///
  /// - Parameter isPlain: whether neither DNSSEC data nor AD goes with it.
  private func shortened(_ order: AddressOrder, of addresses: [[UInt8]], isPlain: Bool) -> [[UInt8]]? {
    guard settings.answers > 0, addresses.count > settings.answers, order.hasWorking, isPlain else { return nil }
    return order.indices.prefix(settings.answers).map { addresses[$0] }
  }

  /// An answer was stored: it is measured once it is used, or at once if its name is listed.
  func stored(_ name: DomainName, _ type: RecordType, hash: UInt64, isKept: Bool, for client: ClientKey = .ourselves) {
    guard measures, type == .a || type == .aaaa else { return }
    let (kinds, isListed) = settings.measures(for: name)
    guard !kinds.isEmpty else { return }
    let isIPv6 = type == .aaaa
    let partner = comparesFamilies ? otherFamily(of: hash) : nil
    let hasBoth = partner.map { self.run(of: $0, isIPv6: !isIPv6) != nil } ?? false
    guard let run = run(of: hash, isIPv6: isIPv6), let state = cache.state(hash: hash),
      run.addresses.count > 1 || hasBoth, !measurable(run, isListed: isListed).isEmpty
    else {
      entries[hash] = nil
      return
    }
    if var entry = entries[hash] {
      // A refresh goes on where the entry before was.
      entry.hits = min(entry.hits, state.hits)
      entries[hash] = entry
      return
    }
    guard entries.count < Ranker.mostEntries else { return }
    let isEager = isListed || isKept
    let due = now + (isEager ? 0 : Ranker.firstLook)
    entries[hash] = Entry(
      hits: state.hits, measuredAt: nil, dueAt: due, wait: Ranker.nextLook, isEager: isEager, isIPv6: isIPv6,
      shares: isKept ? [] : [client.value, DomainKey(of: name).value].filter { $0 != 0 }, partner: partner)
    look(at: hash, due)
    if hasBoth, let partner, entries[partner] == nil {
      // A single address, which came first, is measured as well now.
      stored(name, isIPv6 ? .a : .aaaa, hash: partner, isKept: isKept, for: client)
    }
  }

  /// The addresses of an answer, with those that it does not show.
  func run(of hash: UInt64, isIPv6: Bool) -> AddressRun? {
    guard var run = cache.addressRun(octets: isIPv6 ? 16 : 4, hash: hash) else {
      guard entries[hash]?.withheld != nil, let all = entries[hash]?.all else { return nil }
      return AddressRun(addresses: all, rotating: nil)
    }
    if let all = entries[hash]?.all { run.addresses += all.filter { !run.addresses.contains($0) } }
    return run
  }

  private func measurable(_ run: AddressRun, isListed: Bool) -> [IPAddress] {
    run.addresses.prefix(Ranker.mostAddresses).compactMap { IPAddress(octets: $0) }
      .filter { RankingSettings.mayMeasure($0, isListed: isListed) }
  }

  /// The addresses that take turns at the front of an answer because they were measured.
  private func band(of hash: UInt64, _ run: @autoclosure () -> AddressRun?) -> Set<[UInt8]> {
    guard entries[hash]?.measuredAt != nil, let run = run() else { return [] }
    return Set(run.addresses.prefix(run.rotating ?? 0))
  }

  private func order(of addresses: [[UInt8]], _ name: DomainName, band: Set<[UInt8]>) -> AddressOrder {
    let kinds = kinds(for: name)
    let now = now
    return AddressOrder(
      addresses.map { octets in
        guard let address = IPAddress(octets: octets) else { return AddressStanding(.unknown) }
        return AddressStanding(
          condition(address, kinds), isReported: reports.isBad(address, of: name, now: now),
          wasInBand: band.contains(octets))
      })
  }

  private func condition(_ address: IPAddress, _ kinds: [ProbeKind]) -> AddressStanding.Condition {
    var hasFailed = false
    for (rank, kind) in kinds.enumerated() where isUsable(kind, address) {
      guard let known = known(address, kind) else { return .unknown }
      if !known.isFailing, let time = known.microseconds { return .works(rank: rank, microseconds: time) }
      hasFailed = true
    }
    return hasFailed ? .failing : .unknown
  }

  /// How the addresses of a name are measured.
  func kinds(for name: DomainName) -> [ProbeKind] { settings.measures(for: name).kinds }

  /// What is known of an address on this network.
  func known(_ address: IPAddress, _ kind: ProbeKind) -> Measurement? {
    table.measurement(of: address, by: kind, network: network.number, now: now, interval: interval)
  }

  func isUsable(_ kind: ProbeKind, _ address: IPAddress) -> Bool {
    guard prober.canUse(kind, isIPv6: address.isIPv6) else { return false }
    if case .tcp = kind, !address.isLoopback { return !canary.isVoid(isIPv6: address.isIPv6, on: network.number) }
    return true
  }

  // MARK: Looks

  private func look(at hash: UInt64, _ due: Int64) {
    looks.insert(hash, due: due)
    arm()
  }

  private func arm() {
    var next = looks.earliestDue ?? .max
    if !waiting.isEmpty { next = min(next, nextProbe()) }
    guard next < timerAt || timer == nil && next < .max else { return }
    timer?.cancel()
    timerAt = next
    timer = loop.schedule(after: .nanoseconds(max(0, next - now))) { [unowned self] in
      timer = nil
      timerAt = .max
      fire()
    }
  }

  private func fire() {
    loop.assertCurrent()
    let now = now
    while let element = looks.popFirst(dueBy: now) {
      guard let entry = entries[element.ticket], entry.dueAt == element.due else { continue }
      look(element.ticket, entry)
    }
    sendWaiting()
    arm()
  }

  /// Measures an answer if it is due and has been used; otherwise looks again later.
  private func look(_ hash: UInt64, _ entry: Entry) {
    guard rounds[hash] == nil else { return }
    guard let state = cache.state(hash: hash), now < state.expiresAt || entry.isEager else {
      entries[hash] = nil
      return
    }
    guard entry.isEager || state.hits > entry.hits else {
      var entry = entry
      let isClose = now - state.storedAt < Ranker.closeLooks
      entry.wait = isClose ? Ranker.nextLook : min(Ranker.longestWait, entry.wait * 2)
      entry.dueAt = now + entry.wait
      entries[hash] = entry
      looks.insert(hash, due: entry.dueAt)
      return
    }
    begin(hash, entry, state)
  }

  // MARK: Rounds

  private func begin(_ hash: UInt64, _ entry: Entry, _ state: EntryState) {
    guard let key = cache.key(hash: hash), let name = KeyParts(key)?.name,
      let run = run(of: hash, isIPv6: entry.isIPv6)
    else {
      entries[hash] = nil
      return
    }
    let (kinds, isListed) = settings.measures(for: name)
    let addresses = measurable(run, isListed: isListed)
    guard !kinds.isEmpty, !addresses.isEmpty else {
      entries[hash] = nil
      return
    }
    let round = ProbeRound(
      hash, name, isIPv6: entry.isIPv6, kinds, uses: state.hits &- entry.hits, shares: entry.shares)
    rounds[hash] = round
    round.left = addresses.count + 1
    askCanary(for: round, addresses)
    for address in addresses { advance(ProbeJob(address, in: round)) }
    finishedOne(of: round)
  }

  /// Finds the next kind for an address and queues its probe.
  private func advance(_ job: ProbeJob) {
    while job.rank < job.round.kinds.count {
      if isUsable(job.kind, job.address) {
        guard let known = known(job.address, job.kind), now - known.measuredAt < interval else { return wait(job) }
        // It failed once, which may be chance: it is measured again, 5 s later.
        if isInDoubt(known, job.address) {
          if now - known.measuredAt >= 5 * Ranker.second { return wait(job) }
          job.round.hasDoubt = true
        }
        // Another name that has the address measured it.
        if !known.isFailing { break }
      }
      job.rank += 1
    }
    finishedOne(of: job.round)
  }

  private func wait(_ job: ProbeJob) { waiting.append(job) }

  /// Sends the probes that may begin, those of the most used names first.
  private func sendWaiting() {
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
    arm()
  }

  private func putOff(_ job: ProbeJob) {
    guard !job.isDeferred else { return }
    job.isDeferred = true
    counters.deferred += 1
  }

  /// When the next waiting probe may begin; `max` if only the end of another one allows it.
  private func nextProbe() -> Int64 {
    let now = now
    if let next = pacing.nextTime(now: now) { return next }
    return waiting.compactMap { job in
      [pacing.nextTime(for: job.address, now: now), pacing.nextTime(for: job.round.shares, now: now)]
        .compactMap(\.self).max()
    }.min() ?? .max
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
    if rounds[job.round.hash] === job.round, number == network.number {
      take(job, kind, result)
    } else if result != .unknown {
      table.note(result, of: job.address, by: kind, network: number, now: now)
    }
    sendWaiting()
  }

  private func take(_ job: ProbeJob, _ kind: ProbeKind, _ result: ProbeResult) {
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
      // A first measurement is two samples: one loss does not make an address fail.
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
    table.note(result, of: job.address, by: kind, network: network.number, now: now)
    release(job.address, kind)
    guard result == .failed, let known = known(job.address, kind) else { return finishedOne(of: job.round) }
    if isInDoubt(known, job.address) { job.round.hasDoubt = true }
    guard known.isFailing else { return finishedOne(of: job.round) }
    job.rank += 1
    advance(job)
  }

  /// Whether an address failed once where only two failures count.
  private func isInDoubt(_ known: Measurement, _ address: IPAddress) -> Bool {
    guard known.failures > 0 else { return false }
    return !known.isFailing || comparesFamilies && address.isIPv6 && known.failures < FamilyComparison.failures
  }

  /// Lets jobs of other answers use what was found.
  private func release(_ address: IPAddress, _ kind: ProbeKind) {
    let others = waiting.filter { $0.address == address && $0.kind == kind }
    guard !others.isEmpty else { return }
    waiting.removeAll { $0.address == address && $0.kind == kind }
    for job in others { advance(job) }
  }

  private func count(_ kind: ProbeKind, _ result: ProbeResult) {
    let label = if case .icmp = kind { "icmp" } else { "tcp" }
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
    // An address that failed once is measured again whether or not a client asks.
    entry.isEager = round.hasDoubt
    entry.dueAt = now + (round.hasDoubt ? Ranker.doubt : interval)
    entries[round.hash] = entry
    look(at: round.hash, entry.dueAt)
  }

  /// Puts a cached answer in order by what is known now.
  ///
  /// - Returns: whether anything changed.
  @discardableResult
  func rearrange(_ hash: UInt64, _ name: DomainName, isIPv6: Bool) -> Bool {
    guard let run = run(of: hash, isIPv6: isIPv6), run.addresses.count > 1 else { return false }
    let order = order(of: run.addresses, name, band: band(of: hash, run))
    let isChanged =
      resize(hash, name, order, run)
      ?? cache.arrange(order.indices.map { run.addresses[$0] }, rotating: order.bandCount, hash: hash)
    if isChanged { counters.rearranged += 1 }
    return isChanged
  }

  /// Composes an answer again that shows other addresses from now on (`ranking.answers`).
  ///
  /// - Returns: whether it was; nil if it shows the same ones, perhaps in another order.
  private func resize(_ hash: UInt64, _ name: DomainName, _ order: AddressOrder, _ run: AddressRun) -> Bool? {
    let isShortened = entries[hash]?.all != nil
    guard settings.answers > 0 || isShortened, entries[hash] != nil, let copy = cache.copy(hash: hash),
      let parts = KeyParts(copy.key), let shown = cache.addressRun(octets: run.addresses[0].count, hash: hash)
    else { return nil }
    let isPlain = !parts.scope.dnssecOK && !copy.isAuthenticated
    let best = shortened(order, of: run.addresses, isPlain: isPlain)
    let wanted = best ?? order.indices.map { run.addresses[$0] }
    entries[hash]?.all = best == nil ? nil : run.addresses
    guard Set(wanted) != Set(shown.addresses) else { return nil }
    guard var response = copy.response(to: name, showing: wanted) else { return false }
    response.limitRotation(to: order.bandCount)
    return cache.replace(copy, with: response)
  }

  // MARK: The canary

  /// Finds out whether something on the way answers every connection, before the figures of connections are used: a round
  /// ends after the canary, whichever round asked it.
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
      if canary.ended(hasAnswered: hasAnswered, isIPv6: question.isIPv6, on: question.network) {
        note(CanaryWatch.problem(kind))
      }
      for round in canaries.removeValue(forKey: question) ?? [] { finishedOne(of: round) }
    }
  }

  // MARK: Changes

  /// The machine is on another network, or its network was down: failures are forgotten, and names in use are measured.
  func networkHasChanged() {
    loop.assertCurrent()
    giveAll()
    table.forgetFailures()
    rounds = [:]
    waiting = []
    measuring = [:]
    for (hash, entry) in entries {
      var entry = entry
      entry.measuredAt = nil
      entry.dueAt = now
      entries[hash] = entry
      looks.insert(hash, due: now)
    }
    arm()
  }

  /// Takes over other settings. Without any name to measure, nothing is left: no timer, no memory.
  func use(_ settings: RankingSettings) {
    loop.assertCurrent()
    guard settings != self.settings else { return }
    giveAll()
    self.settings = settings
    pacing.restart(perMinute: settings.probesPerMinute)
    reports.badFor = settings.badFor.nanoseconds
    prober.cancelAll()
    canary.gaveUp(now: now)
    canaries = [:]
    rounds = [:]
    waiting = []
    measuring = [:]
    guard !settings.measures else { return networkHasChanged() }
    timer?.cancel()
    (timer, timerAt) = (nil, .max)
    (entries, looks, table) = ([:], RefreshQueue(), MeasurementTable())
  }

  /// Ends all probes.
  func close() {
    timer?.cancel()
    timer = nil
    reportTimer?.cancel()
    reportTimer = nil
    prober.cancelAll()
  }
}
