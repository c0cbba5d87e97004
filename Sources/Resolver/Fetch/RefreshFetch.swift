// RefreshFetch.swift -- fetches cached answers again while no client waits for them.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import FairShares
import HTTPDNS
import MessageCache
import Refresh
import Upstreams

extension Resolver {
  /// Refreshes an answer that a client has just been served: stale data, or an answer of another network.
  func refreshServed(_ asked: ResolverQuestion, for client: ClientKey) {
    let now = loop.now
    let domain = DomainKey(of: asked.question.name)
    guard inFlight[asked.key] == nil, !admission.isFull, failureBefore(asked, domain) == nil else { return }
    let entry = store.find(asked, now: now)
    // Without stale data the client would have had to wait, so the limits of clients apply.
    guard store.freshAnswer(to: asked, entry, now: now) != nil else {
      let isPinned = refresher?.isOnKeepList(asked.question) ?? false
      let isInUse = entry?.isInUse ?? false
      if !isPinned, let limit = admission.missLimit(asked, client, domain, isInUse: isInUse, now: now) {
        tally.shares.add(limit, stale: true)
        return onLimit(.share(limit))
      }
      return start(makeRefresh(asked, for: isPinned ? .ourselves : client))
    }
    // A fresh answer of another network costs one transfer of the refresh budget.
    let state = cache.state(hash: asked.key.keyedHash)
    let last = EntrySource(number: state?.source ?? 0)
    guard let source = configuration.refreshSource(of: asked.routed, after: last, localDNS),
      refresher?.takeFromBudget([asked.routed], source).first ?? true
    else { return }
    let fetch = makeRefresh(asked)
    fetch.state.attemptBegins(now: now)
    let heat = state.flatMap { refresher?.heat(of: $0) }
    if let heat { fetch.heat = heat.rawValue } else { inherit(fetch) }
    loop.startTask { _ = await self.send([fetch], to: source, self.configuration.provider(source)) }
  }

  package func refresh(_ questions: [RefreshedQuestion], from source: EntrySource) async -> [Bool] {
    var results = questions.map { _ in false }
    // A reload may take the provider away before `send` begins.
    let provider = configuration.provider(source)
    if case .provider = source {
      // Half of the places are reserved for clients.
      guard provider != nil, admission.count + questions.count <= settings.listen.maxInFlight / 2 else {
        return results
      }
    }
    var fetches: [(number: Int, fetch: Fetch)] = []
    for (number, wanted) in questions.enumerated() {
      guard let asked = store.question(wanted.asked) else { continue }
      results[number] = inFlight[asked.key] != nil
      let fetch = inFlight[asked.key] ?? makeRefresh(asked)
      fetch.heat = wanted.heat.rawValue
      guard !results[number] else { continue }
      fetch.state.attemptBegins(now: loop.now)
      fetches.append((number, fetch))
    }
    guard !fetches.isEmpty else { return results }
    for (begun, hasAnswer) in zip(fetches, await send(fetches.map(\.fetch), to: source, provider)) {
      results[begun.number] = hasAnswer
    }
    return results
  }

  /// Asks a provider for fetches that have begun, and ends them; nil asks LocalDNS for the only one.
  ///
  /// - Returns: for each of them, whether it has an answer.
  private func send(_ fetches: [Fetch], to source: EntrySource, _ provider: (any Upstream)?) async -> [Bool] {
    guard let provider else {
      let route = fetches[0].route
      let result = await localDNS.ask(fetches[0], isFallback: !route.providers.isEmpty)
      return [end(fetches[0], route.isSearched ? result.unlessNXDOMAIN : result)]
    }
    return await ProviderRefresh(fetches: fetches, source: source, provider: provider).send(by: self)
  }

  /// Asks a provider once for fetches that have begun, and ends them.
  ///
  /// - Returns: for each of them, whether it has an answer; nil for those that have not ended, since another name of the transfer
  ///   may be the reason of its refusal.
  fileprivate func send(_ fetches: [Fetch], to provider: any Upstream) async -> [Bool?] {
    let sentAt = loop.now
    let results = await provider.refresh(fetches.map(\.question), deadline: sentAt + ResolverSettings.answerBy)
    let hasSeveralNames = fetches.contains { $0.question.name != fetches[0].question.name }
    func isOfOneName(_ reason: UpstreamFailure) -> Bool { hasSeveralNames && reason.report?.mayConcernOneName == true }
    if case .failure(let reason) = results, !isOfOneName(reason) { note(provider.name, reason) }
    return fetches.map { fetch in
      switch results.flatMap({ $0[fetch.question] ?? .failure(.unserved) }) {
      case .failure(let reason) where isOfOneName(reason): return nil
      case .success(let reply):
        let source = AnswerSource.provider(provider.name, server: reply.server)
        insertOthers(reply.others, of: fetch, from: provider, source, sentAt: sentAt)
        var result = composer.finish(reply.answer, from: provider, source, to: fetch.asked)
        fleet?.share(reply.answer, result.answer, to: fetch.asked, from: provider, sentAt: sentAt)
        // An empty reply may mean "not in the list", which says nothing about a name that was in the list.
        if result.answer?.isAmbiguous == true { result = .failure(.unserved) }
        // Below a search domain one provider's NXDOMAIN does not suffice.
        return end(fetch, fetch.route.isSearched ? result.unlessNXDOMAIN : result)
      case .failure(let reason): return end(fetch, .failure(reason))
      }
    }
  }

  /// Returns whether the refresh has an answer.
  fileprivate func end(_ fetch: Fetch, _ result: FetchResult) -> Bool {
    afterAttempt(fetch, fetch.state.refreshEnded(result, isSearched: localDNS.maySearch(fetch.route)))
    return result.failure == nil
  }

  package func askAgain(_ asked: RoutedQuestion) async -> Bool {
    let answer = await resolve(asked.question, route: asked.route, fresh: true)
    return answer.failure == nil && !answer.isAmbiguous
  }

  // MARK: Sources

  package func scope(of asked: RoutedQuestion) -> CacheScope? {
    configuration.route(asked.route).map { store.scope(asked.question, $0) }
  }

  package func refreshSource(_ asked: RoutedQuestion, after source: EntrySource) -> RefreshSource? {
    configuration.refreshSource(of: asked, after: source, localDNS).map {
      RefreshSource($0, configuration.provider($0)?.traits, isAlone: source == .localDNS)
    }
  }

  package func refreshPrice(of source: EntrySource) -> RefreshPrice {
    configuration.provider(source)?.refreshPrice ?? .free
  }
}

/// Fetches that a provider is asked for in one transfer.
private struct ProviderRefresh {
  let fetches: [Fetch]
  let source: EntrySource
  let provider: any Upstream

  /// Where the provider refuses the transfer, one of the names may not be on the account's list: each is asked for once by
  /// itself, if the budget pays for it.
  ///
  /// - Returns: for each fetch, whether it has an answer.
  func send(by resolver: isolated Resolver) async -> [Bool] {
    var isAnswered = await resolver.send(fetches, to: provider)
    for place in fetches.indices where isAnswered[place] == nil {
      let name = fetches[place].question.name
      let places = fetches.indices.filter { isAnswered[$0] == nil && fetches[$0].question.name == name }
      let alone = places.map { fetches[$0] }
      let isPaid =
        provider.isFit(for: alone[0].question)
        && resolver.refresher?.takeFromBudget(alone.map(\.asked.routed), source).allSatisfy(\.self) ?? true
      let results =
        isPaid ? await resolver.send(alone, to: provider) : alone.map { resolver.end($0, .failure(.notRefreshed)) }
      for (place, result) in zip(places, results) { isAnswered[place] = result ?? false }
    }
    return isAnswered.map { $0 ?? false }
  }
}

extension ResolverConfiguration {
  /// The upstream that a refresh asks for an answer of `source`; nil if none may be asked now.
  ///
  /// It is the source itself. If LocalDNS answered instead of a provider, it is a provider as soon as one is fit again.
  func refreshSource(of asked: RoutedQuestion, after source: EntrySource, _ localDNS: LocalDNSOrder) -> EntrySource? {
    guard let route = route(asked.route) else { return nil }
    func isFit(_ index: Int) -> Bool {
      !upstreams[index].answersAtOnce && upstreams[index].isFit(for: asked.question)
    }
    if source == .localDNS, route.isSearched { return localDNS.comesFirst(asked.question, route) ? .localDNS : nil }
    if case .provider(let number) = source, let index = place(ofProvider: number) {
      return route.providers.contains(index) && isFit(index) ? source : nil
    }
    if let index = route.providers.first(where: isFit) { return .provider(providerNumbers[index]) }
    guard source == .localDNS || route.providers.isEmpty else { return nil }
    return localDNS.hasServers(route) ? .localDNS : nil
  }
}

extension RefreshSource {
  /// - Parameter isAlone: whether each name travels alone: where LocalDNS answered, the provider may not list the name, and
  ///   would refuse all that come with it.
  fileprivate init(_ source: EntrySource, _ traits: UpstreamTraits?, isAlone: Bool) {
    let mostNames = traits?.mostNames ?? 0
    self.init(source, mostNames: isAlone ? min(mostNames, 1) : mostNames, families: traits?.families ?? .wanted)
  }
}
