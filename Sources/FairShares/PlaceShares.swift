// PlaceShares.swift -- shares a fixed number of places between clients and domains. Pure; one thread.
//
// No one is refused while a place is free, so a single client may hold all of them. When none is free, a client with fewer
// places than the client with the most gets one of that client's; likewise between the domains of one client.

import EventLoop

/// A fixed number of places and their holders.
///
/// The holders' type is not a parameter: a generic class of this module would look up its types' metadata with each call.
public final class PlaceShares {
  /// An occupied place.
  public final class Place {
    /// The holder, as `enter` was given it.
    public unowned let holder: AnyObject
    /// The time of `enter`, in nanoseconds of the caller's clock.
    public let since: Int64
    /// Whether and since when the place ages: an old place may be reassigned.
    fileprivate var age = Age.none
    fileprivate let domain: DomainKey
    /// Nil if the place is the daemon's own, which is never reassigned.
    fileprivate var group: Group?
    fileprivate var byAge = Neighbours()
    fileprivate var byGroup = Neighbours()

    fileprivate init(_ holder: AnyObject, _ domain: DomainKey, since: Int64) {
      self.holder = holder
      self.domain = domain
      self.since = since
    }
  }

  /// Determines when a place may be reassigned because of its age.
  fileprivate enum Age {
    /// Never: it is the daemon's own.
    case none
    /// It serves one client.
    case alone
    /// It has served several clients since then.
    case shared(since: Int64)
  }

  /// The neighbours of a place in a list.
  fileprivate struct Neighbours {
    unowned var previous: Place?
    var next: Place?
  }

  /// What has places. The more, the higher in its heap.
  fileprivate class Counted: Ranked {
    private(set) var count = 0
    var position = -1

    func precedes(_ other: Counted) -> Bool { count > other.count }

    /// Counts a place that an element of a heap has got, or has lost; without one, it leaves the heap.
    static func add<Element: Counted>(_ change: Int, to element: Element, in heap: inout RankedHeap<Element>) {
      element.count += change
      if element.position < 0 { heap.insert(element) } else { heap.update(element) }
      if element.count == 0 { heap.remove(element) }
    }
  }

  fileprivate final class Client: Counted {
    let key: ClientKey
    var groups: [DomainKey: Group] = [:]
    var heap = RankedHeap<Group>()

    init(_ key: ClientKey) { self.key = key }
  }

  /// The places of one client for one domain, the oldest first.
  fileprivate final class Group: Counted {
    unowned let client: Client
    let domain: DomainKey
    var places = PlaceList(.byGroup)

    init(_ client: Client, _ domain: DomainKey) {
      self.client = client
      self.domain = domain
    }
  }

  public let capacity: Int
  /// The number of occupied places. The daemon's own may exceed `capacity`.
  public private(set) var count = 0
  private var clients: [ClientKey: Client] = [:]
  private var heap = RankedHeap<Client>()
  /// Places that serve one client, the oldest first.
  private var alone = PlaceList(.byAge)
  /// Places that serve several clients, the longest shared first.
  private var shared = PlaceList(.byAge)

  /// The age at which a place may be reassigned, in nanoseconds.
  public static var oldAge: Int64 { 200_000_000 }
  /// The same for a place with several clients, since the second one joined.
  public static var oldSharedAge: Int64 { 1_000_000_000 }

  public init(capacity: Int) { self.capacity = capacity }

  /// Whether no place is free.
  public var isFull: Bool { count >= capacity }

  /// The number of comparisons in the heaps, for tests.
  public var steps: Int { clients.values.reduce(heap.steps) { $0 + $1.heap.steps } }

  public func count(of client: ClientKey) -> Int { clients[client]?.count ?? 0 }

  /// Occupies a place, also if none is free.
  ///
  /// - Parameter client: `ourselves` for a place that is never reassigned.
  public func enter(_ holder: AnyObject, _ client: ClientKey, _ domain: DomainKey, now: Int64) -> Place {
    let place = Place(holder, domain, since: now)
    count += 1
    guard client != .ourselves else { return place }
    assign(place, client)
    alone.append(place)
    place.age = .alone
    return place
  }

  /// Frees a place.
  public func leave(_ place: Place) {
    count -= 1
    stopAgeing(place)
    release(place)
  }

  /// Records that another client waits for the same question. From the first such call on, the place ages more slowly, and
  /// it counts for the client with fewer places, so that a client does not suffer from sharing a question with a greedy one.
  public func join(_ place: Place, _ client: ClientKey, now: Int64) {
    guard let group = place.group, group.client.key != client else { return }
    if case .alone = place.age {
      stopAgeing(place)
      place.age = .shared(since: now)
      shared.append(place)
    }
    guard count(of: client) + 1 < group.client.count else { return }
    release(place)
    assign(place, client)
  }

  /// The place to reassign to a new question when all are occupied; nil if its client has as many as any other and no place
  /// is old enough.
  ///
  /// The client with the most places loses the oldest place of its busiest domain. If that is the new question's own client,
  /// its busiest domain loses one, provided it has more places than the new question's domain. Otherwise age decides: the
  /// oldest place of all, shared ones last, unless its client has fewer places than the new question's.
  /// - Complexity: O(1)
  public func candidate(for client: ClientKey, _ domain: DomainKey, now: Int64) -> Candidate? {
    let own = clients[client]
    let has = own?.count ?? 0
    if let most = heap.first, most.count > has + 1, let place = most.heap.first?.places.first {
      return Candidate(place: place, reason: .client)
    }
    if let own, let most = own.heap.first, most.count > (own.groups[domain]?.count ?? 0) + 1,
      let place = most.places.first
    {
      return Candidate(place: place, reason: .domain)
    }
    for oldest in [alone.first, shared.first] {
      guard let oldest, isOld(oldest, now: now), let group = oldest.group, group.client.count >= has else { continue }
      return Candidate(place: oldest, reason: .age)
    }
    return nil
  }

  /// The reason for reassigning a place.
  public enum Reason: Sendable {
    /// Its client has more places than the new question's.
    case client
    /// Its domain has more of the client's places than the new question's domain.
    case domain
    case age
  }

  /// A place to reassign.
  public struct Candidate {
    public let place: Place
    public let reason: Reason
  }

  private func isOld(_ place: Place, now: Int64) -> Bool {
    switch place.age {
    case .none: false
    case .alone: now - place.since >= Self.oldAge
    case .shared(let since): now - since >= Self.oldSharedAge
    }
  }

  private func stopAgeing(_ place: Place) {
    switch place.age {
    case .none: return
    case .alone: alone.remove(place)
    case .shared: shared.remove(place)
    }
    place.age = .none
  }

  private func assign(_ place: Place, _ key: ClientKey) {
    let client = clients[key] ?? Client(key)
    if client.count == 0 { clients[key] = client }
    let group = client.groups[place.domain] ?? Group(client, place.domain)
    if group.count == 0 { client.groups[place.domain] = group }
    Counted.add(1, to: client, in: &heap)
    Counted.add(1, to: group, in: &client.heap)
    group.places.append(place)
    place.group = group
  }

  private func release(_ place: Place) {
    guard let group = place.group else { return }
    let client = group.client
    group.places.remove(place)
    Counted.add(-1, to: group, in: &client.heap)
    Counted.add(-1, to: client, in: &heap)
    place.group = nil
    if group.count == 0 { client.groups[group.domain] = nil }
    if client.count == 0 { clients[client.key] = nil }
  }

  /// The lists that a place is in.
  fileprivate enum Chain { case byAge, byGroup }

  /// An intrusive list of places.
  fileprivate struct PlaceList {
    private let chain: Chain
    private(set) var first: Place?
    private unowned var last: Place?

    init(_ chain: Chain) { self.chain = chain }

    mutating func append(_ place: Place) {
      place[chain] = Neighbours(previous: last, next: nil)
      if let last { last[chain].next = place } else { first = place }
      last = place
    }

    mutating func remove(_ place: Place) {
      let (previous, next) = (place[chain].previous, place[chain].next)
      if let previous { previous[chain].next = next } else { first = next }
      if let next { next[chain].previous = previous } else { last = previous }
      place[chain] = Neighbours()
    }
  }
}

extension PlaceShares.Place {
  fileprivate subscript(chain: PlaceShares.Chain) -> PlaceShares.Neighbours {
    _read {
      switch chain {
      case .byAge: yield byAge
      case .byGroup: yield byGroup
      }
    }
    _modify {
      switch chain {
      case .byAge: yield &byAge
      case .byGroup: yield &byGroup
      }
    }
  }
}
