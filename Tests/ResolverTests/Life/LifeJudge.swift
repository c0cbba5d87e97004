// LifeJudge.swift -- a model beside the program: from what a provider said and when, it decides which answers are allowed.

import Configuration
import DNSWire
import EventLoop

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// Looks on while a life is lived, and notes what is against the rules.
final class LifeJudge {
  /// What a provider said last.
  private struct Arrival {
    var state: LifeState
    var at: Int64
    /// When it ceases to be fresh.
    var end: Int64
    /// Transfers that the budget had forbidden by then.
    var overBudget: UInt64
  }

  /// A name and an address family.
  private struct Line {
    var latest: Arrival?
    /// Whether the name was NXDOMAIN for the other family since its own data has expired.
    var isNXDOMAIN = false
    /// Clients that wait for it.
    var waiting = 0
    /// Hits of what came last, early enough to make it hot before its refresh is due.
    var earlyHits = 0
    /// Refreshes since the last query.
    var fruitless = 0
    /// When the last one began.
    var refreshedAt = Int64.min
    /// When the provider was asked last.
    var askedAt: Int64?
    /// When stale data was served to a client that had waited.
    var lateAt = Int64.min
    /// When LocalDNS was asked last.
    var localAt = Int64.min / 2
  }

  /// A query without its answer.
  private struct Pending {
    var question: LifeQuestion
    var askedAt: Int64
    /// Why it must be answered at once; nil where it may wait.
    var haste: String?
  }

  private var ownViolations: [String] = []
  /// What was against the rules, also towards hostile clients.
  var violations: [String] { ownViolations + hostile.violations }
  let hostile: LifeHostileJudge
  private(set) var tally = LifeTally()
  private let plan: LifePlan
  private let zone: LifeZone
  private let weather: LifeWeather
  private let now: () -> Int64
  private let overBudget: () -> UInt64
  private var lines: [Line]
  private var pending: [UInt16: Pending] = [:]
  /// When background transfers were made.
  private(set) var budgeted: [Int64] = []
  private var wokeAt = Int64.min / 2
  private var changedAt = Int64.min / 2
  private var recoveredAt = Int64.min / 2
  /// When the provider has replied last, and when that was for the first time after an outage.
  private var (heardAt, heardAgainAt) = (Int64(0), Int64.min / 2)
  /// When questions went to a provider that does not answer, the last ones.
  private var outageAsked: [Int64] = []

  /// How often a provider's return counts, at most: what is in use is asked for again then.
  private static let recoveryInterval = 10 * second
  /// What a transfer may take.
  private static let longestTransfer = 2 * second
  /// After an outage the first probe may be a minute away. A refresh that failed comes back when half of what was left
  /// of the entry's time has passed, and then a transfer must still be in time: a provider that is up for this long
  /// before an entry's end has had its opportunity.
  private static let lastOpportunity = 75 * second
  /// After an outage: a minute to the probe, half a minute until stale data is looked at again.
  private static let staleAfterOutage = 100 * second
  /// When a provider is back, waits end, once in 10 s at most.
  private static let failureAfterOutage = 12 * second
  /// When all names are the provider's again.
  private static let localAfterOutage = 2 * second
  /// LocalDNS's answers are valid for a minute.
  private static let localLifetime = 61 * second
  /// What a name may wait for a provider that has been silent for three seconds, and for one that refuses connections.
  private static let (longestSilence, longestRefusal) = (400 * millisecond, 150 * millisecond)
  /// The same for a silent provider that has been slow: four times the longest time that counts as usual, a quarter of a
  /// second.
  private static let longestSilenceOfSlow = 1050 * millisecond
  /// How long a question takes to show that the provider is silent; of one that has been slow its silence of 750 ms, and then
  /// the three seconds that a handshake may take.
  private static let (notice, noticeOfSlow) = (3 * second, 4 * second)
  /// What a provider said about a name itself (SERVFAIL) is remembered for five minutes, back or not.
  private static let failureAfterWord = 370 * second

  init(
    _ plan: LifePlan, _ zone: LifeZone, _ weather: LifeWeather, now: @escaping () -> Int64,
    overBudget: @escaping () -> UInt64
  ) {
    self.plan = plan
    self.zone = zone
    self.weather = weather
    self.now = now
    hostile = LifeHostileJudge(now: now)
    self.overBudget = overBudget
    lines = Array(repeating: Line(), count: 2 * plan.names)
  }

  // MARK: What happens

  /// A client has asked.
  func asked(_ question: LifeQuestion, id: UInt16) {
    if pending[id] != nil { violate(question, "no reply to an earlier query") }
    pending[id] = Pending(question: question, askedAt: now(), haste: haste(question))
    lines[question.place].waiting += 1
    lines[question.place].fruitless = 0
    tally.queries += 1
  }

  /// A reply has come.
  func replied(_ octets: [UInt8]) {
    let message = try? Message.parse(octets)
    if let message, let asked = message.questions.first?.question, LifeMalice(asked.name, asked.type) != nil {
      return hostile.replied(message)
    }
    guard let message, let query = pending.removeValue(forKey: message.id) else {
      return ownViolations.append("a reply without a query")
    }
    let question = query.question
    lines[question.place].waiting -= 1
    let wait = now() - query.askedAt
    if wait > 0 {
      tally.waited += 1
      if let haste = query.haste { violate(question, "waited \(wait / millisecond) ms: \(haste)") }
      if wait > 4400 * millisecond, !hasSlept(since: query.askedAt) { violate(question, "answered too late") }
    } else if let latest = lines[question.place].latest, now() <= latest.at + (latest.end - latest.at) / 5 * 3 {
      lines[question.place].earlyHits += 1
    }
    tally.note(message, at: now())
    judgeWait(question, wait, askedAt: query.askedAt)
    switch message.responseCode {
    case .noError where LifeLocalDNS.gave(message): judgeLocalAnswer(question, message)
    case .noError where message.answers.isEmpty: judgeEmpty(question, message, [.noData, .noName])
    case .nxDomain: judgeEmpty(question, message, [.noName])
    case .noError: judgeAddresses(question, message, wait: wait)
    case .servFail: judgeFailure(question, message, askedAt: query.askedAt)
    default: violate(question, "\(message.responseCode)")
    }
  }

  /// The provider's reply has reached the program.
  func arrived(_ question: LifeQuestion, _ state: LifeState) {
    var seconds = Int64(zone.hosts[question.host].ttl)
    if state == .noData || state == .noName { seconds = plan.dialect == .json ? 30 : 10 }
    let isFresh = lines[question.place].latest.map { now() < $0.end } ?? false
    if weather.isTroubled(from: heardAt, to: now()) { heardAgainAt = now() }
    heardAt = now()
    lines[question.place].latest = Arrival(
      state: state, at: now(), end: now() + seconds * second, overBudget: overBudget())
    lines[question.place].isNXDOMAIN = false
    lines[question.place].earlyHits = 0
    if isFresh { tally.ahead += 1 }
    let sibling = LifeQuestion(question.host, isIPv6: !question.isIPv6).place
    // It is there again, and may have what it had.
    if case .addresses = state { lines[sibling].isNXDOMAIN = false }
    guard state == .noName, plan.dialect == .json else { return }
    if let other = lines[sibling].latest, now() >= other.end { lines[sibling].isNXDOMAIN = true }
  }

  /// LocalDNS is asked for a name that the provider answers.
  func askedLocalDNS(_ question: LifeQuestion) {
    tally.local += 1
    lines[question.place].localAt = now()
    let isExcused =
      plan.isSlow || weather.isTroubled(from: heardAt, to: now())
      || now() <= heardAgainAt + LifeJudge.localAfterOutage || hasSlept(since: now() - 5 * second)
    if !isExcused { violate(question, "LocalDNS is asked although the provider is up") }
  }

  /// A transfer that no question needs.
  func wasAskedForNothing(_ target: String) { ownViolations.append("\(time(now())) a transfer for nothing: \(target)") }

  /// The provider has answered after it had failed.
  func providerIsBack() { recoveredAt = now() }

  /// The provider is asked as a client would: because clients wait, or because a client got stale data.
  func askedProvider(_ question: LifeQuestion) {
    let line = lines[question.place]
    if weather.outage(at: now()) == nil { outageAsked = [] } else { outageAsked.append(now()) }
    let isFresh = line.latest.map { now() < $0.end } ?? false
    if line.waiting == 0, isFresh { budgeted.append(now()) }
    // RFC 8767 section 5.
    if hasUsableStaleData(question), let last = line.askedAt, now() - last < 29_900 * millisecond,
      last >= line.latest?.end ?? 0, last > changedAt, last > recoveredAt + LifeJudge.recoveryInterval,
      !hasSlept(since: last)
    {
      violate(question, "asked again after \((now() - last) / millisecond) ms without an answer")
    }
    lines[question.place].askedAt = now()
  }

  /// A background transfer begins.
  func refreshes(_ questions: [LifeQuestion]) {
    for question in questions { lines[question.place].refreshedAt = now() }
    budgeted.append(now())
    tally.refreshes += 1
  }

  /// Such a transfer has ended. It counts where it has brought an answer: failures come back by themselves. What a change
  /// of the network has overtaken is of the network before, also if it began in the same instant.
  func refreshed(_ questions: [LifeQuestion]) {
    for question in questions where !isOnKeepList(question) && lines[question.place].latest?.at == now() {
      guard lines[question.place].refreshedAt > changedAt else { continue }
      lines[question.place].fruitless += 1
      tally.mostFruitless = max(tally.mostFruitless, lines[question.place].fruitless)
      guard lines[question.place].fruitless > LifePlan.giveUpAfter else { continue }
      violate(question, "refreshed \(lines[question.place].fruitless) times since the last query")
    }
  }

  /// The network is another one.
  func networkHasChanged() { changedAt = now() }

  /// The machine has slept.
  func hasWoken() {
    wokeAt = now()
    hostile.hasWoken()
  }

  /// The life is over: everybody has an answer, and the budget has held all the time.
  func end() {
    hostile.end()
    for query in pending.values { violate(query.question, "no reply") }
    for (span, limit) in [(60 * second, plan.perMinute), (86_400 * second, plan.perDay)] {
      var first = 0
      for last in budgeted.indices {
        while budgeted[last] - budgeted[first] >= span { first += 1 }
        guard last - first + 1 > limit else { continue }
        return ownViolations.append(
          "\(last - first + 1) background transfers in \(span / second) s, up to \(time(budgeted[last]))")
      }
    }
  }

  // MARK: The rules

  /// Why a query of that kind has to be answered at once; nil where it may have to wait.
  private func haste(_ question: LifeQuestion) -> String? {
    let line = lines[question.place]
    guard let latest = line.latest, case .addresses = latest.state, !hasSlept(since: latest.at) else { return nil }
    guard now() >= latest.end else { return "its answer is fresh" }
    guard latest.end - latest.at >= 10 * second, overBudget() == latest.overBudget,
      !weather.isTroubled(from: latest.end - LifeJudge.lastOpportunity, to: latest.end)
    else { return nil }
    if isOnKeepList(question) { return "it is always kept fresh" }
    return line.earlyHits >= LifePlan.hotHits ? "it is hot, and its provider is up" : nil
  }

  private func judgeAddresses(_ question: LifeQuestion, _ message: Message, wait: Int64) {
    let host = zone.hosts[question.host]
    let line = lines[question.place]
    guard let era = zone.era(of: message.answers.map { $0.rdata[...] }, host, isIPv6: question.isIPv6),
      let ttl = message.answers.first?.ttl, message.answers.allSatisfy({ $0.ttl == ttl })
    else { return violate(question, "addresses that the name never had together") }
    guard let latest = line.latest, latest.state == .addresses(era) else {
      return violate(question, "an answer that another one has replaced")
    }
    let lifetime = latest.end - latest.at
    if message.extendedError == nil {
      let left = host.ttl - min(host.ttl, UInt32((now() - latest.at) / second))
      if now() >= latest.end || ttl > left || ttl == 0 { violate(question, "TTL \(ttl) where \(left) s are left") }
      limitAge(of: latest.state, question, lifetime - Int64(ttl) * second + second)
      return
    }
    tally.stale += 1
    if message.extendedError != .staleAnswer { violate(question, "EDE \(message.extendedError!)") }
    if ttl > 30 { violate(question, "stale data with TTL \(ttl)") }
    if now() < latest.end { violate(question, "fresh data given as stale") }
    if line.isNXDOMAIN { violate(question, "stale data of a name that has become NXDOMAIN since") }
    limitAge(of: latest.state, question, lifetime + Int64(plan.stale.maxAge) * second)
    if now() >= latest.end + Int64(plan.stale.maxAge) * second { violate(question, "stale data that is too old") }
    if wait > 0 { lines[question.place].lateAt = now() }
    guard !mayBeStale(line, wait: wait) else { return }
    violate(question, "stale data although the provider is up, after \(wait / millisecond) ms")
  }

  private func judgeLocalAnswer(_ question: LifeQuestion, _ message: Message) {
    let line = lines[question.place]
    if now() - line.localAt > LifeJudge.localLifetime { violate(question, "LocalDNS's answer is too old") }
    if message.answers.contains(where: { $0.ttl > 60 }) { violate(question, "LocalDNS's answer with a long TTL") }
    if let latest = line.latest, now() < latest.end, latest.at > line.localAt, case .addresses = latest.state {
      violate(question, "LocalDNS's answer although there is a fresh one")
    }
  }

  /// During an outage LocalDNS answers, and no client waits long for the provider.
  private func judgeWait(_ question: LifeQuestion, _ wait: Int64, askedAt: Int64) {
    guard plan.hasLocalDNS, wait > 0, let began = weather.outageBegan(at: askedAt), now() - wait > began + 3 * second,
      weather.outageBegan(at: now()) == began, !hasSlept(since: askedAt - 5 * second)
    else { return }
    switch weather.outage(at: askedAt) {
    case .refusal where wait > LifeJudge.longestRefusal:
      violate(question, "waited \(wait / millisecond) ms for a provider that refuses connections")
    case .silence where wait > longestSilence && wasNoticed(began, before: askedAt):
      violate(question, "waited \(wait / millisecond) ms for a provider that is silent")
    default: break
    }
  }

  private var longestSilence: Int64 { plan.isSlow ? LifeJudge.longestSilenceOfSlow : LifeJudge.longestSilence }

  /// Whether a question has shown that the provider is silent: it had the time, and what was on its way before the outage had
  /// come.
  private func wasNoticed(_ began: Int64, before time: Int64) -> Bool {
    let notice = plan.isSlow ? LifeJudge.noticeOfSlow : LifeJudge.notice
    return outageAsked.contains { $0 > max(began + LifeJudge.longestTransfer, changedAt) && $0 < time - notice }
  }

  private func mayBeStale(_ line: Line, wait: Int64) -> Bool {
    switch plan.stale.mode {
    case .off: false
    case .immediate: true
    case .onFailure:
      wait >= plan.stale.wait.nanoseconds || line.lateAt > now() - 31 * second
        || weather.isTroubled(from: now() - LifeJudge.staleAfterOutage, to: now())
        || plan.dialect == .json
          && weather.isTroubled(from: now() - LifeJudge.failureAfterWord, to: now(), by: .failure)
        || hasSlept(since: now() - LifeJudge.staleAfterOutage)
    }
  }

  private func judgeEmpty(_ question: LifeQuestion, _ message: Message, _ states: [LifeState]) {
    var limit = 31 * second
    if let error = message.extendedError {
      tally.stale += 1
      if plan.stale.mode == .off { violate(question, "a stale NXDOMAIN") }
      if error != (message.responseCode == .nxDomain ? .staleNXDomain : .staleAnswer) {
        violate(question, "EDE \(error)")
      }
      limit += Int64(plan.stale.maxAge) * second
    }
    if message.authorities.isEmpty || message.authorities.contains(where: { $0.ttl > 30 }) {
      violate(question, "a negative answer without a SOA record of 30 s at most")
    }
    if !states.contains(where: { age(of: $0, question, limit) != nil }) {
      violate(question, "\(message.responseCode) without records, which has long been wrong")
    }
  }

  private func judgeFailure(_ question: LifeQuestion, _ message: Message, askedAt: Int64) {
    tally.servFails += 1
    if plan.hasLocalDNS, !hasSlept(since: askedAt),
      !(plan.dialect == .json && weather.isTroubled(from: now() - LifeJudge.failureAfterWord, to: now(), by: .failure))
    {
      violate(question, "SERVFAIL although LocalDNS knows the name")
    }
    if message.extendedError == nil { violate(question, "SERVFAIL without a reason") }
    if let latest = lines[question.place].latest, case .addresses = latest.state, askedAt < latest.end {
      violate(question, "SERVFAIL although there is a fresh answer")
    }
    if hasUsableStaleData(question) { violate(question, "SERVFAIL although there is stale data") }
    let begin = now() - LifeJudge.failureAfterOutage
    let wasSaid =
      plan.dialect == .json
      && weather.isTroubled(from: now() - LifeJudge.failureAfterWord, to: now(), by: .failure)
    // One question has to find out: the first of two that come at once, for example.
    let isKnown = !weather.isTroubled(from: max(recoveredAt, now() - LifeJudge.failureAfterWord), to: now())
    if !wasSaid, isKnown, !weather.isTroubled(from: begin, to: now()), !hasSlept(since: begin) {
      violate(question, "SERVFAIL although the provider is up")
    }
  }

  private func hasUsableStaleData(_ question: LifeQuestion) -> Bool {
    guard plan.stale.mode != .off, let latest = lines[question.place].latest, case .addresses = latest.state else {
      return false
    }
    // LocalDNS's answer has taken its place.
    guard lines[question.place].localAt < latest.at else { return false }
    // Not in the last moments of its use: a pursuit may begin with it and end without.
    let end = latest.end + (Int64(plan.stale.maxAge) - 5) * second
    return !lines[question.place].isNXDOMAIN && now() >= latest.end && now() < end
  }

  /// An answer must have been true at the provider no longer ago than that, and than a transfer takes.
  private func limitAge(of state: LifeState, _ question: LifeQuestion, _ limit: Int64) {
    guard age(of: state, question, limit) == nil else { return }
    violate(question, "an answer that was true more than \(limit / second) s ago")
  }

  private func age(of state: LifeState, _ question: LifeQuestion, _ limit: Int64) -> Int64? {
    zone.age(
      of: state, zone.hosts[question.host], isIPv6: question.isIPv6, at: now(),
      limit: limit + LifeJudge.longestTransfer)
  }

  private func isOnKeepList(_ question: LifeQuestion) -> Bool { question.host >= plan.names - plan.kept }

  private func hasSlept(since time: Int64) -> Bool { wokeAt >= time }

  private func violate(_ question: LifeQuestion, _ text: String) {
    ownViolations.append("\(time(now())) host\(question.host) \(question.isIPv6 ? "AAAA" : "A"): \(text)")
  }

  private func time(_ instant: Int64) -> String { "at \(instant / millisecond) ms" }
}

/// What came of a life.
struct LifeTally: Equatable {
  var queries = 0
  /// Queries that were not answered at once.
  var waited = 0
  var stale = 0
  var servFails = 0
  /// Questions to LocalDNS.
  var local = 0
  /// Background transfers.
  var refreshes = 0
  /// Answers that came while the last one was still fresh.
  var ahead = 0
  /// The most refreshes of a name and family after a query.
  var mostFruitless = 0
  /// Transfers that the budget forbade.
  var overBudget = 0
  var transfers = 0
  var units = 0
  /// Queries of hostile clients.
  var hostile = 0
  /// Of all replies and when they came.
  var digest: UInt64 = 0

  /// Adds what another life has cost.
  mutating func add(_ other: LifeTally) {
    refreshes += other.refreshes
    transfers += other.transfers
    units += other.units
  }

  mutating func note(_ message: Message, at time: Int64) {
    for value in [UInt64(time), UInt64(message.id), UInt64(message.answers.first?.ttl ?? 0)] {
      digest = (digest ^ value) &* 0x0000_0100_0000_01B3
    }
  }
}
