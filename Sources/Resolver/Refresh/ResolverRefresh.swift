// ResolverRefresh.swift -- fetching anew what is kept, while nobody waits for it.

import DNSWire
import EventLoop
import FairShares
import HTTPDNS
import MessageCache
import Refresh
import Upstreams

/// An answer that was kept, for whoever schedules refreshes.
struct KeptAnswer {
  /// The cache's hash of the question's key.
  var hash: UInt64
  var life: EntryLife
  /// Whether it denies the name, for every type.
  var isDenial: Bool
  /// When it was stored, in nanoseconds of the boot-time clock.
  var storedAt: Int64
}

/// A question that is to be asked anew.
struct RefreshedQuestion {
  var question: HTTPDNSQuestion
  var route: UInt16
  /// What the schedule will remember of the new entry.
  var heat: UInt32
}

extension Resolver {
  /// A client was served what ought to be fetched anew: asks as for a client, though nobody waits.
  func refresh(
    _ question: HTTPDNSQuestion, _ key: QuestionKey, _ service: Service, _ route: Route, _ subnet: QueryClientSubnet,
    _ client: ClientKey
  ) {
    guard inFlight[key] == nil, !places.isFull, !failures.isWaiting(key, now: loop.now) else { return }
    // For stale data a client would have had to ask.
    guard kept(question, key, route, subnet) != nil else {
      let isKept = refresher?.keepsFresh(question) ?? false
      let isInUse = !isKept && staleData(question, route, subnet)?.isInUse ?? false
      let limit = isKept ? nil : missLimit(route, service, client, DomainKey(of: question.name), isInUse: isInUse)
      if let limit {
        counters.shares.add(limit, stale: true)
        return onLimit(.share(limit))
      }
      // Somebody asked for it: it takes one of that client's places.
      let pursuit = makePursuit(question, key, service, route, subnet, isKept ? .ourselves : client)
      pursuit.isRefresh = true
      return start(pursuit)
    }
    // What is only of another network costs what refreshing may cost: one transfer.
    let last = EntrySource(number: cache.state(hash: key.keyedHash)?.source ?? EntrySource.nobody.number)
    let asked = RoutedQuestion(question: question, route: route.number)
    guard let source = refreshSource(question, route.number, after: last),
      refresher?.takeFromBudget([asked], source).first ?? true
    else { return }
    let pursuit = makePursuit(question, key, service, route, subnet)
    pursuit.isRefresh = true
    pursuit.attempts += 1
    let heat = cache.state(hash: key.keyedHash).flatMap { refresher?.heat(of: $0) }
    if let heat { pursuit.heat = heat.rawValue } else { inherit(pursuit) }
    Task(executorPreference: loop) { await self.refresh(pursuit, from: source) }
  }

  private func refresh(_ pursuit: Pursuit, from source: EntrySource) async {
    guard case .provider(let number) = source, let place = service.place(ofProvider: number) else {
      _ = refreshed(pursuit, await askLocalAnew(pursuit))
      return
    }
    let provider = upstreams[place]
    let results = await provider.refresh([pursuit.question], deadline: loop.now + ResolverSettings.answerBy)
    if case .failure(let reason) = results { note(provider.name, reason) }
    _ = finish(pursuit, results.flatMap { $0[pursuit.question] ?? .failure(.unserved) }, provider)
  }

  /// What takes the place of a fresh entry before that was due goes on where that was, in the eyes of the schedule.
  func inherit(_ pursuit: Pursuit) {
    guard let state = cache.state(hash: pursuit.key.keyedHash), loop.now.nanoseconds < state.expiresAt else { return }
    pursuit.heat = state.heat
    pursuit.hits = state.hits
  }

  /// Asks a provider anew, all questions in one transfer.
  ///
  /// - Parameter number: the provider's, as entries have it.
  /// - Returns: for each question whether there is a new answer, or one under way already.
  func refresh(_ questions: [RefreshedQuestion], from number: Int) async -> [Bool] {
    // Clients come first.
    guard let place = service.place(ofProvider: number), self.underWay + questions.count <= settings.maxInFlight / 2
    else { return questions.map { _ in false } }
    let provider = upstreams[place]
    let (pursuits, underWay) = refreshes(questions)
    let asked = pursuits.compactMap { $0 }
    guard !asked.isEmpty else { return underWay }
    let results = await provider.refresh(asked.map(\.question), deadline: loop.now + ResolverSettings.answerBy)
    if case .failure(let reason) = results { note(provider.name, reason) }
    return zip(pursuits, underWay).map { pursuit, isUnderWay in
      guard let pursuit else { return isUnderWay }
      let result = results.flatMap { $0[pursuit.question] ?? .failure(.unserved) }
      return finish(pursuit, result, provider)
    }
  }

  /// Asks LocalDNS anew.
  func refreshLocally(_ question: RefreshedQuestion) async -> Bool {
    let (pursuits, underWay) = refreshes([question])
    guard let pursuit = pursuits[0] else { return underWay[0] }
    return refreshed(pursuit, await askLocalAnew(pursuit))
  }

  private func askLocalAnew(_ pursuit: Pursuit) async -> Outcome {
    let outcome = await askLocal(pursuit, isFallback: !pursuit.route.providers.isEmpty)
    return pursuit.route.isSearched ? outcome.unlessDenied : outcome
  }

  /// A pursuit for each question that is not under way; the second list says which are.
  private func refreshes(_ questions: [RefreshedQuestion]) -> (pursuits: [Pursuit?], underWay: [Bool]) {
    var underWay: [Bool] = []
    let pursuits = questions.map { wanted -> Pursuit? in
      underWay.append(false)
      guard let route = service.route(wanted.route) else { return nil }
      let key = questionKey(wanted.question, route, QueryClientSubnet())
      if let pursuit = inFlight[key] {
        pursuit.heat = wanted.heat
        underWay[underWay.count - 1] = true
        return nil
      }
      let pursuit = makePursuit(wanted.question, key, service, route, QueryClientSubnet())
      pursuit.isRefresh = true
      pursuit.heat = wanted.heat
      pursuit.attempts += 1
      return pursuit
    }
    return (pursuits, underWay)
  }

  private func finish(
    _ pursuit: Pursuit, _ result: Result<UpstreamAnswer, UpstreamFailure>, _ provider: any Upstream
  ) -> Bool {
    let route = pursuit.route
    switch result {
    case .success(let reply):
      let source = AnswerSource.provider(provider.name, server: reply.server)
      var outcome = finish(reply.answer, from: source, pursuit, route, trustsAD: provider.trustsAD)
      let subnet = provider.subnet(for: pursuit.question.clientSubnet)
      if subnet == nil || subnet != pursuit.question.clientSubnet { outcome.dropScope() }
      // "Not in the list" says nothing about a name that was there.
      if case .success(let answer) = outcome.result, answer.isAmbiguous { outcome.result = .failure(.unserved) }
      // Below a search domain one of them denies nothing alone.
      if route.isSearched { outcome = outcome.unlessDenied }
      return refreshed(pursuit, outcome)
    case .failure(let reason):
      return refreshed(pursuit, Outcome(result: .failure(reason), source: .ourselves))
    }
  }

  /// A refresh has ended. Where it failed and clients wait for it by now, they are served as all others are.
  private func refreshed(_ pursuit: Pursuit, _ outcome: Outcome) -> Bool {
    pursuit.attempts -= 1
    if case .success = outcome.result {
      settle(pursuit, outcome)
      return true
    }
    if !pursuit.isRefresh, !pursuit.isAnswered, pursuit.attempts == 0 {
      start(pursuit)
    } else {
      settle(pursuit, outcome)
    }
    return false
  }

  /// Who is asked anew for what `source` has said; nil where nobody may be asked at present.
  ///
  /// The source itself. What LocalDNS has said in a provider's place is asked of the provider, as soon as that is well.
  func refreshSource(_ question: HTTPDNSQuestion, _ number: UInt16, after source: EntrySource) -> EntrySource? {
    guard let route = service.route(number) else { return nil }
    func isWell(_ index: Int) -> Bool {
      upstreams[index].isFit && !upstreams[index].answersAtOnce && upstreams[index].serves(question)
    }
    var source = source
    if source == .localDNS, route.isSearched { return isNetworksWord(question, route) ? .localDNS : nil }
    if case .provider(let number) = source {
      if let index = service.place(ofProvider: number) {
        return route.providers.contains(index) && isWell(index) ? source : nil
      }
      source = .nobody
    }
    if let index = route.providers.first(where: isWell) { return .provider(service.providerNumbers[index]) }
    guard source == .localDNS || route.providers.isEmpty else { return nil }
    return local?.hasServers(route.localServers) ?? false ? .localDNS : nil
  }

  /// Names that one transfer to that source may carry; 0 where each question travels alone.
  func mostNames(_ source: EntrySource) -> Int {
    guard case .provider(let number) = source, let place = service.place(ofProvider: number) else { return 0 }
    return upstreams[place].mostNames
  }

  /// Whether LocalDNS is left out: what a provider has said is still fresh, and must not give way to less.
  func isSparing(_ pursuit: Pursuit) -> Bool {
    pursuit.isRefresh && kept(pursuit.question, pursuit.key, pursuit.route, pursuit.subnet) != nil
  }

  /// The number under which an entry remembers who gave it.
  func number(of source: AnswerSource, _ service: Service) -> UInt8 {
    switch source {
    case .provider(let name, _):
      let place = service.upstreams.firstIndex { $0.name == name }
      let number = place.map { service.providerNumbers[$0] } ?? -1
      // What another service calls by that number is another provider.
      return self.service.place(ofProvider: number) == nil ? 0 : EntrySource.provider(number).number
    case .localDNS: return EntrySource.localDNS.number
    case .cache, .ourselves: return EntrySource.nobody.number
    }
  }
}

/// Who gave an entry, as one octet.
package enum EntrySource: Hashable {
  case nobody
  case localDNS
  /// A provider, by the number that it keeps as long as it is configured: at start its place in the configuration.
  case provider(Int)

  private static let firstProvider = 2

  init(number: UInt8) {
    switch number {
    case 0: self = .nobody
    case 1: self = .localDNS
    default: self = .provider(Int(number) - EntrySource.firstProvider)
    }
  }

  /// Zero where a provider's number does not fit: it is not asked again by itself.
  package var number: UInt8 {
    switch self {
    case .nobody: 0
    case .localDNS: 1
    case .provider(let index): UInt8(exactly: index + EntrySource.firstProvider) ?? 0
    }
  }
}
