// UpstreamOrder.swift -- the upstreams that an attempt asks: the providers in order, and LocalDNS after them.
//
// Resolver's loop only. Fetch.swift asks LocalDNS beside a slow provider and ends the wait in time.

import DNSWire
import EventLoop
import Frontend
import HTTPDNS
import MessageCache
import Telemetry
import Upstreams

extension Resolver {
  /// Asks the fleet, the providers of the route in order, then LocalDNS.
  func askUpstreams(_ fetch: Fetch) async -> FetchResult {
    guard !fetch.route.providers.isEmpty else { return await askLocal(fetch, isFallback: false) }
    if let result = await askNetworkFirst(fetch) { return result }
    return fleet == nil ? await askProviders(fetch) : await askFleet(fetch)
  }

  /// Asks the providers of the route in order, then LocalDNS.
  func askProviders(_ fetch: Fetch) async -> FetchResult {
    let route = fetch.route
    let deadline = loop.now + ResolverSettings.answerBy
    let candidates = route.providers.map { fetch.configuration.upstreams[$0] }.filter { $0.serves(fetch.question) }
    // A provider that is down is asked only if there is no other upstream, or as a probe for its recovery.
    let isLastResort = candidates.count == 1 && !mayFallBack(route) || fetch.isTrial
    var failed: FetchResult?
    var empty: FetchResult?
    func take(_ reason: UpstreamFailure, _ result: FetchResult, _ upstream: any Upstream) {
      fetch.trace(reason.trail(of: upstream.name))
      guard !reason.isNotListed else { return }
      note(upstream.name, reason)
      // A failure that excludes LocalDNS counts from now on, whatever later providers fail with.
      if failed?.failure?.leadsToLocalDNS ?? true { failed = result }
      if !reason.leadsToLocalDNS { keepLocalOut(of: fetch) }
    }
    for (index, upstream) in candidates.enumerated() {
      if fetch.isDisplaced { return .failure(.limited(.places)) }
      if mayFallBack(route), upstream.awaitsTime(toAsk: fetch.question) {
        take(.noTime, failure(.noTime, of: upstream), upstream)
        continue
      }
      if let refusal = upstream.refusalOfNewNames(), !isInUse(fetch) {
        take(refusal, failure(refusal, of: upstream), upstream)
        continue
      }
      // A provider whose servers are all silent must leave time for the next ones.
      let share = max(upstream.timeout, (deadline - loop.now) / (candidates.count - index))
      let result = await ask(upstream, fetch, deadline: min(deadline, loop.now + share), isLastResort: isLastResort)
      // The failure of a displaced fetch does not count against the provider.
      if fetch.isDisplaced, result.failure != nil { return .failure(.limited(.places)) }
      switch result.result {
      case .success(let answer) where answer.isAmbiguous:
        empty = empty ?? result
        fetch.trace(TrailStep(upstream.name, ResolvedAnswer.ambiguity))
      case .success: return await afterNXDOMAIN(fetch, result)
      case .failure(let reason):
        take(reason, result, upstream)
        guard !reason.isBogus else { return result }
      }
    }
    if let failed, failed.failure?.leadsToLocalDNS == false { return failed }
    return await withoutProvider(fetch, failure: failed?.failure, empty: empty, isCarried: !candidates.isEmpty)
  }

  private func ask(
    _ upstream: any Upstream, _ fetch: Fetch, deadline: BootInstant, isLastResort: Bool
  ) async -> FetchResult {
    var question = fetch.question
    question.clientSubnet = upstream.subnet(for: fetch.question.clientSubnet)
    let sentAt = loop.now
    let result = await upstream.ask(
      question, deadline: deadline, isLastResort: isLastResort, isWanted: { !fetch.isDisplaced })
    switch result {
    case .success(let reply):
      let source = AnswerSource.provider(upstream.name, server: reply.server)
      insertOthers(reply.others, of: fetch, from: upstream, source, sentAt: sentAt)
      let result = finish(reply.answer, from: upstream, source, to: fetch.asked)
      share(reply.answer, result.answer, to: fetch.asked, from: upstream, sentAt: sentAt)
      return result
    case .failure(let reason): return failure(reason, of: upstream)
    }
  }

  /// The result if none of a provider's servers has answered.
  private func failure(_ reason: UpstreamFailure, of upstream: any Upstream) -> FetchResult {
    FetchResult(result: .failure(reason), source: .provider(upstream.name, server: ""))
  }

  /// Stores the answers to other questions in the same reply, such as those of the other address family.
  private func insertOthers(
    _ others: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)], of fetch: Fetch, from upstream: any Upstream,
    _ source: AnswerSource, sentAt: BootInstant
  ) {
    for other in others where !other.answer.isEmptyAmbiguous {
      var question = fetch.question
      question.name = other.question.name
      question.type = other.question.type
      let asked = store.question(question, fetch.configuration, fetch.route, subnet: fetch.asked.subnet)
      let result = finish(other.answer, from: source, to: asked, trustsAD: upstream.trustsAD)
      guard let answer = result.answer else { continue }
      share(other.answer, answer, to: asked, from: upstream, sentAt: sentAt)
      // Below a search domain LocalDNS counts as well, and NXDOMAIN would answer for every type.
      if fetch.route.isSearched, answer.isNameError { continue }
      var origin = fetch.origin(source)
      (origin.heat, origin.hits) = store.inheritance(asked, now: loop.now) ?? (0, 0)
      insert(answer, to: asked, origin)
    }
  }

  /// The result without a provider's answer: LocalDNS's if no provider was reached, the empty answer of a dialect that
  /// cannot say more, or NODATA for a type that no provider serves (NXDOMAIN or SERVFAIL would stall browsers).
  ///
  /// - Parameter isCarried: whether a provider serves the name and the type.
  private func withoutProvider(
    _ fetch: Fetch, failure: UpstreamFailure?, empty: FetchResult?, isCarried: Bool
  ) async -> FetchResult {
    let route = fetch.route
    // SVCB and HTTPS lead to addresses and to other names: the network must not decide about these if a provider
    // decides about A and AAAA (docs/adr/0025-types-that-no-provider-carries.md).
    let isReserved = !isCarried && (fetch.question.type == .svcb || fetch.question.type == .https)
    let mayAsk = mayFallBack(route) && !isReserved || failure == nil && maySearch(route)
    if mayAsk, !fetch.hasAskedLocal, !fetch.isDisplaced, !isFreshRefresh(fetch) {
      let result = await askLocal(fetch, isFallback: true)
      if result.answer != nil { return result }
    }
    let failure = failure ?? unaskable(fetch)
    let lastResort = empty ?? (failure == nil ? unserved(fetch) : nil)
    guard fetch.isAskingLocal else { return lastResort ?? .failure(failure ?? .unserved) }
    // LocalDNS, which is asked beside the providers, may have a better answer.
    fetch.held = fetch.held ?? lastResort
    return .failure(failure ?? .unserved)
  }

  /// Whether a refresh would replace a provider's fresh answer by LocalDNS's.
  private func isFreshRefresh(_ fetch: Fetch) -> Bool {
    fetch.isRefresh && store.freshAnswer(to: fetch.asked, now: loop.now) != nil
  }

  /// The failure if providers serve the type, but no name with such octets: the name may well have data.
  private func unaskable(_ fetch: Fetch) -> UpstreamFailure? {
    let providers = fetch.route.providers.map { fetch.configuration.upstreams[$0] }
    var plain = fetch.question
    plain.name = Resolver.plainName
    guard !providers.contains(where: { $0.serves(fetch.question) }), providers.contains(where: { $0.serves(plain) })
    else { return nil }
    return .unaskable
  }

  /// A name that every dialect can carry.
  private static let plainName = DomainName(unchecked: [1, 97, 0])

  /// NODATA with the reason.
  private func unserved(_ fetch: Fetch) -> FetchResult {
    ownAnswer(
      AnswerPolicy(ttl: fetch.route.ttl).negative(
        .noError, fetch.question, chain: [], authorities: [], extendedError: .notSupported))
  }

  private func ownAnswer(_ answer: FinishedAnswer?) -> FetchResult {
    FetchResult(result: answer.map { .success($0) } ?? .failure(.tooLong), source: .ourselves)
  }

  /// Asks LocalDNS. Without LocalDNS the network's own names do not exist.
  func askLocal(_ fetch: Fetch, isFallback: Bool) async -> FetchResult {
    let route = fetch.route
    fetch.hasAskedLocal = true
    guard let local, local.hasServers(route.localServers) else {
      // An earlier answer of the network is worth more than the current lack of one.
      guard route.isNetwork, !fetch.isRefresh else { return .failure(.noServer) }
      var answer = AnswerPolicy(ttl: route.ttl).negative(.nxDomain, fetch.question, chain: [], authorities: [])
      // Not cached: the network may announce a resolver at any moment.
      answer?.lifetime = 0
      return ownAnswer(answer)
    }
    var question = fetch.question
    question.clientSubnet = nil
    fetch.isAskingLocal = true
    counters.localQuestions += 1
    var began: BootInstant
    var result: Result<UpstreamAnswer, UpstreamFailure>
    repeat {
      began = loop.preciseNow
      let rest = fetch.end - loop.now
      fetch.network = network.number
      result = await local.ask(
        question, route.localServers, timeout: isFallback ? min(settings.localTimeout, rest) : rest)
      // An answer of another network's resolver does not count here.
    } while fetch.network != network.number && loop.now < fetch.end
    fetch.isAskingLocal = false
    if fetch.network != network.number { result = .failure(.noAnswerInTime) }
    if isFallback { names.wentToLocalDNS(question, result) }
    switch result {
    case .success(let reply):
      counters.localRoundTrips.observe(loop.preciseNow - began)
      if isFallback { counters.fallbacks += 1 }
      return finish(
        confined(reply.answer, fetch), from: .localDNS(server: reply.server), to: fetch.asked, isFallback: isFallback)
    case .failure(let reason):
      counters.localFailures += 1
      note("localdns", reason)
      fetch.trace(reason.trail(of: "LocalDNS"))
      return .failure(reason)
    }
  }

  /// Composes the answer of a provider.
  func finish(
    _ answer: HTTPDNSAnswer, from upstream: any Upstream, _ source: AnswerSource, to asked: ResolverQuestion
  ) -> FetchResult {
    var result = finish(answer, from: source, to: asked, trustsAD: upstream.trustsAD)
    // The scope of a subnet other than the client's does not apply to the client.
    let sent = upstream.subnet(for: asked.question.clientSubnet)
    if sent == nil || sent != asked.question.clientSubnet { result.dropScope() }
    return result
  }

  private func finish(
    _ answer: HTTPDNSAnswer, from source: AnswerSource, to asked: ResolverQuestion, trustsAD: Bool = false,
    isFallback: Bool = false
  ) -> FetchResult {
    let (question, route) = (asked.question, asked.route)
    var answer = answer
    if source.isLocalDNS { answer.dropRootSOA(of: question.name) }
    guard answer.responseCode == .noError || answer.responseCode == .nxDomain else {
      let failure = UpstreamFailure.refused(answer.responseCode, by: source.server, answer.extendedError)
      return FetchResult(result: .failure(failure), source: source)
    }
    // Below its search domain a network may use private addresses.
    let isOwnName = route.isSearched && source.isLocalDNS
    let policy = AnswerPolicy(
      ttl: route.ttl, isFallback: isFallback, trustsAD: trustsAD,
      rebindFilter: route.filtersPrivate && !isOwnName ? settings.rebindFilter : nil)
    guard let finished = policy.finish(answer, to: question) else {
      return FetchResult(result: .failure(.tooLong), source: source)
    }
    return FetchResult(result: .success(withoutContradiction(finished, asked, policy)), source: source)
  }

  /// The name exists if addresses of one family are cached: NXDOMAIN for the other family can only mean NODATA.
  func withoutContradiction(
    _ answer: FinishedAnswer, _ asked: ResolverQuestion, _ policy: AnswerPolicy
  ) -> FinishedAnswer {
    let type = asked.question.type
    guard answer.isNameError, type == .a || type == .aaaa,
      store.hasAddresses(asked, type == .a ? .aaaa : .a, now: loop.now)
    else { return answer }
    return policy.negative(.noError, asked.question, chain: [], authorities: []) ?? answer
  }

  func mayFallBack(_ route: Route) -> Bool {
    route.fallsBack && (local?.hasServers(route.localServers) ?? false)
  }
}

extension HTTPDNSAnswer {
  /// An SOA of the root becomes one of the name: a resolver behind this daemon may conclude from the root's that the
  /// top-level domain does not exist, which the network cannot know.
  fileprivate mutating func dropRootSOA(of name: DomainName) {
    guard !name.isRoot, authorities.contains(where: { $0.type == .soa && $0.owner.isRoot }) else { return }
    authorities = authorities.filter { $0.type == .soa && $0.owner.isRoot }
    for index in authorities.indices { authorities[index].owner = name }
  }
}
