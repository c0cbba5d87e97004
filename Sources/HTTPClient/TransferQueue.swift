// TransferQueue.swift -- transfers that wait for a connection or a stream, and how those are shared.
//
// Owners are clients, and the domains of each client. A free place goes to the client with the fewest transfers, and of its
// domains to the one with the fewest. A client takes at most three times as many places as it leaves free, and a domain three
// quarters of those: clients whose transfers all hang leave others a place, up to 20 of them. Loop thread only.

/// The waiting transfers, and the number of transfers in flight per owner.
final class TransferQueue {
  /// A client, or a domain of a client.
  fileprivate final class Owner {
    /// Identifies it among its like; 0 is not limited.
    let share: UInt64
    /// The client of a domain.
    let client: Owner?
    /// Those of a client's domains that have waiting transfers.
    var waiting = OwnerHeap()
    /// The waiting transfers of a domain.
    var first: Transfer?
    var last: Transfer?
    /// Transfers that were dequeued and have not ended.
    var begun = 0
    /// When it had its last turn.
    var turn = 0
    /// Its place in the heap of those that wait; negative if it has no waiting transfers.
    var place = -1

    init(_ share: UInt64, of client: Owner? = nil) {
      self.share = share
      self.client = client
    }

    /// Whether another transfer may begin, if so many places are left.
    func mayBegin(left: Int) -> Bool { share == 0 || begun < left * 3 }
  }

  /// A transfer's links in its owner's list.
  struct Link {
    fileprivate var owner: Owner?
    fileprivate var previous: Transfer?
    fileprivate var next: Transfer?
    fileprivate var isWaiting = false
    fileprivate var hasBegun = false

    init() {}
  }

  /// The number of waiting transfers.
  private(set) var count = 0
  /// The number of transfers that were dequeued and have not ended.
  private var begun = 0
  private var clients: [UInt64: Owner] = [:]
  /// Domains with transfers, by client and domain.
  private var domains: [UInt64: Owner] = [:]
  /// Clients with waiting transfers.
  private var waiting = OwnerHeap()
  private var turns = 0

  /// Clients that are remembered, also without transfers: making one costs more than finding it.
  private static let mostClients = 256

  /// The number of owners and transfers visited, for tests.
  private(set) var steps = 0

  var isEmpty: Bool { count == 0 }

  /// Appends a transfer to its owner's list.
  ///
  /// - Parameters:
  ///   - client: identifies the client; 0 is not limited.
  ///   - domain: identifies the domain; 0 is not limited.
  func append(_ transfer: Transfer, client: UInt64, domain: UInt64) {
    let owner = wait(transfer, self.owner(client, domain))
    transfer.link.previous = owner.last
    if let last = owner.last { last.link.next = transfer } else { owner.first = transfer }
    owner.last = transfer
  }

  /// Returns a dequeued transfer to the front of its owner's list.
  func takeBack(_ transfer: Transfer) {
    let old = transfer.link.owner
    ended(transfer)
    let owner = wait(transfer, self.owner(old?.client?.share ?? 0, old?.share ?? 0))
    transfer.link.next = owner.first
    if let first = owner.first { first.link.previous = transfer } else { owner.last = transfer }
    owner.first = transfer
  }

  /// Removes a waiting transfer. Does nothing if it is not waiting.
  ///
  /// - Complexity: O(log n) in the waiting owners
  func remove(_ transfer: Transfer) {
    guard transfer.link.isWaiting else { return }
    unlink(transfer)
    forget(transfer)
  }

  /// Whether a waiting transfer has its turn at once if it is another client's: that one has none that wait, and fewer in
  /// flight. So nobody makes another's transfers wait by joining them.
  func hasTurn(_ client: UInt64, for transfer: Transfer) -> Bool {
    guard let owner = transfer.link.owner?.client, owner.share != 0, owner.share != client else { return false }
    guard let other = clients[client] else { return owner.begun > 0 }
    return other.place < 0 && other.begun < owner.begun
  }

  /// Dequeues the next transfer that may begin.
  ///
  /// - Parameter free: the number of transfers that may begin, including this one.
  /// - Complexity: O(log n) in the waiting owners, for each client at its limit: there are few.
  func next(free: Int) -> Transfer? {
    guard count > 0, free > 0 else { return nil }
    // Clients of which no domain may begin. They have many transfers, so that there are few of them.
    var passed: [Owner] = []
    var found: Owner?
    while found == nil, let client = waiting.first, client.mayBegin(left: free) {
      steps += 1
      // Of the places that are the client's or free, three quarters are its share.
      let left = client.share == 0 ? free : max(1, (client.begun + free) * 3 / 4 - client.begun)
      if let domain = client.waiting.first, domain.mayBegin(left: left) {
        found = domain
      } else {
        waiting.remove(client)
        passed.append(client)
      }
    }
    for client in passed { waiting.insert(client) }
    guard let found, let transfer = found.first else { return nil }
    unlink(transfer)
    transfer.link.hasBegun = true
    turns += 1
    count(1, of: found)
    return transfer
  }

  /// Records that a dequeued transfer has ended. Does nothing if it was not dequeued.
  func ended(_ transfer: Transfer) {
    guard transfer.link.hasBegun, let owner = transfer.link.owner else { return }
    transfer.link.hasBegun = false
    count(-1, of: owner)
    forget(transfer)
  }

  /// Removes and returns all waiting transfers.
  func takeAll() -> [Transfer] {
    var taken: [Transfer] = []
    taken.reserveCapacity(count)
    while let transfer = waiting.first?.waiting.first?.first {
      steps += 1
      remove(transfer)
      taken.append(transfer)
    }
    return taken
  }

  private func owner(_ client: UInt64, _ domain: UInt64) -> Owner {
    let key = TransferQueue.key(client, domain)
    if let known = domains[key] { return known }
    if clients[client] == nil, clients.count >= TransferQueue.mostClients {
      clients = clients.filter { $0.value.begun > 0 || $0.value.place >= 0 }
    }
    let owner = clients[client] ?? Owner(client)
    clients[client] = owner
    let fresh = Owner(domain, of: owner)
    domains[key] = fresh
    return fresh
  }

  /// Both numbers are hashes with random seeds or addresses, so that a mixture identifies them.
  private static func key(_ client: UInt64, _ domain: UInt64) -> UInt64 { client &* 0x9E37_79B9_7F4A_7C15 ^ domain }

  private func wait(_ transfer: Transfer, _ owner: Owner) -> Owner {
    if owner.first == nil, let client = owner.client {
      client.waiting.insert(owner)
      if client.place < 0 { waiting.insert(client) }
    }
    transfer.link = Link()
    transfer.link.owner = owner
    transfer.link.isWaiting = true
    count += 1
    return owner
  }

  private func unlink(_ transfer: Transfer) {
    guard let owner = transfer.link.owner, let client = owner.client else { return }
    let (previous, next) = (transfer.link.previous, transfer.link.next)
    if let previous { previous.link.next = next } else { owner.first = next }
    if let next { next.link.previous = previous } else { owner.last = previous }
    transfer.link.previous = nil
    transfer.link.next = nil
    transfer.link.isWaiting = false
    count -= 1
    guard owner.first == nil else { return }
    client.waiting.remove(owner)
    if client.waiting.first == nil { waiting.remove(client) }
  }

  /// Changes the number of an owner's transfers in flight.
  private func count(_ change: Int, of domain: Owner) {
    guard let client = domain.client else { return }
    begun += change
    domain.begun += change
    client.begun += change
    if change > 0 { (domain.turn, client.turn) = (turns, turns) }
    if domain.place >= 0 { client.waiting.update(domain) }
    if client.place >= 0 { waiting.update(client) }
  }

  private func forget(_ transfer: Transfer) {
    guard let domain = transfer.link.owner, let client = domain.client else { return }
    transfer.link.owner = nil
    if domain.first == nil, domain.begun == 0 { domains[TransferQueue.key(client.share, domain.share)] = nil }
  }
}

/// Owners with waiting transfers: on top the one with the fewest in flight, of equal ones the one whose last turn is longest
/// ago. Each knows its place.
private struct OwnerHeap {
  private var owners: [TransferQueue.Owner] = []

  var first: TransferQueue.Owner? { owners.first }

  mutating func insert(_ owner: TransferQueue.Owner) {
    owner.place = owners.count
    owners.append(owner)
    siftUp(owner.place)
  }

  mutating func remove(_ owner: TransferQueue.Owner) {
    let place = owner.place
    owner.place = -1
    let last = owners.removeLast()
    guard last !== owner else { return }
    owners[place] = last
    last.place = place
    update(last)
  }

  /// Moves an owner whose numbers have changed.
  mutating func update(_ owner: TransferQueue.Owner) {
    siftUp(owner.place)
    siftDown(owner.place)
  }

  private func precedes(_ left: Int, _ right: Int) -> Bool {
    let (left, right) = (owners[left], owners[right])
    return left.begun == right.begun ? left.turn < right.turn : left.begun < right.begun
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0, precedes(child, (child - 1) / 2) {
      swap(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private mutating func siftDown(_ start: Int) {
    var parent = start
    while 2 * parent + 1 < owners.count {
      var child = 2 * parent + 1
      if child + 1 < owners.count, precedes(child + 1, child) { child += 1 }
      guard precedes(child, parent) else { return }
      swap(child, parent)
      parent = child
    }
  }

  private mutating func swap(_ left: Int, _ right: Int) {
    owners.swapAt(left, right)
    owners[left].place = left
    owners[right].place = right
  }
}
