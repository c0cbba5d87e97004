// TCPPlaces.swift -- who has which place among TCP connections, and whose is free for a newcomer.
//
// Pure: it knows neither sockets nor clocks. A change costs O(log n) in the number of clients.

import EventLoop
import FairShares

/// The places of connections, by client: those with a query in flight, and those that are idle, each since when.
package struct TCPPlaces {
  private struct Place {
    var client: Int
    var isIdle: Bool
    /// Since when it is idle, or busy.
    var since: BootInstant
    /// The change that made it so: what happens in one turn of a loop has one time.
    var change: UInt64
    var lastUse: BootInstant
  }

  private struct Client {
    var key: ClientKey
    var count = 0
    var idle = Row()
    var busy = Row()

    /// What waits for longest of what gives way first.
    var first: Int { idle.isEmpty ? busy.first : idle.first }
  }

  private var changes: UInt64 = 0
  private var places: [Place] = []
  private var freePlaces: [Int] = []
  private var clients: [Client] = []
  private var freeClients: [Int] = []
  private var known: [ClientKey: Int] = [:]
  /// The places of a client that are idle, and those that are not.
  private var clientLinks = RowLinks()
  /// All places, by their last use.
  private var useLinks = RowLinks()
  private var uses = Row()
  /// Those with an idle connection, the one with the most connections first.
  private var idleClients = ClientHeap()
  /// All of them, the one with the most connections first.
  private var allClients = ClientHeap()

  /// How long an idle connection is safe from clients that do not have fewer: the client's query may be on its way.
  package static let settledAfter = Duration.seconds(1)

  /// No connections.
  package init() {}

  /// Connections.
  package private(set) var count = 0

  /// Connections of a client.
  package func count(of key: ClientKey) -> Int { known[key].map { clients[$0].count } ?? 0 }

  /// Adds an idle connection: its place, a small number that is used again after `remove`.
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
    if client == clients.count { clients.append(Client(key: key)) } else { clients[client] = Client(key: key) }
    known[key] = client
    return client
  }

  /// Gives the place back.
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

  /// The connection has become idle, or got something to do.
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

  /// Something has passed over the connection.
  package mutating func use(_ place: Int, now: BootInstant) {
    places[place].lastUse = now
    useLinks.remove(place, from: &uses)
    useLinks.append(place, to: &uses)
  }

  /// The place that was not used for longest, and when it was.
  package var leastUsed: (place: Int, lastUse: BootInstant)? {
    uses.isEmpty ? nil : (uses.first, places[uses.first].lastUse)
  }

  /// The place that a newcomer takes where its client may have no more of them: its own that is idle for longest.
  package func placeOfItsOwn(_ key: ClientKey) -> Int? {
    guard let client = known[key], !clients[client].idle.isEmpty else { return nil }
    return clients[client].idle.first
  }

  /// The place that a newcomer takes where there is no free one; nil where it has no better right to any than its owner.
  ///
  /// What is idle goes first, that of the client with the most connections, and of several such clients that which is idle
  /// for longest. Where clients wait for answers on all places, one that has at least two more than the newcomer's loses the
  /// one that waits for longest.
  package func placeOfAnother(_ key: ClientKey, now: BootInstant) -> Int? {
    let count = count(of: key)
    let idle = idleClients.first.map { clients[$0].idle.first }
    if let idle, now - places[idle].since >= TCPPlaces.settledAfter { return idle }
    if let most, most.count > count + 1 { return most.place }
    if let idle, clients[places[idle].client].count > count { return idle }
    return placeOfItsOwn(key)
  }

  /// How many the client with the most connections has, and the one of them that it loses first.
  package var most: (count: Int, place: Int)? { allClients.first.map { (clients[$0].count, clients[$0].first) } }

  /// Puts a client where it belongs in both heaps.
  private mutating func sort(_ client: Int) {
    let (count, idle) = (clients[client].count, clients[client].idle)
    if idle.isEmpty {
      idleClients.remove(client)
    } else {
      idleClients.set(client, ClientHeap.Rank(count: count, change: places[idle.first].change))
    }
    if count == 0 {
      allClients.remove(client)
    } else {
      allClients.set(client, ClientHeap.Rank(count: count, change: places[clients[client].first].change))
    }
  }
}

/// Numbers in a row, in the order in which they joined it.
private struct Row {
  var first = -1
  var last = -1
  var isEmpty: Bool { first < 0 }
}

/// What stands beside each number in its row; a number is in one row at a time.
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

/// Clients in the order in which they have to give way. Indexes are small numbers.
private struct ClientHeap {
  struct Rank {
    var count: Int
    var change: UInt64

    /// More connections come first, then what is so for longer.
    func precedes(_ other: Rank) -> Bool { count == other.count ? change < other.change : count > other.count }
  }

  private var heap: [(client: Int, rank: Rank)] = []
  /// Where each client stands in the heap; -1 for nowhere.
  private var positions: [Int] = []

  /// Who comes first.
  var first: Int? { heap.first?.client }

  /// Adds a client, or gives it another rank.
  ///
  /// - Complexity: O(log n)
  mutating func set(_ client: Int, _ rank: Rank) {
    while positions.count <= client { positions.append(-1) }
    if positions[client] < 0 {
      positions[client] = heap.count
      heap.append((client, rank))
    } else {
      heap[positions[client]].rank = rank
    }
    rise(positions[client])
    sink(positions[client])
  }

  /// Takes a client out, if it is there.
  ///
  /// - Complexity: O(log n)
  mutating func remove(_ client: Int) {
    guard client < positions.count, positions[client] >= 0 else { return }
    let hole = positions[client]
    positions[client] = -1
    let last = heap.removeLast()
    guard hole < heap.count else { return }
    heap[hole] = last
    positions[last.client] = hole
    rise(hole)
    sink(positions[last.client])
  }

  private mutating func rise(_ start: Int) {
    var index = start
    while index > 0, case let parent = (index - 1) / 2, heap[index].rank.precedes(heap[parent].rank) {
      swap(index, parent)
      index = parent
    }
  }

  private mutating func sink(_ start: Int) {
    var index = start
    while true {
      var best = index
      var child = 2 * index + 1
      let end = min(child + 2, heap.count)
      while child < end {
        if heap[child].rank.precedes(heap[best].rank) { best = child }
        child += 1
      }
      guard best != index else { return }
      swap(index, best)
      index = best
    }
  }

  private mutating func swap(_ one: Int, _ other: Int) {
    heap.swapAt(one, other)
    positions[heap[one].client] = one
    positions[heap[other].client] = other
  }
}
