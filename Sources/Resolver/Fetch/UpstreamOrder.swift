// UpstreamOrder.swift -- the upstreams that an attempt asks: the providers in order, and LocalDNS after them.
//
// An attempt asks one upstream after the other, until one has an answer or a failure that ends it:
//
// 1. LocalDNS first, below a search domain of the network, if the operator wants that or if the providers have just said
//    NXDOMAIN (LocalDNSOrder.swift). Its answer counts unless it is NXDOMAIN; otherwise the providers have their turn,
//    unless they have just said NXDOMAIN. On a route without providers LocalDNS is the only upstream.
// 2. The store of the fleet (ResolverFleet.swift): another daemon's answer, or this daemon waits for one that is asking.
// 3. The providers of the route that serve the question, in their order. One is passed over if it gave no verdict on this
//    question a moment ago (`UpstreamMemory`), if its certificates cannot be checked yet and LocalDNS may answer, or if its
//    last units are for names in use and this one is not. Each has its own timeout or its share of the time that is left,
//    whichever is longer; the last one waits for a server that can be reached, if LocalDNS may not answer.
// 4. LocalDNS, if the route falls back and no provider has said anything about the name: none serves the question, or each
//    one failed in a way that leads on (`Consequence`), does not list the name, or gave an empty answer that may mean that.
//    Not for SVCB and HTTPS that no provider serves, and not to refresh what is still fresh. Below a search domain LocalDNS is
//    asked without fallback and for every type, if no provider failed.
// 5. An answer without an upstream: a provider's empty answer that may mean "not in the list", NODATA for a type that no
//    provider serves, NXDOMAIN for a name of the network if there is no LocalDNS. Otherwise the failure.
//
// A provider's answer ends the attempt, except an empty one that may mean "not in the list"; so does its verdict that DNSSEC
// validation failed. NXDOMAIN below a search domain lets LocalDNS answer as well. On a network with NAT64, a result without
// AAAA records gets those that are made of the name's A records (DNS64.swift).
//
// Several attempts of one question may run side by side: FetchState.swift decides when the next provider (from 3 on) or
// LocalDNS alone is asked beside a slow provider, and whose answer is given. They share what has been asked: a provider that
// one has taken is not asked by another, except by an attempt that a repeated query starts. FetchEnd.swift stores the result
// and answers the clients.
//
// Resolver's loop only. Everything may have changed after an `await`: another attempt may have answered the clients, the
// question may have lost its place (`isDisplaced`), and a reload may have replaced the configuration. The question keeps the
// one that it began with.

import BusyNames
import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Telemetry
import Upstreams

extension Resolver {
  /// Asks the fleet, the providers of the route in order, then LocalDNS.
  func askUpstreams(_ fetch: Fetch) async -> FetchResult {
    guard !fetch.route.providers.isEmpty else { return await localDNS.ask(fetch, isFallback: false) }
    if let result = await localDNS.askFirst(fetch) { return result }
    return fleet == nil ? await askProviders(fetch) : await askFleet(fetch)
  }

  /// Asks the providers of the route that this fetch has not asked yet, in order, then LocalDNS.
  ///
  /// The next provider is asked when the one before has given no verdict, and beside it when that has been silent
  /// (`FetchState`). What the fetch knows of failures and empty answers is common to all that run side by side.
  func askProviders(_ fetch: Fetch) async -> FetchResult {
    let deadline = loop.now + ResolverSettings.answerBy
    while let (index, left) = fetch.takeProvider() {
      if fetch.state.isDisplaced { return .failure(.limited(.places)) }
      let upstream = fetch.configuration.upstreams[index]
      if let reason = reasonNotToAsk(upstream, fetch) {
        note(upstream.name, reason)
        take(.failure(reason, of: upstream), upstream, of: fetch)
        continue
      }
      if let reason = memory.reasonNotToAsk(fetch.asked, at: index, fetch.domain, now: loop.now) {
        take(.failure(reason, of: upstream), upstream, of: fetch)
        guard !reason.isBogus else { return .failure(reason, of: upstream) }
        continue
      }
      // A provider whose servers are all silent must leave time for the next ones.
      let share = max(upstream.timeout, (deadline - loop.now) / left)
      let isLastResort = left == 1 && !localDNS.mayFallBack(fetch.route)
      fetch.state.providerStarted()
      beginPatience(fetch, for: upstream)
      let sentAt = loop.now
      let result = await ask(upstream, fetch, deadline: min(deadline, loop.now + share), isLastResort: isLastResort)
      fetch.state.providerStopped()
      // The failure of a displaced fetch does not count against the provider.
      if fetch.state.isDisplaced, result.failure != nil { return .failure(.limited(.places)) }
      switch result.result {
      case .success(let answer) where answer.isAmbiguous:
        fetch.state.noteEmpty(result)
        fetch.trace(TrailStep(upstream.name, upstream.traits.ambiguity))
      case .success:
        memory.succeeded(fetch.asked, at: index)
        return await localDNS.afterNXDOMAIN(fetch, result)
      // The transfer's place was needed.
      case .failure(let reason) where fetch.state.isAnswered && reason.consequence == .ours: return result
      case .failure(let reason):
        memory.failed(reason, fetch.asked, at: index, sentAt: sentAt, now: loop.now)
        if !reason.isNotListed { note(upstream.name, reason) }
        take(result, upstream, of: fetch)
        guard !reason.isBogus else { return result }
      }
    }
    switch fetch.state.afterProviders(hasSeveral: fetch.route.providers.count > 1) {
    case .result(let result): return result
    case .withoutProvider(let failure, let empty): return await withoutProvider(fetch, failure: failure, empty: empty)
    }
  }

  /// Why a provider is not asked: the time for its certificates is not known, or its units are reserved.
  private func reasonNotToAsk(_ upstream: any Upstream, _ fetch: Fetch) -> UpstreamFailure? {
    upstream.reasonToSkip(fetch.question, mayFallBack: localDNS.mayFallBack(fetch.route)) { isInUse(fetch) }
  }

  /// Takes a failure of one provider into account.
  private func take(_ result: FetchResult, _ upstream: any Upstream, of fetch: Fetch) {
    guard let reason = result.failure else { return }
    fetch.trace(reason.trail(of: upstream.name))
    if !reason.isNotListed { fetch.state.providerFailed(result, isSearched: localDNS.maySearch(fetch.route)) }
  }

  private func ask(
    _ upstream: any Upstream, _ fetch: Fetch, deadline: BootInstant, isLastResort: Bool
  ) async -> FetchResult {
    var question = fetch.question
    question.clientSubnet = upstream.subnet(for: fetch.question.clientSubnet)
    let sentAt = loop.now
    let result = await upstream.ask(question, for: fetch, deadline: deadline, isLastResort: isLastResort)
    switch result {
    case .success(let reply):
      let source = AnswerSource.provider(upstream.name, server: reply.server)
      insertOthers(reply.others, of: fetch, from: upstream, source, sentAt: sentAt)
      let result = composer.finish(reply.answer, from: upstream, source, to: fetch.asked)
      fleet?.share(reply.answer, result.answer, to: fetch.asked, from: upstream, sentAt: sentAt)
      return result
    case .failure(let reason): return .failure(reason, of: upstream)
    }
  }

  /// Stores the answers to other questions in the same reply, such as those of the other address family, and gives them to
  /// clients that wait for a transfer of their own.
  func insertOthers(
    _ others: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)], of fetch: Fetch, from upstream: any Upstream,
    _ source: AnswerSource, sentAt: BootInstant
  ) {
    for other in others where !other.answer.isEmptyAmbiguous {
      var question = fetch.question
      question.name = other.question.name
      question.type = other.question.type
      let asked = store.question(question, fetch.configuration, fetch.route, subnet: fetch.asked.subnet)
      let result = composer.finish(other.answer, from: source, to: asked, trustsAD: upstream.trustsAD)
      guard let answer = result.answer else { continue }
      fleet?.share(other.answer, answer, to: asked, from: upstream, sentAt: sentAt)
      // Below a search domain LocalDNS counts as well, and NXDOMAIN would answer for every type.
      if fetch.route.isSearched, answer.isNXDOMAIN { continue }
      var origin = fetch.origin(source)
      (origin.heat, origin.hits) = store.inheritance(asked, now: loop.now) ?? (0, 0)
      if nat64?.prefix?.isTranslatable(result, asked) ?? false {
        loop.startTask { await self.insertTranslated(result, to: asked, origin) }
      } else if let waiting = inFlight[asked.key], waiting.mayTakeAnswer(of: fetch) {
        deliver(waiting, result)
      } else {
        insert(answer, to: asked, origin)
      }
    }
  }

  /// The result without a provider's answer: LocalDNS's if it may be asked, the empty answer of a dialect that
  /// cannot say more, or NODATA for a type that no provider serves (NXDOMAIN or SERVFAIL would stall browsers).
  private func withoutProvider(_ fetch: Fetch, failure: UpstreamFailure?, empty: FetchResult?) async -> FetchResult {
    let route = fetch.route
    let isCarried = route.providers.contains { fetch.configuration.upstreams[$0].serves(fetch.question) }
    // SVCB and HTTPS lead to addresses and to other names: the network must not decide about these if a provider
    // decides about A and AAAA (docs/adr/0025-types-that-no-provider-carries.md).
    let isReserved = !isCarried && (fetch.question.type == .svcb || fetch.question.type == .https)
    let mayAsk = localDNS.mayFallBack(route) && !isReserved || failure == nil && localDNS.maySearch(route)
    if mayAsk, !fetch.state.hasAskedLocal, !fetch.state.isDisplaced, !isFreshRefresh(fetch) {
      let result = await localDNS.ask(fetch, isFallback: true)
      if result.answer != nil { return result }
    }
    let failure = failure ?? (fetch.asked.isUnaskable ? .unaskable : nil)
    let lastResort =
      empty ?? (failure == nil ? composer.ownNegativeAnswer(.noError, of: fetch.asked, .notSupported) : nil)
    let waits = fetch.state.holdForLocalDNS(or: lastResort)
    return (waits ? nil : lastResort) ?? .failure(failure ?? .unserved)
  }

  /// Whether a refresh would replace a provider's fresh answer by LocalDNS's.
  private func isFreshRefresh(_ fetch: Fetch) -> Bool {
    fetch.state.isRefresh && store.freshAnswer(to: fetch.asked, now: loop.now) != nil
  }

  /// The remembered failure because of which no upstream may be asked; nil if one may be asked.
  func failureBefore(_ asked: ResolverQuestion, _ domain: DomainKey) -> UpstreamFailure? {
    memory.failureBefore(
      asked, domain, mayAskLocal: asked.route.providers.isEmpty || localDNS.mayFallBack(asked.route), now: loop.now)
  }
}

extension Fetch {
  /// The next provider of the route that serves the question; counts as taken.
  ///
  /// - Returns: its place in the configuration, and the number of providers left, this one included.
  fileprivate func takeProvider() -> (index: Int, left: Int)? {
    guard let place = placeOfNextProvider else { return nil }
    state.markProviderTaken(at: place)
    return (route.providers[place], route.providers[place...].count { configuration.upstreams[$0].serves(question) })
  }

  /// The place in the route of the next provider that serves the question; nil if all have been taken.
  var placeOfNextProvider: Int? {
    route.providers[min(state.nextProvider, route.providers.count)...]
      .firstIndex { configuration.upstreams[$0].serves(question) }
  }
}

extension ResolverQuestion {
  /// Whether providers serve the type, but no name with such octets: the name may well have data.
  fileprivate var isUnaskable: Bool {
    let providers = route.providers.map { configuration.upstreams[$0] }
    var plain = question
    // A name that every dialect can carry.
    plain.name = DomainName(unchecked: [1, 97, 0])
    return !providers.contains { $0.serves(question) } && providers.contains { $0.serves(plain) }
  }
}

extension FetchResult {
  /// The result if none of a provider's servers has answered.
  fileprivate static func failure(_ reason: UpstreamFailure, of upstream: any Upstream) -> FetchResult {
    FetchResult(result: .failure(reason), source: .provider(upstream.name, server: ""))
  }
}
