// HTTPDNSProvider.swift -- a provider over HTTP: its dialect, its servers and the selection among them.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import FairShares
import HTTPClient
import HTTPDNS
import HTTPMessage
import Logging
import Telemetry

/// A provider over HTTP. Resolver's loop only; `@unchecked Sendable` because timers and tasks on that loop capture it.
final class HTTPDNSProvider: Upstream, @unchecked Sendable {
  let settings: Configuration.Provider
  private(set) var servers: [ProviderServer]
  let loop: any Loop
  /// Counters; a reload carries them over from the provider of the same name.
  var counters = ProviderCounters()
  var observer: (any TransferObserver)?
  var health: ProviderHealth
  var probeTimer: LoopTimer?
  /// The question for probes if no question is known to be good: the first one that was asked.
  var probeQuestion: HTTPDNSQuestion?
  /// Questions that the provider is known to answer.
  var good: GoodQuestions
  /// Failures and replies of each server that checks depend on.
  var suspicions: [ServerSuspicion]
  /// The most recent check.
  var lastCheck: ProviderCheck?
  var checkTimer: LoopTimer?
  /// Domains that were refused since the last reply, while no question is known to be good.
  var refusedDomains: Set<DomainName> = []
  /// Refusals since the last reply that no good question could check.
  var refusalsInARow = 0
  /// The number of probes so far; each uses another of the good questions.
  var probeNumber = 0
  /// The maximum cost in units of all transfers in flight.
  var unitsInFlight = 0
  /// Whether it has failed since its last reply, for a reason other than the question.
  var hasTrouble = false
  /// Called at the first reply after such a failure.
  var onRecovery: (() -> Void)?
  let dialect: any Dialect
  let batchDialect: (any BatchDialect)?
  let note: ProviderNote
  var loggedState = LoggedProviderState()
  var limit: RequestLimit
  var budget: UnitBudget
  /// Adds up the units of a fleet; nil if the limit is this daemon's own.
  var sharing: (any UnitSharing)?
  /// The last milestone of the fleet's units that was logged, and its day.
  var milestone: (day: Int64, percent: Int) = (0, 0)
  let ledger: UnitLedger?
  /// Whether a reload has removed it. `heir` has its name now and pays for its transfers in flight.
  var isRetired = false
  var heir: HTTPDNSProvider?
  let schedule: ServerSchedule?
  private var clock = ProviderClock()
  /// Seconds by which the last response's `Date` was ahead of the time used to sign its request.
  private var clockDifference: Int64 = 0
  /// Seconds by which the last `Date` was ahead of the machine's clock; nil if no response had one.
  private(set) var datedClockDifference: Int64?
  /// The last failure of a transfer that speaks against a server, the account or the network, also if it was then
  /// counted against the name that was asked for.
  private(set) var lastFailure: (text: String, at: BootInstant)?
  /// What helps against the refusal from which it backs off, human-readable.
  private(set) var asideRemedy = ""
  /// Whether the log has said that the day's units are used up.
  private var isLimitLogged = false
  let certificateClock: CertificateClock?
  /// The earliest time for another request for the time; nil while one is in flight.
  var nextTimeCheck: BootInstant? = BootInstant(nanoseconds: .min)
  private var notListed = NotListedNames()
  private var pairs = PairedNames()
  private(set) var pairsInFlight: [HTTPDNSQuestion: PairInFlight] = [:]

  /// The maximum number of servers that one question tries.
  static let mostAttempts = 3
  /// A server that is silent for this long has failed even if its timeout is longer: no question lasts much longer.
  private static let longestAttempt = Duration.seconds(4)
  /// With less time than this, a transfer is not worth its cost.
  static let shortestAttempt = Duration.milliseconds(100)
  /// The clock difference in seconds from which the log mentions it; signatures are valid for minutes.
  private static let oddClock: Int64 = 60

  /// - Parameters:
  ///   - servers: may be empty if `schedule` provides them.
  ///   - schedule: provides the list of servers.
  ///   - ledger: stores the units spent across restarts.
  ///   - certificateClock: knows the time if the machine's clock cannot be right.
  ///   - note: logs one line for the operator: what the provider refuses, and the remedy.
  init(
    _ settings: Configuration.Provider, dialect: any Dialect, servers: [ProviderServer], loop: any Loop,
    ledger: UnitLedger? = nil, schedule: ServerSchedule? = nil, certificateClock: CertificateClock? = nil,
    note: @escaping ProviderNote = { _, _ in }
  ) {
    self.settings = settings
    self.dialect = dialect
    self.servers = servers
    self.loop = loop
    self.note = note
    batchDialect = dialect as? any BatchDialect
    health = ProviderHealth(servers: servers.count, settings)
    good = GoodQuestions(checkName: settings.checkName?.lowercased)
    suspicions = Array(repeating: ServerSuspicion(), count: servers.count)
    limit = RequestLimit(perSecond: settings.requestsPerSecond)
    budget =
      ledger?.budget(of: settings.name, perDay: settings.unitsPerDay) ?? UnitBudget(perDay: settings.unitsPerDay)
    self.ledger = ledger
    self.schedule = schedule
    self.certificateClock = certificateClock
  }

  deinit {
    probeTimer?.cancel()
    checkTimer?.cancel()
  }

  var name: String { settings.name }
  var trustsAD: Bool { settings.trustsAD }
  var knowsDNSSECFlags: Bool { settings.kind.knowsDNSSECFlags }
  var timeout: Duration { settings.timeout }
  var clientSubnet: Configuration.ClientSubnet { settings.clientSubnet }
  var medianRoundTrip: Duration? { counters.roundTrips.quantile(0.5) }

  func start() {
    loop.assertCurrent()
    ledger?.add(name) { [weak self] in self?.budget }
    schedule?.start()
  }

  var serverAddresses: [IPAddress] { servers.flatMap(\.addresses) }

  /// Switches to these servers. Transfers in flight continue with the old ones.
  func use(_ servers: [ProviderServer]) {
    loop.assertCurrent()
    self.servers = servers
    probeTimer?.cancel()
    probeTimer = nil
    health = ProviderHealth(servers: servers.count, settings)
    suspicions = Array(repeating: ServerSuspicion(), count: servers.count)
    lastCheck = nil
    guard servers.isEmpty else { return }
    health.setAside(.switchedOff, now: loop.now.nanoseconds)
    asideRemedy = ServerSchedule.remedyIfSwitchedOff
  }

  func serves(_ question: HTTPDNSQuestion) -> Bool { dialect.serves(question) }

  func ask(
    _ question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool, isWanted: @escaping @Sendable () -> Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.assertCurrent()
    if notListed.contains(question, now: loop.now) {
      counters.notListed += 1
      let answer = HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: true)
      return .success(UpstreamAnswer(answer, server: "remembered"))
    }
    let result = await replies(to: question, deadline: deadline, isLastResort: isLastResort, isWanted: isWanted)
    return result.flatMap { replies in
      switch replies.answer(to: question) {
      case .success(let answer):
        var others: [(HTTPDNSQuestion, HTTPDNSAnswer)] = []
        for case (let other, .success(let answer)) in replies.results where other != question {
          others.append((other, taken(answer, to: other)))
        }
        return .success(UpstreamAnswer(taken(answer, to: question), server: replies.server, others: others))
      case .failure(let failure): return .failure(UpstreamFailure(failure))
      }
    }
  }

  func follow(keepListNames: Set<DomainName>) {
    loop.assertCurrent()
    good.keepListNames = keepListNames
  }

  func reportRecovery(to report: @escaping () -> Void) {
    loop.assertCurrent()
    onRecovery = report
  }

  @discardableResult
  func forgetNotListed(_ names: NameSelection) -> Int {
    loop.assertCurrent()
    return notListed.remove(names)
  }

  /// Applies the settings to an ambiguous empty answer: either remembers it, so that the resolver asks the next
  /// provider, or accepts it.
  func taken(_ answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) -> HTTPDNSAnswer {
    guard answer.isEmptyAmbiguous else { return answer }
    var answer = answer
    answer.isEmptyAmbiguous = settings.fallbackOnEmpty
    if settings.fallbackOnEmpty {
      notListed.insert(question, until: loop.now + settings.notListedTTL, now: loop.now)
    }
    return answer
  }

  /// Asks for both address families of a name in one transfer if clients have asked for both before and the dialect can
  /// carry both. Concurrent callers for the other family share that transfer.
  private func replies(
    to question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool, isWanted: @escaping @Sendable () -> Bool
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    guard batchDialect != nil, pairs.note(question) else {
      return await askServers(.one(question), deadline: deadline, isLastResort: isLastResort, isWanted: isWanted)
    }
    let key = HTTPDNSQuestion(name: question.name, type: .a, clientSubnet: question.clientSubnet)
    let pair: PairInFlight
    if let inFlight = pairsInFlight[key] {
      pair = inFlight
    } else {
      pair = PairInFlight(on: loop)
      pairsInFlight[key] = pair
      let batch = QuestionBatch(names: [question.name], types: [.a, .aaaa], clientSubnet: question.clientSubnet)
      Task(executorPreference: loop) {
        let result = await self.askServers(
          .batch(batch), deadline: deadline, isLastResort: isLastResort, isWanted: { pair.isWanted })
        self.pairsInFlight[key] = nil
        pair.end(result)
      }
    }
    return await pair.result(by: deadline, isWanted: isWanted)
  }

  /// - Parameters:
  ///   - attempts: the maximum number of attempts.
  ///   - isWanted: whether to try another server after a failure.
  func askServers(
    _ asked: AskedQuestions, deadline: BootInstant, isLastResort: Bool, attempts: Int = HTTPDNSProvider.mostAttempts,
    isWanted: @Sendable () -> Bool = { true }
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    if servers.isEmpty { await schedule?.ready(by: deadline) }
    if let refusal = refusal(isLastResort: isLastResort) {
      counters.refusals += 1
      observer?.wereRefusedHere(asked)
      return .failure(refusal)
    }
    probeQuestion = probeQuestion ?? asked.first
    let servers = servers
    var failure = UpstreamFailure.noTimeLeft
    var steps: [String] = []
    if servers.isEmpty {
      failure.reason = noServers
      failure.advice = schedule?.remedy ?? ""
      hasTrouble = true
    }
    var order = AttemptOrder(health.rotation.order.filter { servers.indices.contains($0) }, most: attempts)
    // The clients of a question that has lost its place have been answered, so it gets no further transfers.
    while hasUnits, isWanted(), let index = order.next() {
      let time = min(timeout, deadline - loop.now)
      guard time >= HTTPDNSProvider.shortestAttempt else { break }
      let began = loop.now
      switch await ask(servers[index], asked, timeout: time) {
      case .success(let replies):
        if isCurrent(servers) { replied(index) }
        noteGood(replies)
        return .success(replies)
      case .failure(let problem):
        failure = problem
        let secondChance = problem.isTemporary ? order.secondChance(after: index) : nil
        if secondChance != .sameServer, isCurrent(servers) {
          failure = await judged(
            problem, at: index, asked.first, began: began,
            hadItsTime: time >= min(timeout, HTTPDNSProvider.longestAttempt), deadline: deadline)
        }
        failure.reason = "\(servers[index]): \(failure.reason)"
        // The server answers other names, so that it was found and reached.
        if failure.isLate { failure.advice = "" }
        if problem.blame.endsWithRecovery {
          let advice = problem.refusal.map { "; \(remedy(for: $0))" } ?? ""
          let remark = failure.blame.endsWithRecovery ? "" : " (does not count against the provider yet)\(advice)"
          lastFailure = (failure.reason + remark, loop.now)
        }
        if let refusal = problem.refusal, failure.blame == .account {
          failure.advice = remedy(for: refusal)
          if case .aside = health.fitness(now: loop.now.nanoseconds) { failure.isLogged = true }
        }
        steps.append(failure.explanation)
        failure.steps = steps
        guard secondChance != nil || failure.blame.leadsToNextServer else { return .failure(failure) }
      }
    }
    return .failure(failure)
  }

  /// Remembers a question that was answered with data, for checks and probes.
  private func noteGood(_ replies: ProviderReplies) {
    for case (let question, .success(let answer)) in replies.results
    where answer.responseCode == .noError && !answer.isNegative {
      return good.note(question, now: loop.now)
    }
  }

  private var noServers: String {
    "its list of servers has not arrived" + (schedule?.problem.map { ": \($0)" } ?? "")
  }

  /// Whether these are still the current servers.
  func isCurrent(_ servers: [ProviderServer]) -> Bool {
    servers.count == self.servers.count && zip(servers, self.servers).allSatisfy { $0 === $1 }
  }

  /// Why the provider may not be used now; nil if it may.
  private func refusal(isLastResort: Bool) -> UpstreamFailure? {
    switch health.fitness(now: loop.now.nanoseconds) {
    case .up: break
    // If no other upstream is left, an attempt may still succeed.
    case .down where isLastResort: break
    case .down:
      hasTrouble = true
      return UpstreamFailure(.noReachableAuthority, "all of its servers are down", .server)
    case .aside(let reason):
      hasTrouble = true
      var refusal = UpstreamFailure(.other, "backing off: \(reason.text)", .account)
      refusal.advice = asideRemedy
      refusal.isLogged = true
      return refusal
    }
    guard hasUnits else {
      hasTrouble = true
      var refusal = UpstreamFailure(
        .other, "units_per_day (\(settings.unitsPerDay)) used up\(limitOwner); resets at 00:00 UTC", .account)
      refusal.isLogged = isLimitLogged
      return refusal
    }
    return nil
  }

  /// Asks one server. Repeats the transfer if the signature may have been refused for its time and the reply corrected
  /// our clock, since not every provider distinguishes that from a wrong key. Each transfer counts against
  /// `requests_per_second`.
  func ask(
    _ server: ProviderServer, _ asked: AskedQuestions, timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    let end = loop.now + timeout
    guard let transport = await server.transport(timeout: timeout) else {
      return .failure(UpstreamFailure(.noReachableAuthority, ProviderServer.notFound, .network))
    }
    guard end - loop.now >= HTTPDNSProvider.shortestAttempt else {
      var failure = UpstreamFailure(.noReachableAuthority, "its name was resolved too late", .network)
      failure.evidence = .late
      return .failure(failure)
    }
    guard limit.take(now: loop.now.nanoseconds) else {
      counters.refusals += 1
      observer?.wereRefusedHere(asked)
      let reason = "more than requests_per_second (\(settings.requestsPerSecond))"
      return .failure(UpstreamFailure(.other, reason, .ourselves))
    }
    // Compare offsets instead of asking whether this reply changed the clock: of several concurrent refusals, only the
    // first reply changes it.
    let offset = clock.offset
    let result = await transfer(transport, server, asked, timeout: end - loop.now)
    guard case .failure(var failure) = result, failure.refusal?.mayBeTheClock == true, clock.offset != offset else {
      return result
    }
    guard end - loop.now >= HTTPDNSProvider.shortestAttempt, limit.take(now: loop.now.nanoseconds) else {
      failure.blame = .ourselves
      return .failure(failure)
    }
    return await transfer(transport, server, asked, timeout: end - loop.now)
  }

  private func transfer(
    _ transport: any HTTPTransport, _ server: ProviderServer, _ asked: AskedQuestions, timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    let begin = loop.now
    let result = await exchange(transport, server, asked, timeout: timeout)
    if case .failure(let failure) = result, let cause = failure.cause { counters.failures.count(cause) }
    observer?.asked(asked, result, time: loop.now - begin)
    return result
  }

  private func exchange(
    _ transport: any HTTPTransport, _ server: ProviderServer, _ asked: AskedQuestions, timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    counters.transfers += 1
    if case .batch(let batch) = asked, batch.types.count == 2 { counters.pairs += 1 }
    var request = request(asked)
    let begin = loop.preciseNow
    // Shares keep a zone whose answers hang from occupying all connections.
    request.share = DomainKey(of: asked.first.name).value
    // A transfer is charged in full unless the answer shows its cost, since the provider's accounting is unknown.
    let most = dialect.billing.units(answers: asked.count)
    unitsInFlight += most
    defer { unitsInFlight -= most }
    switch await transport.send(request, timeout: timeout) {
    case .failure(let reason):
      // The request may have arrived, and the provider bills what arrives.
      if reason.wasSent { pay(most) }
      var failure = UpstreamFailure(reason)
      failure.advice = reason.remedy(settings)
      return .failure(failure)
    case .response where loop.hasSlept(since: begin, waitingFor: timeout):
      pay(most)
      var failure = UpstreamFailure(HTTPFailure(.timeout, "the machine has slept"))
      failure.cause = .slept
      return .failure(failure)
    case .response(let response):
      counters.roundTrips.observe(loop.preciseNow - begin)
      if let date = response.date {
        if server.isVerified { clock.learn(date, wallTime: loop.wallTime) }
        clockDifference = date - clock.unixTime(wallTime: loop.wallTime)
        datedClockDifference = date - loop.wallTime
      }
      do throws(HTTPDNSFailure) {
        let replies = ProviderReplies(
          server: server.description, results: try results(asked, response))
        let count = replies.results.count {
          if case .success(let answer) = $0.result { !answer.isNegative } else { false }
        }
        pay(dialect.billing.units(answers: count))
        return .success(replies)
      } catch {
        pay(most)
        return .failure(failed(error, response))
      }
    }
  }

  /// The failure that a response reports. A refusal has the service's own error code or the HTTP status, and a remedy.
  private func failed(_ error: HTTPDNSFailure, _ response: HTTPResponse) -> UpstreamFailure {
    var failure = UpstreamFailure(error)
    failure.reason = response.explanation(of: error, code: dialect.errorCode(in: response), settings.kind)
    if error == .unreadable(.mediaType) { failure.kind = "another media type" }
    if error.blame == .account { failure.advice = error.remedy(settings) }
    return failure
  }

  private func request(_ asked: AskedQuestions) -> HTTPRequest {
    let time = clock.unixTime(wallTime: loop.wallTime)
    if case .batch(let batch) = asked, let batchDialect { return batchDialect.request(for: batch, unixTime: time) }
    return dialect.request(for: asked.first, unixTime: time)
  }

  private func results(
    _ asked: AskedQuestions, _ response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [(HTTPDNSQuestion, Result<HTTPDNSAnswer, HTTPDNSFailure>)] {
    if case .batch(let batch) = asked, let batchDialect {
      return Array(zip(batch.questions, try batchDialect.answers(to: batch, from: response)))
    }
    return [(asked.first, .success(try dialect.answer(to: asked.first, from: response)))]
  }

  func pay(_ units: Int) {
    if let heir { return heir.pay(units) }
    counters.units += units
    guard units > 0 else { return }
    let own = budget.spend(units, unixTime: loop.wallTime, now: loop.now.nanoseconds)
    sharing?.spent(own: budget.spent, day: budget.day)
    if let milestone = sharing == nil ? own : newMilestone() {
      isLimitLogged = milestone == 100
      let rest = milestone < 100 ? "" : "; the provider is not asked until 00:00 UTC"
      note(
        .warning, "provider \(name): \(milestone) % of units_per_day (\(settings.unitsPerDay)) used\(limitOwner)\(rest)"
      )
    }
    ledger?.didSpend()
  }

  /// Backs off from a provider whose refusal every server would repeat, and logs a remedy.
  func setAside(for reason: HTTPDNSFailure) {
    var pause: Duration?
    let aside: AsideReason
    switch reason {
    case .authentication, .expired: aside = settings.kind.hasAccount ? .authentication : .request
    case .account, .unsigned: aside = .account
    case .quota(let retryAfter): (aside, pause) = (.quota, retryAfter)
    case .badParameter, .badPath: aside = .parameters
    default: return
    }
    let length = health.setAside(aside, for: pause?.nanoseconds, now: loop.now.nanoseconds)
    guard let length else { return }
    counters.demotions.count(.aside)
    asideRemedy = remedy(for: reason)
    let text = reason.text(settings.kind)
    note(.warning, "provider \(name): \(text); backing off for \(length / 1_000_000_000) s; \(asideRemedy)")
  }

  /// A human-readable remedy. It mentions the clock if that may be the cause: only a server authenticated by TLS
  /// corrects it.
  private func remedy(for reason: HTTPDNSFailure) -> String {
    let isTimely = abs(clockDifference) < HTTPDNSProvider.oddClock
    guard !isTimely, reason == .authentication || reason == .expired else { return reason.remedy(settings) }
    return "set the machine's clock, which differs from the provider's by \(abs(clockDifference)) s"
  }
}

extension ProviderHealth {
  init(servers: Int, _ settings: Configuration.Provider) {
    // Without servers the count is 1; the rotation is created again when a schedule provides them.
    self.init(
      servers: max(servers, 1), attemptsBeforeSwitch: settings.attemptsBeforeSwitch,
      returnToFirst: settings.returnToFirst.nanoseconds)
  }
}
