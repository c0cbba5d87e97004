// LocalDNSOrder.swift -- when the cold path asks LocalDNS, and its place among the providers for names below a search domain.
//
// docs/adr/0019-search-domains-take-no-names-away.md. Resolver's loop only.

import BusyNames
import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Telemetry
import Upstreams

/// What the cold path asks LocalDNS for, and what follows from its answers. Resolver's loop only.
final class LocalDNSOrder {
  /// LocalDNS itself; nil without.
  let upstream: (any LocalUpstream)?
  private(set) var counters = LocalQuestionCounters()
  private let store: AnswerStore
  private let composer: AnswerComposer
  private let memory: UpstreamMemory
  private let network: CurrentNetwork
  private let names: NameLedger
  private let loop: any Loop
  private let onFailure: (String, UpstreamFailure) -> Void
  /// Names below a search domain for which the providers answered NXDOMAIN.
  private var nxdomainNames: NXDOMAINNames

  init(
    _ upstream: (any LocalUpstream)?, _ store: AnswerStore, _ composer: AnswerComposer, _ memory: UpstreamMemory,
    _ network: CurrentNetwork, _ names: NameLedger, on loop: any Loop,
    onFailure: @escaping (String, UpstreamFailure) -> Void
  ) {
    self.upstream = upstream
    self.store = store
    self.composer = composer
    self.memory = memory
    self.network = network
    self.names = names
    self.loop = loop
    self.onFailure = onFailure
    nxdomainNames = NXDOMAINNames(store)
  }

  /// Forgets the providers' NXDOMAIN for the selected names.
  func forget(_ names: NameSelection) { nxdomainNames.remove(names) }

  // MARK: Whether it is asked

  /// Whether the network or the route has a resolver for its names.
  func hasServers(_ route: Route) -> Bool { upstream?.hasServers(route.localServers) ?? false }

  /// Whether LocalDNS may answer instead of the route's providers.
  func mayFallBack(_ route: Route) -> Bool { route.fallsBack && hasServers(route) }

  /// Whether LocalDNS may be asked for names that the providers deny or do not list.
  func maySearch(_ route: Route) -> Bool { route.isSearched && hasServers(route) }

  /// Whether a refresh asks LocalDNS again for its answer below a search domain: only while LocalDNS precedes the providers.
  /// Otherwise the answer expires, and a client's question asks all upstreams again.
  func comesFirst(_ question: HTTPDNSQuestion, _ route: Route) -> Bool {
    maySearch(route) && (route.search == .first || nxdomainNames.contains(question, route, now: loop.now))
  }

  // MARK: Search domains

  /// LocalDNS's answer if it precedes the providers, or if they said NXDOMAIN a moment ago: then the other types of a name
  /// that only the network has cost no transfer. Nil if the providers are to be asked.
  func askFirst(_ fetch: Fetch) async -> FetchResult? {
    let route = fetch.route
    guard maySearch(route), !fetch.state.hasAskedLocal else { return nil }
    let wasNXDOMAIN = nxdomainNames.contains(fetch.question, route, now: loop.now)
    guard wasNXDOMAIN || route.search == .first else { return nil }
    let result = await ask(fetch, isFallback: true)
    if result.nameExists { return result }
    guard wasNXDOMAIN else { return nil }
    fetch.trace(TrailStep("the providers", "NXDOMAIN a moment ago"))
    if result.answer != nil || fetch.state.isRefresh { return result }
    return composer.ownNegativeAnswer(.nxDomain, of: fetch.asked).unconfirmed
  }

  /// The result after a provider's answer: for NXDOMAIN below a search domain LocalDNS is asked as well, and wins if it knows
  /// the name.
  func afterNXDOMAIN(_ fetch: Fetch, _ result: FetchResult) async -> FetchResult {
    // A name with an alias exists, wherever the alias leads.
    guard let answer = result.answer, answer.isNXDOMAIN, maySearch(fetch.route) else { return result }
    let (question, route) = (fetch.question, fetch.route)
    nxdomainNames.note(question, route, for: max(answer.lifetime, route.ttl.highestFallback), now: loop.now)
    fetch.trace(TrailStep(result.source.name, "no such name"))
    if fetch.state.isDisplaced { return result.unconfirmed }
    switch fetch.state.providerDenies(result.unconfirmed) {
    case .waits: return .failure(.unserved)
    case .data(let held): return held
    case .localDNSWasAsked(let isConfirmed): return isConfirmed ? result : result.unconfirmed
    case .asksLocalDNS:
      let local = await ask(fetch, isFallback: true)
      if local.nameExists { return local }
      return local.failure == nil ? result : result.unconfirmed
    }
  }

  // MARK: One question

  /// Asks LocalDNS. Without LocalDNS the network's own names do not exist.
  ///
  /// - Parameter isFallback: whether it may answer instead of a provider.
  func ask(_ fetch: Fetch, isFallback: Bool) async -> FetchResult {
    let route = fetch.route
    fetch.state.markLocalDNSAsked()
    guard let upstream, upstream.hasServers(route.localServers) else {
      // A refresh leaves the network's earlier answer in the cache.
      guard route.isNetwork, !fetch.state.isRefresh else { return .failure(.noServer) }
      // Not cached: the network may announce a resolver at any moment.
      return composer.ownNegativeAnswer(.nxDomain, of: fetch.asked, isCached: false)
    }
    if let reason = memory.reasonNotToAsk(fetch.asked, at: FailureCache.localDNS, fetch.domain, now: loop.now) {
      fetch.trace(reason.trail(of: "LocalDNS"))
      return .failure(reason)
    }
    guard loop.now < fetch.state.end else { return .failure(.noAnswerInTime) }
    var question = fetch.question
    question.clientSubnet = nil
    memory.sentToLocalDNS(fetch, now: loop.now)
    counters.questions += 1
    var began: BootInstant
    var result: Result<UpstreamAnswer, UpstreamFailure>
    repeat {
      began = loop.preciseNow
      let rest = fetch.state.end - loop.now
      fetch.state.localDNSStarted(on: network.number)
      result = await upstream.ask(
        question, route.localServers, timeout: isFallback ? min(store.configuration.settings.localTimeout, rest) : rest)
      // An answer of another network's resolver does not count here.
    } while fetch.state.network != network.number && loop.now < fetch.state.end
    if fetch.state.network != network.number { result = .failure(.noAnswerInTime) }
    fetch.state.localDNSStopped(hasAnswer: (try? result.get()) != nil)
    if isFallback { names.wentToLocalDNS(question, result) }
    switch result {
    case .success(let reply):
      counters.roundTrips.observe(loop.preciseNow - began)
      memory.localDNSGaveVerdict(fetch, after: loop.preciseNow - began, now: loop.now)
      memory.succeeded(fetch.asked, at: FailureCache.localDNS)
      if isFallback { counters.fallbacks += 1 }
      return composer.finish(
        composer.confined(reply.answer, fetch), from: .localDNS(server: reply.server), to: fetch.asked,
        local: AnswerComposer.LocalOrigin(
          isFallback: isFallback, isOutOfOrder: reply.isOutOfOrder, isTruncated: reply.isTruncated))
    case .failure(let reason):
      counters.failures += 1
      if reason.consequence == .verdict {
        memory.localDNSGaveVerdict(fetch, after: loop.preciseNow - began, now: loop.now)
      }
      memory.failed(reason, fetch.asked, at: FailureCache.localDNS, sentAt: began, now: loop.now)
      onFailure("localdns", reason)
      fetch.trace(reason.trail(of: "LocalDNS"))
      return .failure(reason)
    }
  }
}

/// Names for which the providers said NXDOMAIN a moment ago.
struct NXDOMAINNames {
  private let store: AnswerStore
  private var ends: [QuestionKey: BootInstant] = [:]

  /// Limits the memory: above it, expired names make room first, then any.
  private static let limit = 4096

  init(_ store: AnswerStore) { self.store = store }

  /// Whether the providers' NXDOMAIN for the name still counts.
  func contains(_ question: HTTPDNSQuestion, _ route: Route, now: BootInstant) -> Bool {
    !ends.isEmpty && ends[key(question, route)].map { now < $0 } ?? false
  }

  /// Notes the providers' NXDOMAIN for a name, for a number of seconds.
  mutating func note(_ question: HTTPDNSQuestion, _ route: Route, for seconds: UInt32, now: BootInstant) {
    let key = key(question, route)
    if ends.count >= NXDOMAINNames.limit, ends[key] == nil {
      ends = ends.filter { now < $0.value }
      if ends.count >= NXDOMAINNames.limit {
        for key in ends.keys.prefix(NXDOMAINNames.limit / 8) { ends[key] = nil }
      }
    }
    ends[key] = now + .seconds(Int64(seconds))
  }

  /// NXDOMAIN is valid for every type, and on every network.
  private func key(_ question: HTTPDNSQuestion, _ route: Route) -> QuestionKey {
    let scope = CacheScope(
      type: CacheKey.everyType, dnssecOK: false, checkingDisabled: false, route: route.number, network: 0)
    return store.withKey(question.name, scope) { QuestionKey($0) }
  }

  /// Forgets the selected names.
  mutating func remove(_ names: NameSelection) { ends = ends.filter { !names.contains(key: $0.key.octets) } }
}

extension FetchResult {
  /// The longest lifetime, in seconds, of an NXDOMAIN that LocalDNS did not confirm because it did not answer.
  private static let unconfirmedNXDOMAIN: UInt32 = 5

  /// Whether it shows that the name exists.
  var nameExists: Bool { answer.map { !$0.isNXDOMAIN } ?? false }

  /// Whether it is NXDOMAIN for the name itself.
  var isNXDOMAIN: Bool { answer?.isNXDOMAIN ?? false }

  /// Shortens the lifetime of an NXDOMAIN.
  fileprivate var unconfirmed: FetchResult {
    guard var answer else { return self }
    answer.lifetime = min(answer.lifetime, FetchResult.unconfirmedNXDOMAIN)
    return FetchResult(result: .success(answer), source: source)
  }

  /// A failure instead of NXDOMAIN, so that the cached answer stays.
  var unlessNXDOMAIN: FetchResult { isNXDOMAIN ? .failure(.unserved) : self }
}

extension AnswerSource {
  /// Its name in logs and reports.
  var name: String {
    switch self {
    case .provider(let name, _): name
    case .fleet(let name): "\(name), by the fleet"
    case .localDNS: "localdns"
    case .cache: "the cache"
    case .ourselves: "httpdnsd"
    }
  }
}
