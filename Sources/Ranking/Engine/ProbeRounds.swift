// ProbeRounds.swift -- carries out the rounds of the ranker: which probe begins when, and what its result means.
//
// All answers share the probes in flight, the budget of a minute and the measurements: an address that two answers have
// is measured once. Probes that may not begin yet wait; those of the most used names go first. Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import MessageCache

/// The rounds in progress, and the measurements that they have made.
final class ProbeRounds {
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
  var table = MeasurementTable()
  /// Called at the end of each round.
  var onEnd: ((ProbeRound) -> Void)?
  /// Called when a round is dropped in favour of one of a more used name.
  var onDisplaced: ((UInt64) -> Void)?
  /// Called after waiting probes were sent and `waitingDue` was updated.
  var onWait: (() -> Void)?
  let prober: any AddressProber
  private let network: CurrentNetwork
  private let loop: any Loop
  private let log: @Sendable (String) -> Void
  private var settings: RankingSettings
  private var pacing: ProbePacing
  private(set) var canary = CanaryWatch()
  /// The canaries in flight, with the rounds that wait for them.
  private var canaries: [CanaryQuestion: [ProbeRound]] = [:]
  /// The rounds by the hash of their answer's key.
  private var rounds: [UInt64: ProbeRound] = [:]
  /// Probes that have not begun.
  private var waiting: [ProbeJob] = []
  /// When the next waiting probe may begin; `max` if no probe waits, or if all wait for a probe in flight.
  private(set) var waitingDue = Int64.max
  /// The uses of the least used name with a waiting probe, when the probes were last sorted.
  private var leastUses: UInt32 = 0
  /// The job that performs a measurement. Jobs of other answers wait for its result.
  private var measuring: [Measured: ProbeJob] = [:]

  /// If this many probes wait, a further answer is measured only in place of one that is used less.
  private static let mostWaiting = 1_024
  private static let second: Int64 = 1_000_000_000

  init(
    _ settings: RankingSettings, on network: CurrentNetwork, prober: any AddressProber, loop: any Loop,
    log: @escaping @Sendable (String) -> Void
  ) {
    (self.settings, self.network, self.prober, self.loop, self.log) = (settings, network, prober, loop, log)
    pacing = ProbePacing(perMinute: settings.section.probesPerMinute)
    prober.prepare(settings.allKinds)
  }

  private var now: Int64 { loop.now.nanoseconds }
  private var interval: Int64 { settings.section.interval.nanoseconds }

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

  /// Whether a round of an answer is in progress.
  func contains(_ hash: UInt64) -> Bool { rounds[hash] != nil }

  /// Begins to measure addresses.
  func begin(_ round: ProbeRound, _ addresses: [IPAddress]) {
    rounds[round.hash] = round
    round.left = addresses.count + 1
    askCanary(for: round, addresses)
    for address in addresses { advance(ProbeJob(address, in: round)) }
    finishedOne(of: round)
  }

  private func finishedOne(of round: ProbeRound) {
    round.left -= 1
    guard round.left == 0, rounds[round.hash] === round else { return }
    rounds[round.hash] = nil
    onEnd?(round)
  }

  /// Forgets all rounds; probes in flight still end.
  func forget() {
    rounds = [:]
    waiting = []
    waitingDue = .max
    measuring = [:]
  }

  /// Applies new settings: cancels all probes, and forgets their rounds.
  func use(_ settings: RankingSettings) {
    self.settings = settings
    pacing.restart(perMinute: settings.section.probesPerMinute)
    prober.cancelAll()
    canary.gaveUp(now: now)
    canaries = [:]
    forget()
    prober.prepare(settings.allKinds)
  }

  /// Whether the probes of a name with this many uses may wait. A full queue drops a name with fewer uses.
  func hasRoom(for uses: UInt32) -> Bool {
    guard waiting.count >= ProbeRounds.mostWaiting else { return true }
    guard uses > leastUses, let least = waiting.min(by: { $0.round.uses < $1.round.uses })?.round else { return false }
    leastUses = least.uses
    guard uses > least.uses else { return false }
    waiting.removeAll { $0.round === least }
    rounds[least.hash] = nil
    onDisplaced?(least.hash)
    return true
  }

  /// Queues the probe of the next kind that needs one, or finishes the address if no kind does.
  private func advance(_ job: ProbeJob) {
    while job.rank < job.round.kinds.count {
      if isUsable(job.kind, job.address) {
        guard let known = known(job.address, job.kind), now - known.measuredAt < interval else { return wait(job) }
        // A single failure may be chance: the address is measured again after 5 s.
        if isInDoubt(known, job.address) {
          if now - known.measuredAt >= 5 * ProbeRounds.second { return wait(job) }
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
  func sendWaiting() {
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
    onWait?()
  }

  /// Counts a job as deferred, once.
  private func putOff(_ job: ProbeJob) {
    guard !job.isDeferred else { return }
    job.isDeferred = true
    counters.deferred += 1
  }

  /// When the next waiting probe may begin; `max` if no probe waits, or if all wait for a probe in flight.
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
    return !known.isFailing || settings.comparesFamilies && address.isIPv6 && known.failures < FamilyComparison.failures
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
}
