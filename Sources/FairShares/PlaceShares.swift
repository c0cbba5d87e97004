// PlaceShares.swift -- who holds how many places, and who gives one up when all are taken. Pure; one thread.
//
// Nobody is refused while a place is free, so one who is alone may have them all. When none is left, a newcomer with less
// than the most that anybody has gets a place of theirs: first between clients, then between the domains of one client.

/// The places of a fixed number, and their holders.
public final class PlaceShares<Holder: AnyObject> {
  /// One place that is taken.
  public final class Place {
    /// Whoever was let in.
    public private(set) unowned var holder: Holder
    /// Since when, in nanoseconds of the caller's clock.
    public let since: Int64
    /// Whose it is, and since when: after a while it may go for its age.
    fileprivate var age = Age.none
    fileprivate let domain: DomainKey
    /// Nil where the place is the program's own, which nobody else gets.
    fileprivate var group: Group?
    fileprivate var byAge = Neighbours()
    fileprivate var byGroup = Neighbours()

    fileprivate init(_ holder: Holder, _ domain: DomainKey, since: Int64) {
      self.holder = holder
      self.domain = domain
      self.since = since
    }
  }

  /// What decides when a place may go for its age.
  fileprivate enum Age {
    /// It does not: it is the program's own.
    case none
    /// It is one client's.
    case alone
    /// Another client has waited for it, too, since then.
    case shared(since: Int64)
  }

  /// Places before and after one in a list.
  fileprivate struct Neighbours {
    unowned var previous: Place?
    var next: Place?
  }

  /// What one client has.
  fileprivate final class Client: Counted {
    let key: ClientKey
    var groups: [DomainKey: Group] = [:]
    var heap = CountHeap<Group>()

    init(_ key: ClientKey) { self.key = key }
  }

  /// What one client has of one domain, the oldest first.
  fileprivate final class Group: Counted {
    unowned let client: Client
    let domain: DomainKey
    var places = PlaceList(\.byGroup)

    init(_ client: Client, _ domain: DomainKey) {
      self.client = client
      self.domain = domain
    }
  }

  /// How many places there are.
  public let capacity: Int
  /// How many are taken. The program's own may be more than there are.
  public private(set) var count = 0
  private var clients: [ClientKey: Client] = [:]
  private var heap = CountHeap<Client>()
  /// Places of one client each, the oldest first.
  private var alone = PlaceList(\.byAge)
  /// Places for which several wait, those that were shared first at the front.
  private var shared = PlaceList(\.byAge)

  /// A place may change hands for its age from then on, in nanoseconds.
  public static var oldAge: Int64 { 200_000_000 }
  /// The same of a place for which several wait, since a second client came.
  public static var oldSharedAge: Int64 { 1_000_000_000 }

  /// All are free.
  public init(capacity: Int) { self.capacity = capacity }

  /// Whether none is free.
  public var isFull: Bool { count >= capacity }

  /// Comparisons so far, for tests: it is the heaps that could be slow.
  public var steps: Int { clients.values.reduce(heap.steps) { $0 + $1.heap.steps } }

  /// How many places a client has.
  public func count(of client: ClientKey) -> Int { clients[client]?.count ?? 0 }

  /// Takes a place.
  ///
  /// - Parameter client: `ourselves` for a place that nobody else gets.
  public func enter(_ holder: Holder, _ client: ClientKey, _ domain: DomainKey, now: Int64) -> Place {
    let place = Place(holder, domain, since: now)
    count += 1
    guard client != .ourselves else { return place }
    assign(place, client)
    alone.append(place)
    place.age = .alone
    return place
  }

  /// Gives a place back.
  public func leave(_ place: Place) {
    count -= 1
    stopAgeing(place)
    release(place)
  }

  /// A client waits for what another one has the place for. It is older when it goes for its age, counted once and from now,
  /// and counts as the one's that has less: nobody's question suffers from being somebody greedy's too.
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

  /// Whose place a newcomer gets where all are taken; nil where it has as much as anybody, and nothing is old enough.
  ///
  /// The client with most gives up the oldest place of its busiest domain. Where that is the newcomer's own client, its
  /// busiest domain gives one up, if that has more than the newcomer's domain. Else age decides: the oldest place of all,
  /// unless its client has less than the newcomer's; one for which several wait after the others.
  /// - Complexity: O(1)
  public func candidate(for client: ClientKey, _ domain: DomainKey, now: Int64) -> Candidate? {
    let own = clients[client]
    let has = own?.count ?? 0
    if let most = heap.top, most.count > has + 1, let place = most.heap.top?.places.first {
      return Candidate(place: place, reason: .client)
    }
    if let own, let most = own.heap.top, most.count > (own.groups[domain]?.count ?? 0) + 1,
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

  /// Why a place changes hands.
  public enum Reason: Sendable {
    /// Its client has more places than the newcomer's.
    case client
    /// Its domain has more of the client's places than the newcomer's domain.
    case domain
    /// It is old.
    case age
  }

  /// A place that changes hands.
  public struct Candidate {
    /// The place.
    public let place: Place
    /// Why it is that one.
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
    heap.add(client)
    client.heap.add(group)
    group.places.append(place)
    place.group = group
  }

  private func release(_ place: Place) {
    guard let group = place.group else { return }
    let client = group.client
    group.places.remove(place)
    client.heap.remove(group)
    heap.remove(client)
    place.group = nil
    if group.count == 0 { client.groups[group.domain] = nil }
    if client.count == 0 { clients[client.key] = nil }
  }

  /// A list through the places themselves.
  fileprivate struct PlaceList {
    private let path: ReferenceWritableKeyPath<Place, Neighbours>
    private(set) var first: Place?
    private unowned var last: Place?

    init(_ path: ReferenceWritableKeyPath<Place, Neighbours>) { self.path = path }

    mutating func append(_ place: Place) {
      place[keyPath: path] = Neighbours(previous: last, next: nil)
      if let last { last[keyPath: path].next = place } else { first = place }
      last = place
    }

    mutating func remove(_ place: Place) {
      let (previous, next) = (place[keyPath: path].previous, place[keyPath: path].next)
      if let previous { previous[keyPath: path].next = next } else { first = next }
      if let next { next[keyPath: path].previous = previous } else { last = previous }
      place[keyPath: path] = Neighbours()
    }
  }
}
