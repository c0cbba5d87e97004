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
  var counters = SharedProviderCounters()
  var observer: (any TransferObserver)?
  /// Which server is asked, and which ones are left out.
  var order: ServerOrder
  let serverTimer = OwnedTimer()
  /// Questions that wait until any server can be reached.
  let arrivals: Waiters
  /// How long a question waits for a verdict.
  var patience = Patience()
  /// What the provider says about the account.
  var pause = AccountPause()
  /// The maximum cost in units of all transfers in flight.
  var unitsInFlight = 0
  /// Whether it was not asked since its last verdict: it could not be reached, paused, or had no units.
  var wasAway = false
  /// When background work may use it again after a failure.
  var nextRefresh = BootInstant(nanoseconds: .min)
  /// Called at the first verdict after a silence.
  var onRecovery: (() -> Void)?
  let dialect: any Dialect
  let batchDialect: (any BatchDialect)?
  let note: ProviderNote
  var loggedStanding = LoggedStanding()
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
  /// The last failure of a transfer, and what helps, human-readable.
  private(set) var lastFailure: (text: String, advice: String, at: BootInstant)?
  /// Why it pauses, and what helps, human-readable.
  private(set) var pauseReason = (text: "", remedy: "")
  /// Whether the log has said that the day's units are used up.
  private var isLimitLogged = false
  let certificateClock: CertificateClock?
  /// The earliest time for another request for the time; nil while one is in flight.
  var nextTimeCheck: BootInstant? = BootInstant(nanoseconds: .min)
  /// The pause after it, if it does not yield the time.
  var timeCheckPause = HTTPDNSProvider.timeCheckPause
  private var notListed = NotListedNames()
  private var pairs = PairedNames()
  private(set) var pairsInFlight: [HTTPDNSQuestion: SharedTransfer] = [:]

  /// The maximum number of servers that one question tries.
  static let mostAttempts = 3
  /// With less time than this, a transfer is not worth its cost.
  static let shortestAttempt = Duration.milliseconds(100)
  /// The clock difference in seconds from which the log mentions it; signatures are valid for minutes.
  private static let oddClock: Int64 = 60

  /// - Parameters:
  ///   - servers: the servers, or those until `schedule` has others.
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
    order = ServerOrder(servers: servers.count, settings)
    arrivals = Waiters(on: loop)
    limit = RequestLimit(perSecond: settings.requestsPerSecond)
    budget =
      ledger?.budget(of: settings.name, perDay: settings.unitsPerDay) ?? UnitBudget(perDay: settings.unitsPerDay)
    self.ledger = ledger
    self.schedule = schedule
    self.certificateClock = certificateClock
  }

  var name: String { settings.name }
  var trustsAD: Bool { settings.trustsAD }
  var knowsDNSSECFlags: Bool { settings.kind.knowsDNSSECFlags }
  var timeout: Duration { settings.timeout }
  var clientSubnet: Configuration.ClientSubnet { settings.clientSubnet }
  var medianRoundTrip: Duration? { counters.values.roundTrips.quantile(0.5) }

  func start() {
    loop.assertCurrent()
    ledger?.add(name) { [weak self] in self?.budget }
    schedule?.start()
  }

  var serverAddresses: [IPAddress] { servers.flatMap(\.addresses) }

  /// Switches to these servers. Transfers in flight continue with the old ones.
  func use(_ servers: [ProviderServer]) {
    loop.assertCurrent()
    let wasSwitchedOff = self.servers.isEmpty
    self.servers = servers
    serverTimer.cancel()
    order = ServerOrder(servers: servers.count, settings)
    if servers.isEmpty {
      pause.switchedOff(now: loop.now)
      pauseReason = (ServerSchedule.switchedOffText, ServerSchedule.remedyIfSwitchedOff)
    } else if wasSwitchedOff {
      pause.end()
    }
    arrivals.resumeAll()
  }

  var isSilent: Bool { patience.isSilent(now: loop.now) }

  var shortPatience: Duration { patience.short() }

  var verdicts: VerdictTimes { patience.verdicts }

  func serves(_ question: HTTPDNSQuestion) -> Bool { dialect.serves(question) }

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.assertCurrent()
    if notListed.contains(question, now: loop.now) {
      counters.values.notListed += 1
      let answer = HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: true)
      return .success(UpstreamAnswer(answer, server: "remembered"))
    }
    let result = await replies(to: question, for: asking, deadline: deadline, isLastResort: isLastResort)
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
    to question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    guard batchDialect != nil, pairs.note(question) else {
      return await askServers(.one(question), for: asking, deadline: deadline, isLastResort: isLastResort)
    }
    let key = HTTPDNSQuestion(name: question.name, type: .a, clientSubnet: question.clientSubnet)
    let pair: SharedTransfer
    if let inFlight = pairsInFlight[key] {
      guard !inFlight.hasNoClients else {
        return await askServers(.one(question), for: asking, deadline: deadline, isLastResort: isLastResort)
      }
      pair = inFlight
      pair.join(asking)
    } else {
      pair = SharedTransfer(for: asking, on: loop)
      pairsInFlight[key] = pair
      let batch = QuestionBatch(names: [question.name], types: [.a, .aaaa], clientSubnet: question.clientSubnet)
      Task(executorPreference: loop) {
        let result = await self.askServers(
          .batch(batch), for: pair, deadline: deadline, isLastResort: isLastResort)
        self.pairsInFlight[key] = nil
        pair.end(result)
      }
    }
    return await pair.result(by: deadline) ?? .failure(.noTimeLeft)
  }

  /// Asks the servers in order until one gives a verdict.
  ///
  /// - Parameter attempts: the maximum number of transfers.
  func askServers(
    _ asked: AskedQuestions, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool,
    attempts: Int = HTTPDNSProvider.mostAttempts
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    if let refusal = await refusal(of: asking, by: deadline, isLastResort: isLastResort) {
      wasAway = true
      return refused(asked, refusal)
    }
    var failure = UpstreamFailure.noTimeLeft
    var steps: [String] = []
    // While it gives no verdicts, a question costs one transfer to each server, and each but the last has the short patience.
    let isSilent = isSilent
    var left = attempts
    var mayRepeat = left > 1 && !isSilent
    let servers = servers
    var places = order.servers[...]
    // The first server may be back: it has the short patience to give a verdict.
    var isReturning = order.takeReturn(of: asking.clientShare)
    if isReturning { places = [0] + places.filter { $0 != 0 } }
    // The clients of a question that is not wanted have been answered, so it gets no further transfers.
    while left > 0, hasUnits, asking.isWanted, let index = places.popFirst() {
      let isShort = isReturning || isSilent && left > 1 && !places.isEmpty
      let time = min(isShort ? shortPatience : timeout, deadline - loop.now)
      isReturning = false
      guard time >= HTTPDNSProvider.shortestAttempt else { break }
      switch await ask(servers[index], asked, for: asking, timeout: time) {
      case .success(let replies): return .success(replies)
      case .failure(let problem):
        failure = problem
        failure.reason = "\(servers[index]): \(problem.reason)"
        // A server that answers other names was found and reached.
        if problem.transport?.kind == .timeout, !patience.hasSeveralWithout { failure.advice = "" }
        if !problem.isCancelled { lastFailure = (failure.reason, failure.advice, loop.now) }
        steps.append(failure.explanation)
        failure.steps = steps
        switch problem.consequence {
        case .notAsked: break
        case .nextServer:
          left -= 1
          guard problem.isTemporary, mayRepeat, places.isEmpty else { break }
          mayRepeat = false
          places = [index]
        case .verdict, .nextUpstream, .limit, .ours: return .failure(failure)
        }
      }
    }
    return .failure(failure)
  }

  /// Whether these are still the current servers.
  func isCurrent(_ servers: [ProviderServer]) -> Bool {
    servers.count == self.servers.count && zip(servers, self.servers).allSatisfy { $0 === $1 }
  }

  /// Why the provider is not asked now; nil if it is. If no other upstream is left, waits for a server that can be reached.
  private func refusal(
    of asking: any QuestionInFlight, by deadline: BootInstant, isLastResort: Bool
  ) async -> UpstreamFailure? {
    func isPausing() -> Bool { pause.left(now: loop.now) != nil }
    if isPausing(), !pause.mayTry(asking.clientShare, now: loop.now) { return pausing }
    guard hasUnits else { return unitsUsedUp }
    if order.hasLosses { areWanted() }
    while order.isOutOfReach {
      let left = deadline - loop.now - HTTPDNSProvider.shortestAttempt
      guard isLastResort, left > .zero, !servers.isEmpty else { return outOfReach }
      await arrivals.wait(atMost: left) { order.isOutOfReach }
    }
    return isPausing() && !pause.takeTrial(asking.clientShare, now: loop.now) ? pausing : nil
  }

  /// Counts questions that are not sent.
  private func refused(
    _ asked: AskedQuestions, _ refusal: UpstreamFailure
  ) -> Result<ProviderReplies, UpstreamFailure> {
    counters.values.refusals += 1
    observer?.wereRefusedHere(asked)
    return .failure(refusal)
  }

  private var pausing: UpstreamFailure {
    var refusal = UpstreamFailure(.other, "pausing: \(pauseReason.text)", .notAsked)
    refusal.advice = pauseReason.remedy
    refusal.isLogged = true
    return refusal
  }

  private var unitsUsedUp: UpstreamFailure {
    var refusal = UpstreamFailure(
      .other, "units_per_day (\(settings.unitsPerDay)) used up\(limitOwner); resets at 00:00 UTC", .notAsked)
    refusal.isLogged = isLimitLogged
    return refusal
  }

  /// Asks one server. Repeats the transfer if the signature may have been refused for its time and the reply corrected
  /// our clock, since not every provider distinguishes that from a wrong key. Each transfer counts against
  /// `requests_per_second`.
  func ask(
    _ server: ProviderServer, _ asked: AskedQuestions, for asking: any QuestionInFlight, timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    let end = loop.now + timeout
    guard let transport = await server.transport(timeout: timeout) else {
      return .failure(
        hasFailed(
          UpstreamFailure(HTTPFailure(.unreachable, ProviderServer.notFound)), at: server, asking, sentAt: loop.now))
    }
    guard end - loop.now >= HTTPDNSProvider.shortestAttempt else {
      return .failure(UpstreamFailure(.noReachableAuthority, "its name was resolved too late", .notAsked))
    }
    // Others may have been sent while the server's name was resolved.
    guard hasUnits else { return refused(asked, unitsUsedUp) }
    guard limit.take(now: loop.now.nanoseconds) else {
      let reason = "more than requests_per_second (\(settings.requestsPerSecond))"
      return refused(asked, UpstreamFailure(.other, reason, .limit))
    }
    // Compare offsets instead of asking whether this reply changed the clock: of several concurrent refusals, only the
    // first reply changes it.
    let offset = clock.offset
    var sentAt = loop.now
    var result = await transfer(transport, server, asked, for: asking, timeout: end - loop.now)
    if case .failure(let failure) = result, failure.report?.mayBeTheClock == true, clock.offset != offset,
      end - loop.now >= HTTPDNSProvider.shortestAttempt, maySend()
    {
      sentAt = loop.now
      result = await transfer(transport, server, asked, for: asking, timeout: end - loop.now)
    }
    switch result {
    case .success(let replies) where replies.hasVerdict: hasVerdict(of: server, on: asking, sentAt: sentAt)
    case .success: break
    case .failure(let failure): result = .failure(hasFailed(failure, at: server, asking, sentAt: sentAt))
    }
    return result
  }

  private func transfer(
    _ transport: any HTTPTransport, _ server: ProviderServer, _ asked: AskedQuestions, for asking: any QuestionInFlight,
    timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    let begin = loop.now
    isSent(to: server, transport, asking)
    let result = await exchange(transport, server, asked, for: asking, timeout: timeout)
    if case .failure(let failure) = result, failure.isCancelled { return result }
    if case .failure(let failure) = result, let cause = failure.cause { counters.values.failures.count(cause) }
    observer?.asked(asked, result, time: loop.now - begin)
    return result
  }

  private func exchange(
    _ transport: any HTTPTransport, _ server: ProviderServer, _ asked: AskedQuestions, for asking: any QuestionInFlight,
    timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    if case .batch(let batch) = asked, batch.types.count == 2 { counters.values.pairs += 1 }
    let request = request(asked)
    let begin = loop.preciseNow
    // A transfer is charged in full unless the answer shows its cost, since the provider's accounting is unknown.
    let most = dialect.billing.units(answers: asked.count)
    let billed = BilledRequest(asking, of: self, units: most)
    defer { billed.end() }
    let outcome = await transport.send(request, for: billed, timeout: timeout)
    counters.values.transfers += outcome.timesSent
    switch outcome {
    case .failure(let reason):
      // The request may have arrived, and the provider bills what arrives.
      pay(most * reason.timesSent)
      var failure = UpstreamFailure(reason)
      failure.advice = reason.remedy(settings)
      return .failure(failure)
    case .response(let response) where loop.hasSlept(since: begin, waitingFor: timeout):
      pay(most * response.timesSent)
      var failure = UpstreamFailure(HTTPFailure(.timeout, "the machine has slept"))
      failure.cause = .slept
      return .failure(failure)
    case .response(let response):
      counters.values.roundTrips.observe(loop.preciseNow - begin)
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
        pay(dialect.billing.units(answers: count) + most * (response.timesSent - 1))
        return .success(replies)
      } catch {
        pay(most * response.timesSent)
        return .failure(failed(error, response))
      }
    }
  }

  /// The failure that a response reports. A refusal has the service's own error code or the HTTP status, and a remedy.
  private func failed(_ error: HTTPDNSFailure, _ response: HTTPResponse) -> UpstreamFailure {
    var failure = UpstreamFailure(error)
    failure.reason = response.explanation(of: error, code: dialect.errorCode(in: response), settings.kind)
    if error == .unreadable(.mediaType) { failure.kind = "another media type" }
    if error.isRefusal || error.isOfAccount { failure.advice = remedy(for: error) }
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
    counters.values.units += units
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
    isRetired ? ledger?.hasLeft(name, budget) : ledger?.didSpend()
  }

  /// Begins to pause, and logs a remedy.
  func pauses(for length: Duration, because text: String, _ remedy: String) {
    counters.values.demotions.count(.aside)
    pauseReason = (text, remedy)
    let help = remedy.isEmpty ? "" : "; \(remedy)"
    note(.warning, "provider \(name): \(text); pausing for \(length.components.seconds) s\(help)")
  }

  /// A human-readable remedy. It mentions the clock if that may be the cause: only a server authenticated by TLS
  /// corrects it.
  func remedy(for reason: HTTPDNSFailure) -> String {
    let isTimely = abs(clockDifference) < HTTPDNSProvider.oddClock
    guard !isTimely, reason.mayBeTheClock else { return reason.remedy(settings) }
    return "set the machine's clock, which differs from the provider's by \(abs(clockDifference)) s"
  }
}

extension ServerOrder {
  init(servers: Int, _ settings: Configuration.Provider) {
    self.init(
      count: servers, attemptsBeforeSwitch: settings.attemptsBeforeSwitch, returnToFirst: settings.returnToFirst)
  }
}
