// RefreshFetch.swift -- fetches cached answers again while no client waits for them.

import DNSWire
import EventLoop
import FairShares
import HTTPDNS
import MessageCache
import Refresh
import Upstreams

/// A question to refresh, and the heat of its new entry.
struct RefreshedQuestion {
  var asked: RoutedQuestion
  var heat: UInt32
}

extension Resolver {
  /// Refreshes an answer that a client has just been served: stale data, or an answer of another network.
  func refresh(_ asked: ResolverQuestion, for client: ClientKey) {
    let now = loop.now
    let domain = DomainKey(of: asked.question.name)
    guard inFlight[asked.key] == nil, !places.isFull, !isRemembered(asked, of: domain) else { return }
    let entry = store.find(asked, now: now)
    // Without stale data the client would have had to wait, so the limits of clients apply.
    guard store.freshAnswer(to: asked, entry, now: now) != nil else {
      let isPinned = refresher?.isOnKeepList(asked.question) ?? false
      let limit = isPinned ? nil : missLimit(asked, client, domain, isInUse: entry?.isInUse ?? false)
      if let limit {
        counters.shares.add(limit, stale: true)
        return onLimit(.share(limit))
      }
      return start(makeRefresh(asked, for: isPinned ? .ourselves : client))
    }
    // A fresh answer of another network costs one transfer of the refresh budget.
    let last = EntrySource(number: cache.state(hash: asked.key.keyedHash)?.source ?? EntrySource.unknown.number)
    guard let source = refreshSource(asked.routed, after: last),
      refresher?.takeFromBudget([asked.routed], source).first ?? true
    else { return }
    let fetch = makeRefresh(asked)
    fetch.state.attemptBegins(now: now)
    let heat = cache.state(hash: asked.key.keyedHash).flatMap { refresher?.heat(of: $0) }
    if let heat { fetch.heat = heat.rawValue } else { inherit(fetch) }
    loop.startTask { await self.refresh(fetch, from: source) }
  }

  private func refresh(_ fetch: Fetch, from source: EntrySource) async {
    guard case .provider(let number) = source, let place = configuration.place(ofProvider: number) else {
      _ = endRefresh(fetch, await askLocalAgain(fetch))
      return
    }
    let provider = upstreams[place]
    let sentAt = loop.now
    let results = await provider.refresh([fetch.question], deadline: sentAt + ResolverSettings.answerBy)
    if case .failure(let reason) = results { note(provider.name, reason) }
    _ = endRefresh(fetch, results.flatMap { $0[fetch.question] ?? .failure(.unserved) }, provider, sentAt: sentAt)
  }

  /// Refreshes questions from a provider, all in one transfer.
  ///
  /// - Parameter number: the provider's number in entries.
  /// - Returns: for each question, whether it has a new answer or is in flight already.
  func refresh(_ questions: [RefreshedQuestion], from number: Int) async -> [Bool] {
    // Half of the places are reserved for clients.
    guard let place = configuration.place(ofProvider: number),
      places.count + questions.count <= settings.maxInFlight / 2
    else { return questions.map { _ in false } }
    let provider = upstreams[place]
    let (fetches, inFlight) = refreshes(questions)
    let asked = fetches.compactMap { $0 }
    guard !asked.isEmpty else { return inFlight }
    let sentAt = loop.now
    let results = await provider.refresh(asked.map(\.question), deadline: sentAt + ResolverSettings.answerBy)
    if case .failure(let reason) = results { note(provider.name, reason) }
    return zip(fetches, inFlight).map { fetch, isInFlight in
      guard let fetch else { return isInFlight }
      return endRefresh(
        fetch, results.flatMap { $0[fetch.question] ?? .failure(.unserved) }, provider, sentAt: sentAt)
    }
  }

  /// Refreshes a question from LocalDNS.
  ///
  /// - Returns: whether it has a new answer or is in flight already.
  func refreshLocally(_ question: RefreshedQuestion) async -> Bool {
    let (fetches, inFlight) = refreshes([question])
    guard let fetch = fetches[0] else { return inFlight[0] }
    return endRefresh(fetch, await askLocalAgain(fetch))
  }

  private func askLocalAgain(_ fetch: Fetch) async -> FetchResult {
    let result = await askLocal(fetch, isFallback: !fetch.route.providers.isEmpty)
    return fetch.route.isSearched ? result.unlessNXDOMAIN : result
  }

  /// Creates a fetch for each question that is not in flight; the second list says which ones are.
  private func refreshes(_ questions: [RefreshedQuestion]) -> (fetches: [Fetch?], inFlight: [Bool]) {
    var areInFlight: [Bool] = []
    let fetches = questions.map { wanted -> Fetch? in
      areInFlight.append(false)
      guard let asked = question(wanted.asked) else { return nil }
      if let fetch = inFlight[asked.key] {
        fetch.heat = wanted.heat
        areInFlight[areInFlight.count - 1] = true
        return nil
      }
      let fetch = makeRefresh(asked)
      fetch.heat = wanted.heat
      fetch.state.attemptBegins(now: loop.now)
      return fetch
    }
    return (fetches, areInFlight)
  }

  private func endRefresh(
    _ fetch: Fetch, _ reply: Result<UpstreamAnswer, UpstreamFailure>, _ provider: any Upstream, sentAt: BootInstant
  ) -> Bool {
    switch reply {
    case .success(let reply):
      let source = AnswerSource.provider(provider.name, server: reply.server)
      var result = finish(reply.answer, from: provider, source, to: fetch.asked)
      share(reply.answer, result.answer, to: fetch.asked, from: provider, sentAt: sentAt)
      // An empty reply may mean "not in the list", which says nothing about a name that was in the list.
      if result.answer?.isAmbiguous == true { result.result = .failure(.unserved) }
      // Below a search domain one provider's NXDOMAIN does not suffice.
      if fetch.route.isSearched { result = result.unlessNXDOMAIN }
      return endRefresh(fetch, result)
    case .failure(let reason): return endRefresh(fetch, .failure(reason))
    }
  }

  private func endRefresh(_ fetch: Fetch, _ result: FetchResult) -> Bool {
    afterAttempt(fetch, fetch.state.refreshEnded(result, isSearched: maySearch(fetch.route)))
    return result.failure == nil
  }

  /// The upstream that a refresh asks for an answer of `source`; nil if none may be asked now.
  ///
  /// It is the source itself. If LocalDNS answered instead of a provider, it is a provider as soon as one is fit again.
  func refreshSource(_ asked: RoutedQuestion, after source: EntrySource) -> EntrySource? {
    guard let route = configuration.route(asked.route) else { return nil }
    func isFit(_ index: Int) -> Bool {
      upstreams[index].isFit && !upstreams[index].answersAtOnce && upstreams[index].serves(asked.question)
    }
    var source = source
    if source == .localDNS, route.isSearched { return localDNSComesFirst(asked.question, route) ? .localDNS : nil }
    if case .provider(let number) = source {
      if let index = configuration.place(ofProvider: number) {
        return route.providers.contains(index) && isFit(index) ? source : nil
      }
      source = .unknown
    }
    if let index = route.providers.first(where: isFit) { return .provider(configuration.providerNumbers[index]) }
    guard source == .localDNS || route.providers.isEmpty else { return nil }
    return local?.hasServers(route.localServers) ?? false ? .localDNS : nil
  }

  /// The maximum number of names in one transfer to that source; 0 if each question travels alone.
  func mostNames(_ source: EntrySource) -> Int {
    guard case .provider(let number) = source, let place = configuration.place(ofProvider: number) else { return 0 }
    return upstreams[place].mostNames
  }
}
