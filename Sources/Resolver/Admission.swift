// Admission.swift -- which questions may go upstream, and whose place they take.
//
// Resolver's loop only. It decides; the resolver answers the queries of what is stopped or displaced.

import Configuration
import DNSWire
import EventLoop
import FairShares
import Frontend

/// The shares of clients and domains in the questions that go upstream and in the queries that wait.
final class Admission {
  /// The places of the questions in flight, and their clients.
  private let places: PlaceShares
  /// Questions that have lost their place while their transfers have not ended.
  private(set) var lingering = 0
  /// The limits per second of clients and domains.
  private var misses: MissLimits
  /// The client subnets for which names are asked.
  private var subnets = SubnetShares()
  /// Queries that wait, by the domain of their names.
  private var waiting: [DomainKey: Int] = [:]

  /// Queries for names of one domain that may always wait, however few slots are free.
  private static let fewWaiters = 16

  init(_ settings: ResolverSettings) {
    places = PlaceShares(capacity: settings.listen.maxInFlight)
    misses = MissLimits(perClient: settings.listen.missesPerClient, perDomain: settings.listen.missesPerDomain)
  }

  /// Applies new limits per second.
  func use(_ settings: ResolverSettings) {
    guard misses.rates != (settings.listen.missesPerClient, settings.listen.missesPerDomain) else { return }
    misses = MissLimits(perClient: settings.listen.missesPerClient, perDomain: settings.listen.missesPerDomain)
  }

  // MARK: Places

  /// Fetches that hold a place.
  var count: Int { places.count }
  var isFull: Bool { places.isFull }
  /// The places of a client; for tests.
  func count(of client: ClientKey) -> Int { places.count(of: client) }

  func enter(_ fetch: Fetch, now: BootInstant) {
    fetch.place = places.enter(fetch, fetch.client, fetch.domain, now: now.nanoseconds)
  }

  /// Another client waits for the fetch.
  func join(_ fetch: Fetch, _ client: ClientKey, now: BootInstant) {
    if let place = fetch.place { places.join(place, client, now: now.nanoseconds) }
  }

  /// Releases the place of a fetch; returns whether it had one.
  @discardableResult
  func release(_ fetch: Fetch) -> Bool {
    guard let place = fetch.place else { return false }
    places.leave(place)
    fetch.place = nil
    return true
  }

  /// Takes the place from a fetch whose transfers go on; returns whether it had one.
  func displace(_ fetch: Fetch) -> Bool {
    guard release(fetch) else { return false }
    lingering += 1
    return true
  }

  /// The last attempt of a fetch has ended.
  func leave(_ fetch: Fetch) { if !release(fetch), fetch.state.leave() { lingering -= 1 } }

  /// A place for a new question.
  private enum Room {
    case free
    /// The place of this fetch, which is to be displaced.
    case of(Fetch)
  }

  /// A free place, or one that can be reassigned; nil if there is neither.
  private func room(for client: ClientKey, _ domain: DomainKey, now: BootInstant) -> Room? {
    guard places.isFull else { return .free }
    guard let candidate = places.candidate(for: client, domain, now: now.nanoseconds) else { return nil }
    // The transfers of displaced fetches continue for a while, so their number is limited too. Half of that limit is
    // reserved for clients that have fewer places than another one: no client uses it up by displacing its own
    // questions.
    guard lingering < (candidate.reason == .client ? places.capacity : places.capacity / 2) else { return nil }
    guard let fetch = candidate.place.holder as? Fetch else { preconditionFailure("a place is held by a fetch") }
    return .of(fetch)
  }

  // MARK: Limits

  /// The limit that stops a question; nil if it may go upstream. A question in `refresh.keep` may also go upstream without a
  /// place.
  ///
  /// - Parameters:
  ///   - isPinned: whether it is in `refresh.keep`: it takes precedence, and no limit applies.
  ///   - isInUse: whether its cached answer is in use.
  ///   - takePlace: called with the fetch that loses its place, if none is free.
  func refusal(
    _ asked: ResolverQuestion, _ client: ClientKey, _ domain: DomainKey, isPinned: Bool, isInUse: Bool,
    now: BootInstant, takePlace: (Fetch) -> Void
  ) -> ShareLimit? {
    let room = room(for: isPinned ? .ourselves : client, domain, now: now)
    guard let room else { return isPinned ? nil : .places }
    // In this order, a question without a place does not count against its client and domain, and one above their
    // limits displaces no fetch.
    if !isPinned, let limit = missLimit(asked, client, domain, isInUse: isInUse, now: now) { return limit }
    if case .of(let fetch) = room { takePlace(fetch) }
    return nil
  }

  /// The limit per second that stops a question, if any. Questions count only on routes with a provider that sends
  /// requests, because these may be billed.
  func missLimit(
    _ asked: ResolverQuestion, _ client: ClientKey, _ domain: DomainKey, isInUse: Bool, now: BootInstant
  ) -> ShareLimit? {
    guard asked.route.sendsRequests else { return nil }
    switch misses.take(client, domain, isBilled: asked.route.isBilled, isInUse: isInUse, now: now.nanoseconds) {
    case .client: return .missesPerClient
    case .domain: return .missesPerDomain
    case nil: return nil
    }
  }

  /// Whether a name may be asked for this client subnet as well.
  func admits(_ subnet: QueryClientSubnet, of name: DomainName, _ route: Route, now: BootInstant) -> Bool {
    var hashes = [Hasher(), Hasher()]
    hashes[0].combine(name)
    hashes[1].combine([subnet.high, subnet.low, UInt64(subnet.family), UInt64(subnet.sourceLength)])
    let keys = hashes.map { UInt64(bitPattern: Int64($0.finalize())) }
    return subnets.admits(name: keys[0], subnet: keys[1], most: route.subnetsPerName, now: now.nanoseconds)
  }

  // MARK: Waiting queries

  /// Whether no query waits; for tests.
  var isQuiet: Bool { waiting.isEmpty }

  /// Whether a domain's queries hold too many slots for others to find one: more than twice as many as are free.
  func isCrowded(_ domain: DomainKey, free: @autoclosure () -> Int) -> Bool {
    guard let waiting = waiting[domain] else { return false }
    return waiting > Admission.fewWaiters && waiting > 2 * free()
  }

  func addWaiter(of domain: DomainKey) { waiting[domain, default: 0] += 1 }

  func removeWaiters(_ count: Int, of domain: DomainKey) {
    guard count > 0 else { return }
    let left = (waiting[domain] ?? 0) - count
    waiting[domain] = left > 0 ? left : nil
  }
}
