// HTTPDNSProvider.swift -- a provider over HTTP: puts questions to its servers in the provider's dialect.
//
// `ProviderHealth` decides whether it is asked and by which server, `ProviderLimits` whether it may be. A question passes
// through here from top to bottom: `ask` looks whether the provider has said that it does not list the name, `replies`
// joins the address families of a name, `askServers` takes one server after the other until one gives a verdict, `ask(server)`
// repeats a request whose signature had the wrong time, and `exchange` sends it, pays for it and reads the reply. What comes
// of it is told to `ProviderHealth` there, by `ask(server)`. Refreshes and requests for the time enter further down.
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
import Refresh
import Telemetry

/// A provider over HTTP.
final class HTTPDNSProvider: ConfiguredUpstream {
  let name: String
  let traits: UpstreamTraits
  let counters: SharedProviderCounters
  /// Its servers, and what is known of them.
  let health: ProviderHealth
  /// Its limits, and what is spent of them.
  let limits: ProviderLimits
  private let settings: Configuration.Provider
  let loop: any Loop
  private let dialect: any Dialect
  private let batchDialect: (any BatchDialect)?
  private var observer: (any TransferObserver)?
  private var clock = ProviderClock()
  private var timeRequests: TimeRequests
  private var notListed = NotListedNames()
  /// Names that the service refused when they were asked for alone, without a clear reason, except for refusals that count as
  /// empty answers: those are in `notListed`. Background work leaves them out.
  private var refusedAlone = NotListedNames()
  private var undecided = UndecidedRefusals()
  private let note: ProviderNote
  private var pairs = PairedNames()
  private(set) var pairsInFlight: [HTTPDNSQuestion: SharedTransfer] = [:]

  /// The maximum number of servers that one question tries.
  static let mostAttempts = 3
  /// With less time than this, a transfer is not worth its cost.
  static let shortestAttempt = Duration.milliseconds(100)

  /// - Parameters:
  ///   - servers: the servers, or those until `schedule` has others.
  ///   - schedule: provides the list of servers.
  ///   - counters: those of the provider that had its name before a reload.
  ///   - ledger: stores the units spent across restarts.
  ///   - certificateClock: knows the time if the machine's clock cannot be right.
  ///   - note: logs one line for the operator: what the provider refuses, and the remedy.
  init(
    _ settings: Configuration.Provider, dialect: any Dialect, servers: [ProviderServer], loop: any Loop,
    counters: SharedProviderCounters = SharedProviderCounters(), ledger: UnitLedger? = nil,
    schedule: ServerSchedule? = nil, certificateClock: CertificateClock? = nil,
    note: @escaping ProviderNote = { _, _ in }
  ) {
    name = settings.name
    self.settings = settings
    self.dialect = dialect
    self.loop = loop
    self.counters = counters
    batchDialect = dialect as? any BatchDialect
    self.note = note
    traits = UpstreamTraits(settings, dialect, batchDialect)
    health = ProviderHealth(settings, servers, schedule, counters, on: loop, note: note)
    limits = ProviderLimits(settings, ledger, counters, on: loop, note: note)
    timeRequests = TimeRequests(certificateClock)
    schedule?.clockOffset = { [weak self] in self?.clock.offset ?? 0 }
    schedule?.onRefusal = { [weak self] refusal, server in
      self?.noteDate(of: refusal, from: server)
      self?.learnTime(from: refusal, of: server)
    }
  }

  // MARK: The life of a provider

  func start() {
    loop.assertCurrent()
    limits.start()
    health.start()
  }

  func follow(by observer: any TransferObserver, onRecovery: @escaping () -> Void) {
    loop.assertCurrent()
    self.observer = observer
    health.onRecovery = onRecovery
  }

  func share(units: (any UnitSharing)?) {
    loop.assertCurrent()
    limits.share(units)
  }

  func networkHasChanged() {
    loop.assertCurrent()
    health.networkHasChanged()
    timeRequests.networkHasChanged()
  }

  /// The heir does not inherit failures, since the settings may have been changed because of them.
  func retire(for heir: (any ConfiguredUpstream)?) {
    loop.assertCurrent()
    health.retire()
    limits.retire(for: (heir as? HTTPDNSProvider)?.limits)
  }

  var serverAddresses: [IPAddress] { health.servers.flatMap(\.addresses) }

  var report: ProviderReport {
    loop.assertCurrent()
    var report = ProviderReport(name: name)
    report.counters = counters.values
    report.clockDifference = clock.differenceOfMachine
    limits.describe(&report)
    health.describe(&report)
    report.remark = undecided.remark(settings)
    return report
  }

  // MARK: Questions

  var pace: UpstreamPace { health.pace }

  var medianRoundTrip: Duration? { counters.values.roundTrips.quantile(0.5) }

  func reasonToSkip(_ question: HTTPDNSQuestion, mayFallBack: Bool, isInUse: () -> Bool) -> UpstreamFailure? {
    loop.assertCurrent()
    if mayFallBack, awaitsTime(toAsk: question) { return .noTime }
    guard let refusal = limits.refusalOfNewNames(), !isInUse() else { return nil }
    counters.values.refusals += 1
    return refusal
  }

  func serves(_ question: HTTPDNSQuestion) -> Bool { dialect.serves(question) }

  func isFit(for question: HTTPDNSQuestion) -> Bool {
    health.isFit && limits.hasUnits && limits.hasSpare && serves(question)
      && !notListed.contains(question, now: loop.now) && !refusedAlone.contains(question, now: loop.now)
  }

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.assertCurrent()
    if notListed.contains(question, now: loop.now) {
      counters.values.notListed += 1
      let answer = HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: true)
      return .success(UpstreamAnswer(answer: answer, server: "remembered"))
    }
    let result = await replies(to: question, for: asking, deadline: deadline, isLastResort: isLastResort)
    return result.flatMap { answer(to: question, in: $0) { $0 != question } }
  }

  /// The answer to a question of a transfer.
  ///
  /// - Parameter isOther: whether the answer to this question belongs to `others`.
  private func answer(
    to question: HTTPDNSQuestion, in replies: ProviderReplies, isOther: (HTTPDNSQuestion) -> Bool
  ) -> Result<UpstreamAnswer, UpstreamFailure> {
    switch replies.answer(to: question) {
    case .success(let answer):
      var others: [(HTTPDNSQuestion, HTTPDNSAnswer)] = []
      for case (let other, .success(let answer)) in replies.results where isOther(other) {
        others.append((other, taken(answer, to: other)))
      }
      return .success(UpstreamAnswer(answer: taken(answer, to: question), server: replies.server, others: others))
    case .failure(let failure): return .failure(UpstreamFailure(failure))
    }
  }

  func forgetNotListed(_ names: NameSelection) -> Int {
    loop.assertCurrent()
    _ = refusedAlone.remove(names)
    return notListed.remove(names)
  }

  /// Gives an answer to a request without the client's address the scope of all clients, and applies the settings to an
  /// ambiguous empty answer: either remembers it, so that the resolver asks the next provider, or accepts it.
  private func taken(_ answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) -> HTTPDNSAnswer {
    var answer = answer
    if let subnet = question.clientSubnet, !dialect.sends(subnet) { answer.scopePrefixLength = 0 }
    guard answer.isEmptyAmbiguous else {
      notListed.remove(question)
      refusedAlone.remove(question)
      return answer
    }
    answer.isEmptyAmbiguous = settings.fallbackOnEmpty
    if settings.fallbackOnEmpty { notListed.insert(question, until: loop.now + settings.notListedTTL, now: loop.now) }
    return answer
  }

  /// Asks for both address families of a name in one transfer if clients have asked for both before and the dialect can
  /// carry both, or if it has no other transfers. Concurrent callers for the other family share that transfer.
  private func replies(
    to question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    guard let batchDialect, batchDialect.families != .one, batchDialect.families == .both || pairs.note(question)
    else {
      return await askServers(.one(question), for: asking, deadline: deadline, isLastResort: isLastResort)
    }
    let key = HTTPDNSQuestion(name: question.name, type: .a, clientSubnet: question.clientSubnet)
    if let pair = pairsInFlight[key] {
      guard !pair.hasNoClients else {
        return await askServers(.one(question), for: asking, deadline: deadline, isLastResort: isLastResort)
      }
      pair.join(asking)
      return await pair.result(by: deadline) ?? .failure(.noTimeLeft)
    }
    let pair = SharedTransfer(for: asking, on: loop)
    pairsInFlight[key] = pair
    let batch = QuestionBatch(names: [question.name], types: [.a, .aaaa], clientSubnet: question.clientSubnet)
    let result = await askServers(.batch(batch), for: pair, deadline: deadline, isLastResort: isLastResort)
    pairsInFlight[key] = nil
    pair.end(result)
    return result
  }

  /// Asks the servers in order until one gives a verdict.
  ///
  /// - Parameter attempts: the maximum number of transfers.
  private func askServers(
    _ asked: AskedQuestions, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool,
    attempts: Int = HTTPDNSProvider.mostAttempts
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    let client = asking.clientShare
    var refusal = health.refusal(of: client) ?? limits.refusal
    if refusal == nil { refusal = await health.refusal(of: client, by: deadline, isLastResort: isLastResort) }
    if let refusal {
      health.wasNotAsked()
      return refused(asked, refusal)
    }
    var failure = UpstreamFailure.noTimeLeft
    var steps: [String] = []
    // While it gives no verdicts, a question costs one transfer to each server, and each but the last has the short patience.
    let pace = health.pace
    var left = attempts
    var mayRepeat = left > 1 && !pace.isSilent
    let servers = health.servers
    var places = health.places[...]
    // The first server may be back: it has the short patience to give a verdict.
    var isReturning = health.takeReturn(of: client)
    if isReturning { places = [0] + places.filter { $0 != 0 } }
    // The clients of a question that is not wanted have been answered, so it gets no further transfers.
    while left > 0, limits.hasUnits, asking.isWanted, let index = places.popFirst() {
      let isShort = isReturning || pace.isSilent && left > 1 && !places.isEmpty
      let time = min(isShort ? health.pace.shortPatience : settings.timeout, deadline - loop.now)
      isReturning = false
      guard time >= HTTPDNSProvider.shortestAttempt else { break }
      switch await ask(servers[index], asked, for: asking, timeout: time) {
      case .success(let replies): return .success(replies)
      case .failure(let problem):
        failure = health.recordFailure(problem, at: servers[index])
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

  /// Counts questions that are not sent.
  private func refused(
    _ asked: AskedQuestions, _ refusal: UpstreamFailure
  ) -> Result<ProviderReplies, UpstreamFailure> {
    counters.values.refusals += 1
    observer?.wereRefusedHere(asked)
    return .failure(refusal)
  }

  /// Asks one server. Repeats the transfer if the signature may have been refused for its time and the reply corrected
  /// our clock, since not every provider distinguishes that from a wrong key. Each transfer counts against
  /// `requests_per_second`. Where no repeat is left, the refusal says nothing about the account or the name.
  private func ask(
    _ server: ProviderServer, _ asked: AskedQuestions, for asking: any QuestionInFlight, timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    let end = loop.now + timeout
    guard let transport = await server.transport(timeout: timeout) else {
      return .failure(
        health.hasFailed(
          UpstreamFailure(HTTPFailure(.unreachable, ProviderServer.notFound)), at: server, asking, sentAt: loop.now))
    }
    guard end - loop.now >= HTTPDNSProvider.shortestAttempt else {
      return .failure(UpstreamFailure(.noReachableAuthority, "its name was resolved too late", .notAsked))
    }
    // Others may have been sent while the server's name was resolved.
    if let refusal = limits.take() { return refused(asked, refusal) }
    // Compare offsets instead of asking whether this reply changed the clock: of several concurrent refusals, only the
    // first reply changes it.
    let offset = clock.offset
    var sentAt = loop.now
    var result = await transfer(transport, server, asked, for: asking, timeout: end - loop.now)
    if case .failure(let failure) = result, failure.report?.mayBeTheClock == true, clock.offset != offset {
      if end - loop.now >= HTTPDNSProvider.shortestAttempt, limits.mayRepeat() {
        sentAt = loop.now
        result = await transfer(transport, server, asked, for: asking, timeout: end - loop.now)
      } else {
        result = .failure(.wrongTime)
      }
    }
    // The clock has moved once more.
    if case .failure(let failure) = result, failure.report == .notListed, let empty = emptyReplies(asked, server) {
      result = .success(empty)
    }
    switch result {
    case .success(let replies) where replies.hasVerdict: health.hasVerdict(of: server, on: asking, sentAt: sentAt)
    case .success: break
    case .failure(let failure): result = .failure(health.hasFailed(failure, at: server, asking, sentAt: sentAt))
    }
    return result
  }

  private func transfer(
    _ transport: any HTTPTransport, _ server: ProviderServer, _ asked: AskedQuestions, for asking: any QuestionInFlight,
    timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    let begin = loop.now
    health.isSent(to: server, transport, asking)
    let result = await exchange(transport, server, asked, for: asking, timeout: timeout)
    if case .failure(let failure) = result, failure.isCancelled { return result }
    if case .failure(let failure) = result, let cause = failure.cause { counters.values.failures.count(cause) }
    observer?.asked(asked, result, time: loop.now - begin)
    return result
  }

  /// Sends a request and reads the reply. A refusal that may mean an unlisted name is an empty answer, unless it has corrected
  /// the clock.
  private func exchange(
    _ transport: any HTTPTransport, _ server: ProviderServer, _ asked: AskedQuestions, for asking: any QuestionInFlight,
    timeout: Duration
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    if case .batch(let batch) = asked, batch.types.count == 2 { counters.values.pairs += 1 }
    let (request, offset) = (request(asked), clock.offset)
    let begin = loop.preciseNow
    // A transfer is charged in full unless the answer shows its cost, since the provider's accounting is unknown.
    let most = dialect.billing.units(names: asked.nameCount, answers: asked.count)
    let billed = BilledRequest(asking, within: limits, units: most)
    defer { billed.end() }
    let outcome = await transport.send(request, for: billed, timeout: timeout)
    counters.values.transfers += outcome.timesSent
    switch outcome {
    case .failure(let reason):
      // The request may have arrived, and the provider bills what arrives.
      limits.pay(most * reason.timesSent)
      var failure = UpstreamFailure(reason)
      failure.advice = reason.remedy(settings)
      return .failure(failure)
    case .response(let response) where loop.hasSlept(since: begin, waitingFor: timeout):
      limits.pay(most * response.timesSent)
      var failure = UpstreamFailure(HTTPFailure(.timeout, "the machine has slept"))
      failure.cause = .slept
      return .failure(failure)
    case .response(let response):
      counters.values.roundTrips.observe(loop.preciseNow - begin)
      noteDate(of: response, from: server)
      do throws(HTTPDNSFailure) {
        let replies = ProviderReplies(server: server.description, results: try results(asked, response))
        let count = replies.results.count {
          if case .success(let answer) = $0.result { !answer.isNegative } else { false }
        }
        let units = dialect.billing.units(names: asked.nameCount, answers: count)
        limits.pay(units + most * (response.timesSent - 1))
        undecided.answered()
        return .success(replies)
      } catch {
        limits.pay(most * response.timesSent)
        if error.mayBeTheClock { learnTime(from: response, of: server) }
        guard error.isUndecided, clock.offset == offset else { return .failure(failed(error, response)) }
        noteUndecided(response)
        if error == .notListed, let empty = emptyReplies(asked, server) { return .success(empty) }
        if asked.nameCount == 1 {
          let end = loop.now + settings.notListedTTL
          asked.forEachQuestion { refusedAlone.insert($0, until: end, now: loop.now) }
        }
        return .failure(failed(error, response))
      }
    }
  }

  /// Empty answers to all questions of a transfer with one name; nil if it has several, of which each may be the reason. Nil
  /// also where an empty answer is taken at its word: the refusal may as well mean the account.
  private func emptyReplies(_ asked: AskedQuestions, _ server: ProviderServer) -> ProviderReplies? {
    guard asked.nameCount == 1, settings.fallbackOnEmpty else { return nil }
    var replies = ProviderReplies(server: server.description, results: [])
    asked.forEachQuestion { question in
      let answer = HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: true)
      replies.results.append((question, .success(answer)))
    }
    return replies
  }

  /// Warns once if nothing but such refusals has come.
  private func noteUndecided(_ response: HTTPResponse) {
    let code = dialect.errorCode(in: response).map { "\"\($0)\"" }
    guard let line = undecided.refused(because: code ?? "HTTP status \(response.status)", by: settings) else { return }
    note(.warning, line)
  }

  private func noteDate(of response: HTTPResponse, from server: ProviderServer) {
    guard let date = response.date else { return }
    clock.note(date, isAuthenticated: server.isVerified, wallTime: loop.wallTime)
  }

  /// Corrects the clock by a refusal: by the service's own time if the body has it, or by `Date`.
  private func learnTime(from refusal: HTTPResponse, of server: ProviderServer) {
    guard server.isVerified || dialect.learnsTimeInTheClear else { return }
    let stated = dialect.unixTime(in: refusal)
    guard let time = stated ?? refusal.date else { return }
    clock.correct(to: time, isStated: stated != nil, wallTime: loop.wallTime)
  }

  /// The failure that a response reports. A refusal has the service's own error code or the HTTP status, and a remedy.
  private func failed(_ error: HTTPDNSFailure, _ response: HTTPResponse) -> UpstreamFailure {
    var failure = UpstreamFailure(error)
    failure.reason = response.explanation(of: error, code: dialect.errorCode(in: response), settings.kind)
    if error == .unreadable(.mediaType) { failure.kind = "another media type" }
    if error.isRefusal || error.isOfAccount || error.isUndecided { failure.advice = remedy(for: error) }
    return failure
  }

  private func request(_ asked: AskedQuestions) -> HTTPRequest {
    let time = clock.unixTime(wallTime: loop.wallTime)
    if case .batch(let batch) = asked, let batchDialect { return batchDialect.request(for: batch, unixTime: time) }
    return dialect.request(for: asked.first, unixTime: time)
  }

  private func results(
    _ asked: AskedQuestions, _ response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [(question: HTTPDNSQuestion, result: Result<HTTPDNSAnswer, HTTPDNSFailure>)] {
    if case .batch(let batch) = asked, let batchDialect {
      return zip(batch.questions, try batchDialect.answers(to: batch, from: response)).map { ($0, $1) }
    }
    return [(asked.first, .success(try dialect.answer(to: asked.first, from: response)))]
  }

  /// A human-readable remedy. It is the clock if that may be the cause and the reply has not corrected it, as over http
  /// with a dialect that does not learn the time there.
  private func remedy(for reason: HTTPDNSFailure) -> String {
    guard let difference = clock.oddDifference, reason.mayBeTheClock else { return reason.remedy(settings) }
    return "set the machine's clock, which differs from the provider's by \(abs(difference)) s"
  }

  // MARK: Refreshes

  /// For background work: one server, one transfer.
  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    loop.assertCurrent()
    // Several refreshes may have started since it was fit.
    guard limits.hasSpare else {
      let reason = "requests_per_second (\(settings.requestsPerSecond)) is left to clients"
      return .failure(UpstreamFailure(.other, reason, .limit))
    }
    let asking = OwnQuestion(questions[0].name, now: loop.now)
    if traits.families == .one, Set(questions.map(\.type)).count > 1 {
      return await refreshFamiliesApart(questions, deadline: deadline)
    }
    let asked = asked(questions)
    let replies = await askServers(asked, for: asking, deadline: deadline, isLastResort: false, attempts: 1)
    if case .failure(let failure) = replies, failure.consequence.isRemembered {
      // A refusal of several names may concern one of them alone.
      if asked.nameCount == 1 || failure.report?.mayConcernOneName != true { health.refreshHasFailed() }
    }
    return replies.map { replies in
      var answers: [HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>] = [:]
      for question in questions {
        answers[question] = answer(to: question, in: replies) { other in
          other.name == question.name && !questions.contains { $0.name == other.name && $0.type == other.type }
        }
      }
      return answers
    }
  }

  /// Asks for each family in a transfer of its own.
  private func refreshFamiliesApart(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    var answers: [HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>] = [:]
    var arrivals: [(questions: [HTTPDNSQuestion], at: BootInstant)] = []
    for question in questions where answers[question] == nil {
      let together = questions.filter { $0.type == question.type }
      switch await refresh(together, deadline: deadline) {
      case .success(let found): answers.merge(found) { $1 }
      case .failure(let failure): for question in together { answers[question] = .failure(failure) }
      }
      arrivals.append((together, loop.now))
    }
    // Those that came first have become older while the others were asked for.
    for (questions, arrival) in arrivals where loop.now > arrival {
      for question in questions { answers[question] = answers[question]?.map { $0.aged(by: loop.now - arrival) } }
    }
    return .success(answers)
  }

  /// Composes one transfer for all questions. With several names, a question in flight may be asked again, since a
  /// transfer asks for each of its names in each of its families.
  ///
  /// - Precondition: the dialect accepts this many names.
  private func asked(_ questions: [HTTPDNSQuestion]) -> AskedQuestions {
    let isPaired = batchDialect?.families == .both
    let ofClient = questions.count > 1 ? nil : questions[0].clientSubnet
    let subnet = settings.clientSubnet.subnet(for: ofClient)
    guard questions.count > 1 || isPaired else {
      var question = questions[0]
      question.clientSubnet = subnet
      return .one(question)
    }
    var names: [DomainName] = []
    for question in questions where !names.contains(question.name) { names.append(question.name) }
    let types = [RecordType.a, .aaaa].filter { type in isPaired || questions.contains { $0.type == type } }
    return .batch(QuestionBatch(names: names, types: types, clientSubnet: subnet))
  }

  // MARK: The time

  /// Whether it has only servers whose certificates cannot be checked yet. If so, sends the question in the background, since
  /// the response reports the time.
  private func awaitsTime(toAsk question: HTTPDNSQuestion) -> Bool {
    guard !timeRequests.isTimeKnown, !health.servers.isEmpty, health.servers.allSatisfy(\.isVerified) else {
      return false
    }
    health.wasNotAsked()
    if !health.isPausing, timeRequests.take(now: loop.now) { loop.startTask { [self] in await askForTime(question) } }
    return true
  }

  private func askForTime(_ question: HTTPDNSQuestion) async {
    let asking = OwnQuestion(question.name, now: loop.now)
    let before = counters.values.transfers
    for server in health.servers {
      _ = await ask(server, .one(question), for: asking, timeout: settings.timeout)
      if timeRequests.isTimeKnown { break }
    }
    timeRequests.ended(hasReachedServer: counters.values.transfers > before, now: loop.now)
  }
}

extension UpstreamTraits {
  fileprivate init(
    _ settings: Configuration.Provider, _ dialect: any Dialect, _ batchDialect: (any BatchDialect)?
  ) {
    self.init(timeout: settings.timeout)
    trustsAD = settings.trustsAD
    knowsDNSSECFlags = settings.kind.knowsDNSSECFlags
    clientSubnet = settings.clientSubnet
    subnetsPerName = settings.subnetsPerName
    families = batchDialect?.families ?? .wanted
    ambiguity = settings.kind.ambiguity
    let billing = dialect.billing
    if billing.isBilled {
      // Where a transfer has one family, each family of a name is paid for.
      let isApart = families == .one
      refreshPrice = RefreshPrice(
        isBilled: true, perTransfer: billing.unitsPerTransfer, perName: isApart ? 0 : billing.unitsPerName,
        perAnswer: billing.unitsPerAnswer + (isApart ? billing.unitsPerName : 0))
    }
    mostNames = batchDialect?.mostNames ?? 0
  }
}
