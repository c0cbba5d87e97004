// TCPPlaces.swift -- tracks which client holds each TCP connection, and selects the one to close for a new one.
//
// Pure: no sockets, no clock. A change costs O(log n) in the number of clients.

import EventLoop
import FairShares

/// The connections of each client, idle and busy, in the order in which they became so.
package struct TCPPlaces {
  private struct Place {
    var client: Int
    var isIdle: Bool
    /// The time since which it is idle or busy.
    var since: BootInstant
    /// The number of that change, which orders changes within one turn of the loop, where the time is the same.
    var change: UInt64
    var lastUse: BootInstant
  }

  private struct Client {
    var key: ClientKey
    var count = 0
    var idle = Row()
    var busy = Row()
    /// Its ranks among the clients with an idle connection, and among all.
    let idleRank: Rank
    let rank: Rank

    init(_ key: ClientKey, number: Int) {
      self.key = key
      (idleRank, rank) = (Rank(of: number), Rank(of: number))
    }

    /// The connection to close first: the longest idle one, else the longest busy one.
    var first: Int { idle.isEmpty ? busy.first : idle.first }
  }

  /// A client's rank: the one with more connections loses one first, of equal ones that with the older change.
  private final class Rank: Ranked {
    let client: Int
    var count = 0
    var change: UInt64 = 0
    var position = -1

    init(of client: Int) { self.client = client }

    func precedes(_ other: Rank) -> Bool { count == other.count ? change < other.change : count > other.count }
  }

  private var changes: UInt64 = 0
  private var places: [Place] = []
  private var freePlaces: [Int] = []
  private var clients: [Client] = []
  private var freeClients: [Int] = []
  private var known: [ClientKey: Int] = [:]
  /// Links the idle and the busy connections of each client.
  private var clientLinks = RowLinks()
  /// Links all connections in order of last use.
  private var useLinks = RowLinks()
  private var uses = Row()
  /// The clients with an idle connection, the one with the most connections first.
  private var idleClients = RankedHeap<Rank>()
  /// All clients, the one with the most connections first.
  private var allClients = RankedHeap<Rank>()

  /// How long a newly idle connection is safe from clients with as many or more connections: a query may be on its way.
  package static let settledAfter = Duration.seconds(1)

  package init() {}

  /// The number of connections.
  package private(set) var count = 0

  /// The number of a client's connections.
  package func count(of key: ClientKey) -> Int { known[key].map { clients[$0].count } ?? 0 }

  /// Adds an idle connection and returns its place, a small number that is reused after `remove`.
  package mutating func add(_ key: ClientKey, now: BootInstant) -> Int {
    let client = known[key] ?? addClient(key)
    let place = freePlaces.popLast() ?? places.count
    changes += 1
    let new = Place(client: client, isIdle: true, since: now, change: changes, lastUse: now)
    if place == places.count { places.append(new) } else { places[place] = new }
    count += 1
    clients[client].count += 1
    clientLinks.append(place, to: &clients[client].idle)
    useLinks.append(place, to: &uses)
    sort(client)
    return place
  }

  private mutating func addClient(_ key: ClientKey) -> Int {
    let client = freeClients.popLast() ?? clients.count
    let new = Client(key, number: client)
    if client == clients.count { clients.append(new) } else { clients[client] = new }
    known[key] = client
    return client
  }

  /// Frees a place.
  package mutating func remove(_ place: Int) {
    let client = places[place].client
    leave(place)
    useLinks.remove(place, from: &uses)
    freePlaces.append(place)
    count -= 1
    clients[client].count -= 1
    sort(client)
    guard clients[client].count == 0 else { return }
    known[clients[client].key] = nil
    freeClients.append(client)
  }

  /// Records that a connection became idle or busy.
  package mutating func set(_ place: Int, isIdle: Bool, now: BootInstant) {
    guard places[place].isIdle != isIdle else { return }
    let client = places[place].client
    leave(place)
    places[place].isIdle = isIdle
    places[place].since = now
    changes += 1
    places[place].change = changes
    if isIdle {
      clientLinks.append(place, to: &clients[client].idle)
    } else {
      clientLinks.append(place, to: &clients[client].busy)
    }
    sort(client)
  }

  private mutating func leave(_ place: Int) {
    let client = places[place].client
    if places[place].isIdle {
      clientLinks.remove(place, from: &clients[client].idle)
    } else {
      clientLinks.remove(place, from: &clients[client].busy)
    }
  }

  /// Records activity on a connection.
  package mutating func use(_ place: Int, now: BootInstant) {
    places[place].lastUse = now
    useLinks.remove(place, from: &uses)
    useLinks.append(place, to: &uses)
  }

  /// The least recently used place and the time of its last use.
  package var leastUsed: (place: Int, lastUse: BootInstant)? {
    uses.isEmpty ? nil : (uses.first, places[uses.first].lastUse)
  }

  /// The place to free for a client that has reached its limit: its own longest idle one; nil if none is idle.
  package func placeOfItsOwn(_ key: ClientKey) -> Int? {
    guard let client = known[key], !clients[client].idle.isEmpty else { return nil }
    return clients[client].idle.first
  }

  /// The place to free for a new connection when all are taken; nil if the new connection must be refused.
  ///
  /// An idle connection goes first: of the client with the most connections, and among several such clients the longest idle
  /// one. If all connections are busy, a client with at least two more than the new one's client loses its longest busy
  /// connection.
  package func placeOfAnother(_ key: ClientKey, now: BootInstant) -> Int? {
    let count = count(of: key)
    let idle = idleClients.first.map { clients[$0.client].idle.first }
    if let idle, now - places[idle].since >= TCPPlaces.settledAfter { return idle }
    if let most, most.count > count + 1 { return most.place }
    if let idle, clients[places[idle].client].count > count { return idle }
    return placeOfItsOwn(key)
  }

  /// The number of connections of the client with the most, and the one that it would lose first.
  package var most: (count: Int, place: Int)? { allClients.first.map { ($0.count, clients[$0.client].first) } }

  /// Updates the position of a client in both heaps.
  private mutating func sort(_ number: Int) {
    let client = clients[number]
    let idle = client.idle.isEmpty ? nil : places[client.idle.first].change
    let first = client.first < 0 ? nil : places[client.first].change
    TCPPlaces.sort(client.idleRank, in: &idleClients, count: client.count, change: idle)
    TCPPlaces.sort(client.rank, in: &allClients, count: client.count, change: first)
  }

  /// - Parameter change: of the connection that the client loses first; nil without one, which has no rank.
  private static func sort(_ rank: Rank, in heap: inout RankedHeap<Rank>, count: Int, change: UInt64?) {
    guard let change else {
      if rank.position >= 0 { heap.remove(rank) }
      return
    }
    (rank.count, rank.change) = (count, change)
    if rank.position < 0 { heap.insert(rank) } else { heap.update(rank) }
  }
}

/// A linked list of numbers in the order in which they were appended.
private struct Row {
  var first = -1
  var last = -1
  var isEmpty: Bool { first < 0 }
}

/// The neighbours of each number in its list. A number is in at most one list at a time.
private struct RowLinks {
  private var links: [(previous: Int, next: Int)] = []

  mutating func append(_ number: Int, to row: inout Row) {
    while links.count <= number { links.append((-1, -1)) }
    links[number] = (row.last, -1)
    if row.isEmpty { row.first = number } else { links[row.last].next = number }
    row.last = number
  }

  mutating func remove(_ number: Int, from row: inout Row) {
    let (previous, next) = links[number]
    if previous < 0 { row.first = next } else { links[previous].next = next }
    if next < 0 { row.last = previous } else { links[next].previous = previous }
  }
}
