// ResolverPursuit.swift -- one question's way: providers in order, LocalDNS beside or after them, the last moment.

import DNSWire
import EventLoop
import Frontend
import HTTPDNS
import MessageCache
import Telemetry
import Upstreams

extension Resolver {
  /// Asks the route's providers in order, then LocalDNS.
  func pursue(_ pursuit: Pursuit) async -> Outcome {
    let (service, route) = (pursuit.service, pursuit.route)
    guard !route.providers.isEmpty else { return await askLocal(pursuit, isFallback: false) }
    if let outcome = await askNetworkFirst(pursuit) { return outcome }
    let deadline = loop.now + ResolverSettings.answerBy
    let candidates = route.providers.map { service.upstreams[$0] }.filter { $0.serves(pursuit.question) }
    // Otherwise one that is down is not asked, but for finding out whether it is back.
    let isLastResort = candidates.count == 1 && !mayFallBack(route) || pursuit.isTrial
    var failed: Outcome?
    var empty: Outcome?
    func take(_ reason: UpstreamFailure, _ outcome: Outcome, _ upstream: any Upstream) {
      pursuit.trace(reason.trail(of: upstream.name))
      guard reason != .notListed else { return }
      note(upstream.name, reason)
      // What keeps LocalDNS out counts, whoever fails after it, and from now on.
      if failed?.failure?.leadsToLocalDNS ?? true { failed = outcome }
      if !reason.leadsToLocalDNS { keepLocalOut(of: pursuit) }
    }
    for (index, upstream) in candidates.enumerated() {
      if pursuit.isDisplaced { return Outcome(result: .failure(.limited(.places)), source: .ourselves) }
      if mayFallBack(route), upstream.awaitsTime(toAsk: pursuit.question) {
        take(.noTime, failure(.noTime, of: upstream), upstream)
        continue
      }
      if let refusal = upstream.refusalOfNewNames(), !isInUse(pursuit) {
        take(refusal, failure(refusal, of: upstream), upstream)
        continue
      }
      // A provider whose servers are all silent must leave the next ones their time.
      let share = max(upstream.timeout, (deadline - loop.now) / (candidates.count - index))
      let outcome = await ask(
        upstream, pursuit, route, deadline: min(deadline, loop.now + share),
        isLastResort: isLastResort)
      // Whoever has lost the place says nothing about the provider.
      if pursuit.isDisplaced, outcome.failure != nil {
        return Outcome(result: .failure(.limited(.places)), source: .ourselves)
      }
      switch outcome.result {
      case .success(let answer) where answer.isAmbiguous:
        empty = empty ?? outcome
        pursuit.trace("\(upstream.name): nothing, which may mean that the name is not in its list")
      case .success: return await afterDenial(pursuit, outcome)
      case .failure(let reason):
        take(reason, outcome, upstream)
        guard !reason.isBogus else { return outcome }
      }
    }
    if let failed, failed.failure?.leadsToLocalDNS == false { return failed }
    return await withoutProvider(pursuit, route, failed?.failure, empty, isCarried: !candidates.isEmpty)
  }

  private func ask(
    _ upstream: any Upstream, _ pursuit: Pursuit, _ route: Route, deadline: BootInstant, isLastResort: Bool
  ) async -> Outcome {
    var question = pursuit.question
    question.clientSubnet = upstream.subnet(for: pursuit.question.clientSubnet)
    let result = await upstream.ask(
      question, deadline: deadline, isLastResort: isLastResort, isWanted: { !pursuit.isDisplaced })
    switch result {
    case .success(let reply):
      let source = AnswerSource.provider(upstream.name, server: reply.server)
      keepAlong(reply.others, of: pursuit, from: source, route, trustsAD: upstream.trustsAD)
      var outcome = finish(reply.answer, from: source, pursuit, route, trustsAD: upstream.trustsAD)
      // The scope of another subnet than the client's says nothing about the client's.
      if question.clientSubnet != pursuit.question.clientSubnet || question.clientSubnet == nil {
        outcome.dropScope()
      }
      return outcome
    case .failure(let reason): return failure(reason, of: upstream)
    }
  }

  /// What comes of a provider none of whose servers has answered.
  private func failure(_ reason: UpstreamFailure, of upstream: any Upstream) -> Outcome {
    Outcome(result: .failure(reason), source: .provider(upstream.name, server: ""))
  }

  /// Keeps answers to questions that were not asked but came along: of the same names' other address family, say.
  private func keepAlong(
    _ others: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)], of pursuit: Pursuit,
    from source: AnswerSource, _ route: Route, trustsAD: Bool
  ) {
    for other in others where !other.answer.isEmptyAmbiguous {
      var question = pursuit.question
      question.name = other.question.name
      question.type = other.question.type
      var scope = pursuit.scope
      scope.type = question.type.rawValue
      let sibling = Pursuit(
        key: questionKey(question, pursuit.route, pursuit.subnet), question: question, pursuit.service, pursuit.route,
        scope: scope, subnet: pursuit.subnet, domain: pursuit.domain, epoch: pursuit.epoch, startedAt: loop.now)
      inherit(sibling)
      let outcome = finish(other.answer, from: source, sibling, route, trustsAD: trustsAD)
      // Below a search domain the network has a say as well, and this would answer for every type.
      if route.isSearched, outcome.isDenial { continue }
      if case .success(let answer) = outcome.result { keep(answer, of: sibling, from: source) }
    }
  }

  /// No provider has an answer: LocalDNS where no provider was reached, the empty answer of a dialect that cannot say more,
  /// or NODATA for a type that nobody serves (never NXDOMAIN or SERVFAIL, over which browsers stall).
  ///
  /// - Parameter isCarried: whether there is a provider that serves the name and the type.
  private func withoutProvider(
    _ pursuit: Pursuit, _ route: Route, _ failure: UpstreamFailure?, _ empty: Outcome?, isCarried: Bool
  ) async -> Outcome {
    // SVCB and HTTPS lead to addresses and to other names: the network must not decide about those beside a provider that
    // does about A and AAAA (docs/adr/0025-types-that-no-provider-carries.md).
    let isReserved = !isCarried && (pursuit.question.type == .svcb || pursuit.question.type == .https)
    let mayAsk = mayFallBack(route) && !isReserved || failure == nil && maySearch(route)
    if mayAsk, !pursuit.hasAskedLocal, !pursuit.isDisplaced, !isSparing(pursuit) {
      let outcome = await askLocal(pursuit, isFallback: true)
      if case .success = outcome.result { return outcome }
    }
    let failure = failure ?? unaskable(pursuit, route)
    let lastResort = empty ?? (failure == nil ? unserved(pursuit, route) : nil)
    guard pursuit.isAskingLocal else {
      return lastResort ?? Outcome(result: .failure(failure ?? .unserved), source: .ourselves)
    }
    // LocalDNS, asked beside the providers, may know better still.
    pursuit.held = pursuit.held ?? lastResort
    return Outcome(result: .failure(failure ?? .unserved), source: .ourselves)
  }

  /// Why nobody was asked where providers carry the type, but not for a name with such octets: it may well have data.
  private func unaskable(_ pursuit: Pursuit, _ route: Route) -> UpstreamFailure? {
    let providers = route.providers.map { pursuit.service.upstreams[$0] }
    var plain = pursuit.question
    plain.name = Resolver.plainName
    guard !providers.contains(where: { $0.serves(pursuit.question) }), providers.contains(where: { $0.serves(plain) })
    else { return nil }
    return .unaskable
  }

  /// A name that every dialect can carry.
  private static let plainName = DomainName(unchecked: [1, 97, 0])

  /// NODATA with the reason.
  private func unserved(_ pursuit: Pursuit, _ route: Route) -> Outcome {
    let answer = AnswerPolicy(ttl: route.ttl).negative(
      .noError, pursuit.question, chain: [], authorities: [], extendedError: .notSupported)
    return Outcome(result: answer.map { .success($0) } ?? .failure(.tooLong), source: .ourselves)
  }

  /// Asks LocalDNS. Names of the network do not exist where there is none.
  func askLocal(_ pursuit: Pursuit, isFallback: Bool) async -> Outcome {
    let route = pursuit.route
    pursuit.hasAskedLocal = true
    guard let local, local.hasServers(route.localServers) else {
      // What the network has said before is worth more than that it says nothing at present.
      guard route.isNetwork, !pursuit.isRefresh else {
        return Outcome(result: .failure(.noServer), source: .ourselves)
      }
      var answer = AnswerPolicy(ttl: route.ttl).negative(.nxDomain, pursuit.question, chain: [], authorities: [])
      // Not to be believed any more when a resolver is there, which may be in a moment.
      answer?.lifetime = 0
      return Outcome(result: answer.map { .success($0) } ?? .failure(.tooLong), source: .ourselves)
    }
    var question = pursuit.question
    question.clientSubnet = nil
    pursuit.isAskingLocal = true
    counters.localQuestions += 1
    var began: BootInstant
    var result: Result<UpstreamAnswer, UpstreamFailure>
    repeat {
      began = loop.preciseNow
      let rest = pursuit.startedAt + ResolverSettings.answerBy - loop.now
      pursuit.network = network.number
      result = await local.ask(
        question, route.localServers, timeout: isFallback ? min(settings.localTimeout, rest) : rest)
      // What was asked of another network's resolver says nothing here.
    } while pursuit.network != network.number && loop.now < pursuit.startedAt + ResolverSettings.answerBy
    pursuit.isAskingLocal = false
    if pursuit.network != network.number { result = .failure(.noAnswerInTime) }
    if isFallback { names.wentToLocalDNS(question, result) }
    switch result {
    case .success(let reply):
      counters.localRoundTrips.observe(loop.preciseNow - began)
      if isFallback { counters.fallbacks += 1 }
      return finish(confined(reply.answer, pursuit), from: .localDNS, pursuit, route, isFallback: isFallback)
    case .failure(let reason):
      counters.localFailures += 1
      note("localdns", reason)
      pursuit.trace(reason.trail(of: "LocalDNS"))
      return Outcome(result: .failure(reason), source: .ourselves)
    }
  }

  func finish(
    _ answer: HTTPDNSAnswer, from source: AnswerSource, _ pursuit: Pursuit, _ route: Route, trustsAD: Bool = false,
    isFallback: Bool = false
  ) -> Outcome {
    var answer = answer
    if source == .localDNS { answer.dropRootSOA(of: pursuit.question.name) }
    guard answer.responseCode == .noError || answer.responseCode == .nxDomain else {
      let failure = UpstreamFailure.refused(answer.responseCode, by: source.server, answer.extendedError)
      return Outcome(result: .failure(failure), source: source)
    }
    // Below its search domain a network may have private addresses.
    let isTheirs = route.isSearched && source == .localDNS
    let policy = AnswerPolicy(
      ttl: route.ttl, isFallback: isFallback, trustsAD: trustsAD,
      rebindFilter: route.filtersPrivate && !isTheirs ? settings.rebindFilter : nil)
    guard let finished = policy.finish(answer, to: pursuit.question) else {
      return Outcome(result: .failure(.tooLong), source: source)
    }
    return Outcome(result: .success(withoutDenial(of: finished, pursuit, policy)), source: source)
  }

  /// Where addresses of one family are kept, the name exists: NXDOMAIN for the other family can only mean NODATA.
  private func withoutDenial(of answer: FinishedAnswer, _ pursuit: Pursuit, _ policy: AnswerPolicy) -> FinishedAnswer {
    let type = pursuit.question.type
    guard answer.deniesName, settings.cacheEnabled, type == .a || type == .aaaa else { return answer }
    var scope = pursuit.scope
    scope.type = (type == .a ? RecordType.aaaa : .a).rawValue
    let now = loop.now.nanoseconds
    let isThere = [pursuit.subnet, QueryClientSubnet()].contains { subnet in
      let known = withKey(pursuit.question.name, scope, subnet: subnet) { cache.peek($0, now: now) }
      return known.map { $0.answers > 0 && $0.responseCode == .noError } ?? false
    }
    guard isThere else { return answer }
    return policy.negative(.noError, pursuit.question, chain: [], authorities: []) ?? answer
  }

  func mayFallBack(_ route: Route) -> Bool {
    route.fallsBack && (local?.hasServers(route.localServers) ?? false)
  }

  func mayAskLocalAsWell(_ pursuit: Pursuit) -> Bool {
    let route = pursuit.route
    return !pursuit.isDecided && !route.providers.isEmpty && mayFallBack(route)
  }

  /// Sets the timer for what comes first.
  func setTimer(_ pursuit: Pursuit) {
    var next = pursuit.startedAt + ResolverSettings.answerBy
    if !pursuit.hasAskedLocal, mayAskLocalAsWell(pursuit) {
      next = min(next, pursuit.startedAt + ResolverSettings.localDNSDelay)
    }
    if pursuit.held != nil, let end = pursuit.heldUntil { next = min(next, end) }
    if let stale = pursuit.staleAt { next = min(next, stale) }
    pursuit.timer?.cancel()
    pursuit.timer = loop.schedule(at: next) { [unowned self] in
      assumeIsolated { $0.timeHasCome(pursuit) }
    }
  }

  /// What time brings: LocalDNS beside a slow provider, its answer or stale data when the provider is out of time, the last
  /// moment.
  private func timeHasCome(_ pursuit: Pursuit) {
    guard !pursuit.isAnswered, !pursuit.isRefresh else { return }
    let now = loop.now
    let end = pursuit.startedAt + ResolverSettings.answerBy
    var staleIsDue = pursuit.staleAt.map { $0 <= now } ?? false
    if staleIsDue, staleData(pursuit.question, pursuit.route, pursuit.subnet) == nil {
      // It has gone meanwhile: there is nothing better to do than to wait.
      pursuit.staleAt = nil
      staleIsDue = false
    }
    if let held = pursuit.held, staleIsDue || (pursuit.heldUntil ?? end) <= now { return deliver(pursuit, held) }
    guard !staleIsDue, now < end else {
      return deliver(pursuit, Outcome(result: .failure(.noAnswerInTime), source: .ourselves))
    }
    if !pursuit.hasAskedLocal, mayAskLocalAsWell(pursuit),
      now >= pursuit.startedAt + ResolverSettings.localDNSDelay
    {
      pursuit.hasAskedLocal = true
      pursuit.attempts += 1
      Task(executorPreference: loop) { await self.askLocalAsWell(pursuit) }
    }
    setTimer(pursuit)
  }

  private func askLocalAsWell(_ pursuit: Pursuit) async {
    let outcome = await askLocal(pursuit, isFallback: true)
    pursuit.attempts -= 1
    // The provider's answer is still preferred while its attempt has time.
    let providerEnd = pursuit.startedAt + min(longestTimeout(pursuit), ResolverSettings.answerBy)
    guard case .success = outcome.result, pursuit.attempts > 0, loop.now < providerEnd, !pursuit.isAnswered,
      !pursuit.isDecided
    else {
      return settle(pursuit, outcome)
    }
    pursuit.held = outcome
    pursuit.heldUntil = providerEnd
    setTimer(pursuit)
  }

  private func longestTimeout(_ pursuit: Pursuit) -> Duration {
    pursuit.route.providers.map { pursuit.service.upstreams[$0].timeout }.max() ?? .zero
  }

  /// An attempt has ended: answers everybody, or leaves that to the attempts that still run.
  func settle(_ pursuit: Pursuit, _ outcome: Outcome) {
    switch outcome.result {
    // A limit of ours never leads to LocalDNS, and what a provider has said is final.
    case .success where outcome.source == .localDNS && pursuit.isDecided:
      guard pursuit.attempts == 0 else {
        mayNeedLocalAgain(pursuit)
        break
      }
      deliver(pursuit, pursuit.held ?? Outcome(result: .failure(.limitedBefore), source: .ourselves))
    case .success: deliver(pursuit, outcome)
    case .failure(let reason) where outcome.source.isProvider && !reason.leadsToLocalDNS:
      keepLocalOut(of: pursuit)
      if reason.isFinal || pursuit.attempts == 0 { deliver(pursuit, outcome) }
    case .failure where pursuit.attempts > 0: break
    case .failure: deliver(pursuit, pursuit.held ?? outcome)
    }
    if pursuit.attempts == 0 { leave(pursuit) }
  }

  /// A provider was reached, or a limit of ours stands before it: LocalDNS says nothing any more.
  private func keepLocalOut(of pursuit: Pursuit) {
    pursuit.isDecided = true
    guard pursuit.held?.source == .localDNS else { return }
    pursuit.held = nil
    mayNeedLocalAgain(pursuit)
  }

  /// Below a search domain the next provider's NXDOMAIN gives LocalDNS a say after all, whose answer was dropped.
  private func mayNeedLocalAgain(_ pursuit: Pursuit) {
    if maySearch(pursuit.route) { pursuit.hasAskedLocal = false }
  }

  /// What LocalDNS says late must not take the place of what a provider has said.
  private func isSaidAlready(_ pursuit: Pursuit) -> Bool {
    pursuit.hasAnswer || pursuit.isDecided || kept(pursuit.question, pursuit.key, pursuit.route, pursuit.subnet) != nil
  }

  /// Answers everybody who waits, with what is at hand: the program ends.
  package func giveUp() {
    for pursuit in Array(inFlight.values) {
      deliver(pursuit, pursuit.held ?? Outcome(result: .failure(.ending), source: .ourselves))
    }
  }

  /// Keeps the answer and gives it to everybody who waits; an answer that comes after that is only kept.
  func deliver(_ pursuit: Pursuit, _ outcome: Outcome) {
    var given = outcome.result
    switch outcome.result {
    case .success(let answer):
      failures.succeeded(pursuit.key)
      if pursuit.isAnswered, outcome.source == .localDNS, isSaidAlready(pursuit) { return }
      pursuit.hasAnswer = true
      keep(answer, of: pursuit, from: outcome.source)
    case .failure(let reason):
      guard !pursuit.isAnswered else {
        if outcome.source.isProvider, reason.isFinal { forgetLocalAnswer(of: pursuit, reason) }
        return
      }
      if pursuit.isRefresh { goOnServingStale(pursuit, reason) } else { given = afterFailure(pursuit, reason) }
    }
    guard !pursuit.isAnswered else { return }
    pursuit.isAnswered = true
    pursuit.timer?.cancel()
    pursuit.timer = nil
    pursuit.held = nil
    if inFlight[pursuit.key] === pursuit { inFlight[pursuit.key] = nil }
    answer(pursuit.slots, of: pursuit.domain, given, outcome.source)
    var resolved = ResolvedAnswer(outcome)
    resolved.trail = pursuit.trail
    for continuation in pursuit.continuations { continuation.resume(returning: resolved) }
    pursuit.slots = []
    pursuit.continuations = []
  }
}

extension HTTPDNSAnswer {
  /// An SOA of the root becomes one of the name: a resolver behind us may take the root's as the word that the whole top
  /// level domain does not exist, which is not the network's to say.
  fileprivate mutating func dropRootSOA(of name: DomainName) {
    guard !name.isRoot, authorities.contains(where: { $0.type == .soa && $0.owner.isRoot }) else { return }
    authorities = authorities.filter { $0.type == .soa && $0.owner.isRoot }
    for index in authorities.indices { authorities[index].owner = name }
  }
}

extension ResolvedAnswer {
  init(_ outcome: Outcome) {
    switch outcome.result {
    case .success(let answer):
      self.init(response: answer.response, lifetime: answer.lifetime, source: outcome.source)
    case .failure(let reason):
      self.init(
        response: ComposedResponse(.servFail, extendedError: reason.extendedError), lifetime: 0, source: outcome.source,
        failure: reason.explanation)
    }
  }
}
