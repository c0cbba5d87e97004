// ResolverSearch.swift -- names below a search domain of the network: providers and LocalDNS have a say, in an order.
//
// docs/adr/0019-search-domains-take-nothing-away.md. Resolver's loop only.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Upstreams

extension Resolver {
  /// How long NXDOMAIN counts that LocalDNS did not confirm, since it did not answer; in seconds.
  static let unconfirmedDenial: UInt32 = 5

  /// Whether LocalDNS may be asked for what the providers deny or do not list.
  func maySearch(_ route: Route) -> Bool {
    route.isSearched && (local?.hasServers(route.localServers) ?? false)
  }

  /// LocalDNS's word where it comes before the providers', or where they said NXDOMAIN a moment ago: the other types
  /// of a name that only the network has cost no transfer. Nil where the providers are to be asked.
  func askNetworkFirst(_ pursuit: Pursuit) async -> Outcome? {
    let route = pursuit.route
    guard maySearch(route), !pursuit.hasAskedLocal else { return nil }
    let isDenied = isDenied(pursuit.question, route)
    guard isDenied || route.search == .first else { return nil }
    let outcome = await askLocal(pursuit, isFallback: true)
    if outcome.isThere { return outcome }
    guard isDenied else { return nil }
    pursuit.trace("NXDOMAIN by the providers a moment ago")
    if case .success = outcome.result { return outcome }
    guard !pursuit.isRefresh else { return outcome }
    let denial = AnswerPolicy(ttl: route.ttl).negative(.nxDomain, pursuit.question, chain: [], authorities: [])
    guard let denial else { return outcome }
    return Outcome(result: .success(denial), source: .ourselves).unconfirmed
  }

  /// What a provider's NXDOMAIN comes to: below a search domain LocalDNS is asked as well, and its data wins.
  func afterDenial(_ pursuit: Pursuit, _ outcome: Outcome) async -> Outcome {
    // A name that is an alias is there, wherever that leads.
    guard case .success(let answer) = outcome.result, answer.deniesName, maySearch(pursuit.route) else {
      return outcome
    }
    let (question, route) = (pursuit.question, pursuit.route)
    deniedNames.note(
      deniedKey(question, route), until: loop.now + .seconds(Int64(max(answer.lifetime, route.ttl.highestFallback))),
      now: loop.now)
    pursuit.trace("\(outcome.source.name): no such name")
    // By the rule of search domains LocalDNS has a say again, whatever another provider has failed with.
    pursuit.isDecided = false
    if pursuit.isAskingLocal {
      // It is given when LocalDNS, asked beside the provider, does not answer in time.
      pursuit.held = outcome.unconfirmed
      return Outcome(result: .failure(.unserved), source: .ourselves)
    }
    if let held = pursuit.held, held.isThere { return held }
    // Before the provider: it has said NXDOMAIN as well.
    guard !pursuit.hasAskedLocal else { return outcome }
    let word = await askLocal(pursuit, isFallback: true)
    if word.isThere { return word }
    if case .failure = word.result { return outcome.unconfirmed }
    return outcome
  }

  /// Whether LocalDNS is asked again for what it has said below a search domain: as long as its word comes first. Otherwise
  /// nobody is, so that a client's question goes the whole way.
  func isNetworksWord(_ question: HTTPDNSQuestion, _ route: Route) -> Bool {
    maySearch(route) && (route.search == .first || isDenied(question, route))
  }

  private func isDenied(_ question: HTTPDNSQuestion, _ route: Route) -> Bool {
    deniedNames.contains(deniedKey(question, route), now: loop.now)
  }

  /// NXDOMAIN holds for every type, and on every network.
  private func deniedKey(_ question: HTTPDNSQuestion, _ route: Route) -> QuestionKey {
    let scope = CacheScope(
      type: CacheKey.everyType, dnssecOK: false, checkingDisabled: false, route: route.number, network: 0)
    return withKey(question.name, scope) { QuestionKey($0) }
  }
}

/// Names for which the providers said NXDOMAIN a moment ago. Resolver's loop only.
struct DeniedNames {
  private var ends: [QuestionKey: BootInstant] = [:]

  /// A bound on memory: beyond it, names whose time is over make room, then any.
  private static let limit = 4096

  /// Whether the name does not exist by the providers' word, and that still counts.
  func contains(_ key: QuestionKey, now: BootInstant) -> Bool { ends[key].map { now < $0 } ?? false }

  /// The providers said NXDOMAIN for the name.
  mutating func note(_ key: QuestionKey, until end: BootInstant, now: BootInstant) {
    if ends.count >= DeniedNames.limit, ends[key] == nil {
      ends = ends.filter { now < $0.value }
      if ends.count >= DeniedNames.limit {
        for key in ends.keys.prefix(DeniedNames.limit / 8) { ends[key] = nil }
      }
    }
    ends[key] = end
  }

  /// Forgets those names.
  mutating func remove(_ names: CacheSelection) { ends = ends.filter { !names.contains(key: $0.key.octets) } }
}

extension Outcome {
  /// Whether it says that the name exists.
  var isThere: Bool { if case .success(let answer) = result { !answer.deniesName } else { false } }

  /// Whether it says that the name does not exist.
  var isDenial: Bool { if case .success(let answer) = result { answer.deniesName } else { false } }

  /// NXDOMAIN counts for a moment only.
  fileprivate var unconfirmed: Outcome {
    guard case .success(var answer) = result else { return self }
    answer.lifetime = min(answer.lifetime, Resolver.unconfirmedDenial)
    return Outcome(result: .success(answer), source: source)
  }

  /// NXDOMAIN becomes a failure: what is cached goes on.
  var unlessDenied: Outcome {
    isDenial ? Outcome(result: .failure(.unserved), source: source) : self
  }
}

extension AnswerSource {
  /// The name by which failures and reports know it.
  var name: String {
    switch self {
    case .provider(let name, _): name
    case .localDNS: "localdns"
    case .cache: "the cache"
    case .ourselves: "httpdnsd"
    }
  }
}
