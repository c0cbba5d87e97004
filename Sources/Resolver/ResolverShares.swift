// ResolverShares.swift -- nobody takes everything: who may go upstream, and who makes room for whom.
//
// A limit of ours never leads to LocalDNS, and nothing is remembered of it: stale data, else SERVFAIL with an extended error.

import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Upstreams

/// What stood in a query's way.
package enum ShareLimit: Int, CaseIterable, Sendable {
  /// `listen.misses_per_client`
  case missesPerClient
  /// `listen.misses_per_domain`
  case missesPerDomain
  /// `listen.max_in_flight`: all places are taken, or this one was given to somebody with less.
  case places
  /// The clients that may wait at once, of which one domain has most.
  case waiting

  /// One word for programs.
  package var word: String {
    switch self {
    case .missesPerClient: "misses_per_client"
    case .missesPerDomain: "misses_per_domain"
    case .places: "max_in_flight"
    case .waiting: "waiting_clients"
    }
  }

  /// What has happened and what would help, for a person, without the name that was asked for or who asked.
  var warning: String {
    switch self {
    case .missesPerClient:
      "a client asks for more names upstream than listen.misses_per_client allows while others ask; "
        + "further queries get stale data or SERVFAIL; raise it if that client may"
    case .missesPerDomain:
      "clients ask for more names of one domain upstream than listen.misses_per_domain allows; "
        + "further queries get stale data or SERVFAIL; raise it if so many names are expected"
    case .places:
      "listen.max_in_flight questions are in flight; the client or domain with the most makes room, and further queries "
        + "get stale data or SERVFAIL; raise it if so many questions are expected"
    case .waiting:
      "too many queries wait, in all or of one client or domain; further ones get stale data or SERVFAIL; raise "
        + "listen.max_in_flight if so many are expected: four times as many queries may wait"
    }
  }
}

/// What is said in the log, once a minute at most, when a bound of ours is reached.
package enum ReachedBound: Hashable, Sendable {
  /// A query got stale data or SERVFAIL for it.
  case share(ShareLimit)
  /// `subnets_per_name`: a query was taken as if it had no client subnet.
  case subnetsPerName

  /// One word for programs.
  package var word: String {
    switch self {
    case .share(let limit): limit.word
    case .subnetsPerName: "subnets_per_name"
    }
  }

  /// What has happened and what would help, for a person, without the name that was asked for or who asked.
  package var warning: String {
    switch self {
    case .share(let limit): limit.warning
    case .subnetsPerName:
      "clients in more networks than the provider's subnets_per_name allows ask for one name; further ones share an answer; "
        + "raise it if so many networks are expected"
    }
  }
}

/// Queries that a limit of ours stood in the way of.
package struct ShareCounters: Sendable, Equatable {
  private var counts = [UInt64](repeating: 0, count: 2 * ShareLimit.allCases.count)
  /// Questions that gave up their place for somebody with less.
  package internal(set) var displaced: UInt64 = 0

  /// None.
  package init() {}

  /// Queries that got stale data, or SERVFAIL, for that.
  package func count(_ limit: ShareLimit, stale: Bool) -> UInt64 { counts[2 * limit.rawValue + (stale ? 1 : 0)] }

  /// Queries that got the one or the other.
  package func count(_ limit: ShareLimit) -> UInt64 { count(limit, stale: true) + count(limit, stale: false) }

  mutating func add(_ limit: ShareLimit, stale: Bool, _ queries: Int = 1) {
    counts[2 * limit.rawValue + (stale ? 1 : 0)] += UInt64(queries)
  }
}

extension Resolver {
  /// Answers that are sent in one turn of the loop; others get theirs between.
  static let answersPerTurn = 1024

  /// Whether the question may go upstream, and has a place there from now on if it does; otherwise why not.
  ///
  /// - Parameters:
  ///   - isPinned: whether it is in `refresh.keep`, which comes first.
  ///   - isInUse: whether its name is in use already.
  func refusal(
    _ asked: ResolverQuestion, _ client: ClientKey, _ domain: DomainKey, isPinned: Bool, isInUse: Bool
  ) -> ShareLimit? {
    let room = room(for: isPinned ? .ourselves : client, domain)
    guard let room else { return isPinned ? nil : .places }
    // A question without a place does not count against its client and domain, and a refused one takes no place.
    if !isPinned, let limit = missLimit(asked, client, domain, isInUse: isInUse) { return limit }
    if case .of(let fetch) = room { displace(fetch) }
    return nil
  }

  /// What a second's worth of questions says: only where the route leads to somebody who may bill.
  func missLimit(
    _ asked: ResolverQuestion, _ client: ClientKey, _ domain: DomainKey, isInUse: Bool
  ) -> ShareLimit? {
    let providers = asked.route.providers.lazy.map { asked.configuration.upstreams[$0] }
    guard providers.contains(where: { !$0.answersAtOnce }) else { return nil }
    switch misses.take(client, domain, isInUse: isInUse, now: loop.now.nanoseconds) {
    case .client: return .missesPerClient
    case .domain: return .missesPerDomain
    case nil: return nil
    }
  }

  /// Whether a question has its part of what is kept of a day's units: it has data that are in use, or is always kept
  /// fresh, or is fetched again.
  func isInUse(_ fetch: Fetch) -> Bool {
    if fetch.isRefresh || refresher?.keepsFresh(fetch.question) ?? false { return true }
    return store.find(fetch.asked, now: loop.now)?.isInUse ?? false
  }

  /// The client's own subnet, where the route's providers are told it, and the name does not have its share of them.
  func clientSubnet(
    _ asked: ClientQuery, _ name: DomainName, _ route: Route
  ) -> QueryClientSubnet {
    let none = QueryClientSubnet()
    guard asked.query.clientSubnet.sourceLength > 0, route.asksForSubnets else { return none }
    let subnet = asked.query.clientSubnet.capped
    var hashes = [Hasher(), Hasher()]
    hashes[0].combine(name)
    hashes[1].combine([subnet.high, subnet.low, UInt64(subnet.family), UInt64(subnet.sourceLength)])
    let keys = hashes.map { UInt64(bitPattern: Int64($0.finalize())) }
    let isAdmitted = subnets.admits(
      name: keys[0], subnet: keys[1], most: route.subnetsPerName, now: loop.now.nanoseconds)
    if !isAdmitted {
      counters.surplusSubnets += 1
      onLimit(.subnetsPerName)
    }
    return isAdmitted ? subnet : none
  }

  /// Where a newcomer finds a place.
  private enum Room {
    case free
    /// This one has to give it up.
    case of(Fetch)
  }

  /// A place that is free, or that of somebody with more; nil where there is neither.
  private func room(for client: ClientKey, _ domain: DomainKey) -> Room? {
    guard places.isFull else { return .free }
    guard let candidate = places.candidate(for: client, domain, now: loop.now.nanoseconds) else { return nil }
    // The transfers of those that have lost their place go on for a while, and must have a bound as well. Half of that is
    // for clients that have less than others: nobody uses it up by changes among its own questions.
    guard lingering < (candidate.reason == .client ? places.capacity : places.capacity / 2) else { return nil }
    guard let fetch = candidate.place.holder as? Fetch else { preconditionFailure("a place is held by a fetch") }
    return .of(fetch)
  }

  /// A question gives its place up: its clients get what there is. What comes of it still is kept.
  private func displace(_ fetch: Fetch) {
    guard let place = fetch.place else { return }
    places.leave(place)
    fetch.place = nil
    fetch.isDisplaced = true
    lingering += 1
    counters.shares.displaced += 1
    guard !fetch.isAnswered else { return }
    let isStale = store.find(fetch.asked, now: loop.now) != nil
    counters.shares.add(.places, stale: isStale, fetch.slots.count)
    onLimit(.share(.places))
    let held = fetch.held?.source == .localDNS ? nil : fetch.held
    deliver(fetch, held ?? .failure(.limited(.places)))
  }

  /// The last attempt of a fetch has ended.
  func leave(_ fetch: Fetch) {
    if let place = fetch.place {
      places.leave(place)
      fetch.place = nil
    } else if fetch.isDisplaced {
      fetch.isDisplaced = false
      lingering -= 1
    }
  }

  /// Queries for names of one domain that may wait however few slots are free.
  private static let fewWaiters = 16

  /// Whether one domain's clients take so many of the slots that others could find none: at most twice as many as are free.
  func isCrowded(_ domain: DomainKey) -> Bool {
    guard let waiting = waiting[domain] else { return false }
    return waiting > Resolver.fewWaiters && waiting > 2 * replies.queries.available
  }

  /// A query waits from now on.
  func addWaiter(_ slot: Int, _ fetch: Fetch) {
    fetch.slots.append(slot)
    waiting[fetch.domain, default: 0] += 1
  }

  /// Everybody who waits is answered: at once where they are few, and a part in each turn where they are many.
  func answer(
    _ slots: [Int], of domain: DomainKey, _ result: Result<FinishedAnswer, UpstreamFailure>, _ source: AnswerSource
  ) {
    for slot in slots.prefix(Resolver.answersPerTurn) { replies.send(result, to: slot, from: source) }
    let count = min(slots.count, Resolver.answersPerTurn)
    if count > 0 {
      let left = (waiting[domain] ?? 0) - count
      waiting[domain] = left > 0 ? left : nil
    }
    guard slots.count > Resolver.answersPerTurn else { return }
    let rest = Array(slots[Resolver.answersPerTurn...])
    loop.schedule(after: .zero) { [self] in assumeIsolated { $0.answer(rest, of: domain, result, source) } }
  }

  /// A query gets what there is without asking anybody.
  func refuse(_ slot: Int, _ limit: ShareLimit, _ entry: CachedAnswer?, _ asked: ResolverQuestion) {
    if limit == .places { counters.overflows += 1 }
    counters.shares.add(limit, stale: entry != nil)
    onLimit(.share(limit))
    replies.send(given(entry, or: .limited(limit), asked), to: slot)
  }
}

extension UpstreamFailure {
  /// A limit of ours: nothing was learned about the question.
  static func limited(_ limit: ShareLimit) -> UpstreamFailure {
    let reason =
      switch limit {
      case .missesPerClient: "more than misses_per_client"
      case .missesPerDomain: "more than misses_per_domain"
      case .places: "too many questions in flight"
      case .waiting: "too many clients wait for names of this domain"
      }
    return UpstreamFailure(.other, reason, .ourselves)
  }
}
