// SearchDomainOrder.swift -- the order of providers and LocalDNS for names below a search domain of the network.
//
// docs/adr/0019-search-domains-take-no-names-away.md. Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Upstreams

extension Resolver {
  /// The longest lifetime, in seconds, of an NXDOMAIN that LocalDNS did not confirm because it did not answer.
  static let unconfirmedNXDOMAIN: UInt32 = 5

  /// Whether LocalDNS may be asked for names that the providers deny or do not list.
  func maySearch(_ route: Route) -> Bool { route.isSearched && (local?.hasServers(route.localServers) ?? false) }

  /// LocalDNS's answer if it precedes the providers, or if they said NXDOMAIN a moment ago: then the other types of a name
  /// that only the network has cost no transfer. Nil if the providers are to be asked.
  func askNetworkFirst(_ fetch: Fetch) async -> FetchResult? {
    let route = fetch.route
    guard maySearch(route), !fetch.state.hasAskedLocal else { return nil }
    let wasNXDOMAIN = nxdomainNames.contains(fetch.question, route, now: loop.now)
    guard wasNXDOMAIN || route.search == .first else { return nil }
    let result = await askLocal(fetch, isFallback: true)
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
      let local = await askLocal(fetch, isFallback: true)
      if local.nameExists { return local }
      return local.failure == nil ? result : result.unconfirmed
    }
  }

  /// Whether a refresh asks LocalDNS again for its answer below a search domain: only while LocalDNS precedes the providers.
  /// Otherwise the answer expires, and a client's question asks all upstreams again.
  func localDNSComesFirst(_ question: HTTPDNSQuestion, _ route: Route) -> Bool {
    maySearch(route) && (route.search == .first || nxdomainNames.contains(question, route, now: loop.now))
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
  /// Whether it shows that the name exists.
  var nameExists: Bool { answer.map { !$0.isNXDOMAIN } ?? false }

  /// Whether it is NXDOMAIN for the name itself.
  var isNXDOMAIN: Bool { answer?.isNXDOMAIN ?? false }

  /// Shortens the lifetime of an NXDOMAIN.
  fileprivate var unconfirmed: FetchResult {
    guard var answer else { return self }
    answer.lifetime = min(answer.lifetime, Resolver.unconfirmedNXDOMAIN)
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
