// ResolverShares.swift -- our own limits, their counters, and what a query gets that one of them stops.
//
// A query above a limit gets stale data, or SERVFAIL with an extended error. It never goes to LocalDNS, and no failure
// is cached.

import DNSWire
import EventLoop
import Frontend
import MessageCache
import Refresh
import Upstreams

/// One of our own limits, which stops a query.
package enum ShareLimit: Int, CaseIterable, Sendable {
  /// `listen.misses_per_client`
  case missesPerClient
  /// `listen.misses_per_domain`
  case missesPerDomain
  /// `listen.max_in_flight`: all places are taken, or the question's place was given to another one.
  case places
  /// The number of queries that may wait: no slot is free, or one domain holds too many.
  case waiting

  /// Its name in logs and statistics.
  package var word: String {
    switch self {
    case .missesPerClient: "misses_per_client"
    case .missesPerDomain: "misses_per_domain"
    case .places: "max_in_flight"
    case .waiting: "waiting_clients"
    }
  }

  /// A log message: what happened and what would help, without QNAME and client.
  var warning: String {
    switch self {
    case .missesPerClient:
      "a client sends more questions upstream than listen.misses_per_client allows while others wait; "
        + "further queries get stale data or SERVFAIL; raise it if that client may"
    case .missesPerDomain:
      "clients ask for more names of one domain upstream than listen.misses_per_domain allows; "
        + "further queries get stale data or SERVFAIL; raise it if that many names are expected"
    case .places:
      "listen.max_in_flight questions are in flight; the client or domain with the most makes room, and further queries "
        + "get stale data or SERVFAIL; raise it if that many questions are expected"
    case .waiting:
      "too many queries wait, in all or of one client or domain; further ones get stale data or SERVFAIL; raise "
        + "listen.max_in_flight if that many are expected: four times as many queries may wait"
    }
  }
}

/// One of our own limits; reaching it is logged at most once a minute.
package enum ReachedBound: Hashable, Sendable {
  /// A query above it gets stale data or SERVFAIL.
  case share(ShareLimit)
  /// `subnets_per_name`: a query above it is treated as if it had no client subnet.
  case subnetsPerName

  /// Its name in logs and statistics.
  package var word: String {
    switch self {
    case .share(let limit): limit.word
    case .subnetsPerName: "subnets_per_name"
    }
  }

  /// A log message: what happened and what would help, without QNAME and client.
  package var warning: String {
    switch self {
    case .share(let limit): limit.warning
    case .subnetsPerName:
      "clients in more networks than the provider's subnets_per_name allows ask for one name; further ones share an answer; "
        + "raise it if that many networks are expected"
    }
  }
}

/// Counts of the queries stopped by each limit.
package struct ShareCounters: Sendable, Equatable {
  private var counts = [UInt64](repeating: 0, count: 2 * ShareLimit.allCases.count)
  /// Questions whose place was given to another one.
  package internal(set) var displaced: UInt64 = 0

  /// The queries that got stale data because of a limit, or those that got SERVFAIL.
  package func count(_ limit: ShareLimit, stale: Bool) -> UInt64 { counts[2 * limit.rawValue + (stale ? 1 : 0)] }

  /// All queries stopped by a limit.
  package func count(_ limit: ShareLimit) -> UInt64 { count(limit, stale: true) + count(limit, stale: false) }

  mutating func add(_ limit: ShareLimit, stale: Bool, queries: Int = 1) {
    counts[2 * limit.rawValue + (stale ? 1 : 0)] += UInt64(queries)
  }
}

extension Resolver {
  /// Whether a question may use the part of a provider's daily units that is reserved for names in use: its cached
  /// answer is in use, it is in `refresh.keep`, or it is a refresh.
  func isInUse(_ fetch: Fetch) -> Bool {
    if fetch.state.isRefresh || refresher?.isOnKeepList(fetch.question) ?? false { return true }
    return store.find(fetch.asked, now: loop.now)?.isInUse ?? false
  }

  /// The client's subnet, if the route's providers receive subnets and the name is below its limit; else none.
  func clientSubnet(_ asked: ClientQuery, _ name: DomainName, _ route: Route) -> QueryClientSubnet {
    let none = QueryClientSubnet()
    guard asked.query.clientSubnet.sourceLength > 0, route.asksForSubnets else { return none }
    let subnet = asked.query.clientSubnet.capped
    if admission.admits(subnet, of: name, route, now: loop.now) { return subnet }
    tally.surplusSubnets += 1
    onLimit(.subnetsPerName)
    return none
  }

  /// Answers a query above a limit, without asking an upstream: as its repeat within a second, with stale data, or SERVFAIL.
  func refuse(slot: Int, _ limit: ShareLimit, _ entry: CachedAnswer?, _ asked: ResolverQuestion) {
    if let answer = recent.answer(to: asked.key, now: loop.now) {
      tally.joined += 1
      return replies.send(answer, to: slot)
    }
    if limit == .places { tally.overflows += 1 }
    tally.shares.add(limit, stale: entry != nil)
    onLimit(.share(limit))
    replies.send(given(entry, or: .limited(limit), asked), to: slot)
  }
}

extension UpstreamFailure {
  /// The failure of a question above one of our own limits; it says nothing about the question itself.
  static func limited(_ limit: ShareLimit) -> UpstreamFailure {
    let reason =
      switch limit {
      case .missesPerClient: "more than misses_per_client"
      case .missesPerDomain: "more than misses_per_domain"
      case .places: "too many questions in flight"
      case .waiting: "too many clients wait for names of this domain"
      }
    return UpstreamFailure(.other, reason, .ours)
  }
}
