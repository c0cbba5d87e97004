// TransferQueue.swift -- transfers that wait for a connection or a stream, and how those are shared.
//
// Owners are clients, and the domains of each client. A free place goes to the client with the fewest transfers, and of its
// domains to the one with the fewest. A client takes at most three times as many places as it leaves free, and a domain three
// quarters of those: clients whose transfers all hang leave others a place, up to 20 of them. A transfer for several clients
// waits in the list of each and begins with the first turn, so that no client waits longer because others ask the same.
// Loop thread only.

import EventLoop
import FairShares

/// The waiting transfers, and the number of transfers in flight per owner.
final class TransferQueue {
  /// A client, or a domain of a client.
  fileprivate final class Owner: Ranked {
    /// Identifies it among its like; 0 is not limited.
    let share: UInt64
    /// The client of a domain.
    let client: Owner?
    /// Those of a client's domains that have waiting transfers.
    var waiting = RankedHeap<Owner>()
    /// The waiting transfers of a domain.
    var first: Turn?
    var last: Turn?
    /// Transfers that were dequeued and have not ended.
    var begun = 0
    /// When it had its last turn.
    var turn = 0
    /// Its index in the heap of those that wait; negative if it has no waiting transfers.
    var position = -1

    init(_ share: UInt64, of client: Owner? = nil) {
      self.share = share
      self.client = client
    }

    /// The one with the fewest transfers in flight comes first, of equal ones the one whose last turn is longest ago.
    func precedes(_ other: Owner) -> Bool { begun == other.begun ? turn < other.turn : begun < other.begun }

    /// Whether another transfer may begin, if this many places are left.
    func mayBegin(left: Int) -> Bool { share == 0 || begun < left * 3 }
  }

  /// A transfer in an owner's list.
  fileprivate final class Turn {
    var client: UInt64
    /// Both are nil if it is in no list.
    var transfer: Transfer?
    var owner: Owner?
    var previous: Turn?
    var next: Turn?

    init(_ client: UInt64) { self.client = client }
  }

  /// What the queue knows of a transfer.
  struct Wait {
    /// In the list of the client that asked first. Kept for the transfer's next request.
    fileprivate var turn: Turn?
    /// In the lists of other clients, also while the transfer does not wait: it may have to wait again.
    fileprivate var others: [Turn] = []
    fileprivate var domain: UInt64 = 0
    /// The owner whose turn it took.
    fileprivate var begun: Owner?

    init() {}

    fileprivate var isWaiting: Bool { turn?.owner != nil }

    /// Forgets the clients of a request that has ended.
    mutating func forgetClients() { if !others.isEmpty { others = [] } }
  }

  /// The number of waiting transfers.
  private(set) var count = 0
  private var clients: [UInt64: Owner] = [:]
  /// Domains with transfers, by client and domain.
  private var domains: [UInt64: Owner] = [:]
  /// Clients with waiting transfers.
  private var waiting = RankedHeap<Owner>()
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
    let turn = transfer.wait.turn ?? Turn(client)
    turn.client = client
    (transfer.wait.turn, transfer.wait.domain) = (turn, domain)
    enterLists(transfer, atFront: false)
  }

  /// Returns a dequeued transfer to the front of its owners' lists.
  func takeBack(_ transfer: Transfer) {
    guard transfer.wait.begun != nil else { return }
    ended(transfer)
    enterLists(transfer, atFront: true)
  }

  /// Lets a transfer also wait in the list of another client, which asks the same.
  func join(_ transfer: Transfer, client: UInt64) {
    let (turn, others) = (transfer.wait.turn, transfer.wait.others)
    guard turn?.client != client, others.count < CarriedClients.most, !others.contains(where: { $0.client == client })
    else { return }
    let fresh = Turn(client)
    transfer.wait.others.append(fresh)
    if transfer.wait.isWaiting { enter(fresh, transfer, atFront: false) }
  }

  /// Removes a waiting transfer. Does nothing if it is not waiting.
  ///
  /// - Complexity: O(log n) in the waiting owners, for each client that waits for it
  func remove(_ transfer: Transfer) {
    guard transfer.wait.isWaiting, let turn = transfer.wait.turn else { return }
    leave(turn)
    for turn in transfer.wait.others { leave(turn) }
    count -= 1
  }

  /// The number of transfers that have begun in the turns of the same client as this one.
  func countOfClient(_ transfer: Transfer) -> Int { transfer.wait.begun?.client?.begun ?? 0 }

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
    guard let found, let transfer = found.first?.transfer else { return nil }
    transfer.wait.begun = found
    turns += 1
    count(1, of: found)
    remove(transfer)
    return transfer
  }

  /// Records that a dequeued transfer has ended. Does nothing if it was not dequeued.
  func ended(_ transfer: Transfer) {
    guard let owner = transfer.wait.begun else { return }
    transfer.wait.begun = nil
    count(-1, of: owner)
    forgetIfIdle(owner)
  }

  /// Removes and returns all waiting transfers.
  func takeAll() -> [Transfer] {
    var taken: [Transfer] = []
    taken.reserveCapacity(count)
    while let transfer = waiting.first?.waiting.first?.first?.transfer {
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
      clients = clients.filter { $0.value.begun > 0 || $0.value.position >= 0 }
    }
    let owner = clients[client] ?? Owner(client)
    clients[client] = owner
    let fresh = Owner(domain, of: owner)
    domains[key] = fresh
    return fresh
  }

  /// Both numbers are hashes with random seeds or addresses, so that a mixture identifies them.
  private static func key(_ client: UInt64, _ domain: UInt64) -> UInt64 { client &* 0x9E37_79B9_7F4A_7C15 ^ domain }

  /// Enters the lists of all clients of a transfer.
  private func enterLists(_ transfer: Transfer, atFront: Bool) {
    if let turn = transfer.wait.turn { enter(turn, transfer, atFront: atFront) }
    for turn in transfer.wait.others { enter(turn, transfer, atFront: atFront) }
    count += 1
  }

  /// Enters an owner's list. The owner waits from then on.
  private func enter(_ turn: Turn, _ transfer: Transfer, atFront: Bool) {
    let owner = owner(turn.client, transfer.wait.domain)
    if owner.first == nil, let client = owner.client {
      client.waiting.insert(owner)
      if client.position < 0 { waiting.insert(client) }
    }
    (turn.transfer, turn.owner) = (transfer, owner)
    if atFront {
      turn.next = owner.first
      if let first = owner.first { first.previous = turn } else { owner.last = turn }
      owner.first = turn
    } else {
      turn.previous = owner.last
      if let last = owner.last { last.next = turn } else { owner.first = turn }
      owner.last = turn
    }
  }

  private func leave(_ turn: Turn) {
    guard let owner = turn.owner, let client = owner.client else { return }
    let (previous, next) = (turn.previous, turn.next)
    if let previous { previous.next = next } else { owner.first = next }
    if let next { next.previous = previous } else { owner.last = previous }
    (turn.transfer, turn.owner) = (nil, nil)
    (turn.previous, turn.next) = (nil, nil)
    guard owner.first == nil else { return }
    client.waiting.remove(owner)
    if client.waiting.first == nil { waiting.remove(client) }
    forgetIfIdle(owner)
  }

  /// Changes the number of an owner's transfers in flight.
  private func count(_ change: Int, of domain: Owner) {
    guard let client = domain.client else { return }
    domain.begun += change
    client.begun += change
    if change > 0 { (domain.turn, client.turn) = (turns, turns) }
    if domain.position >= 0 { client.waiting.update(domain) }
    if client.position >= 0 { waiting.update(client) }
  }

  private func forgetIfIdle(_ domain: Owner) {
    guard let client = domain.client, domain.first == nil, domain.begun == 0 else { return }
    domains[TransferQueue.key(client.share, domain.share)] = nil
  }
}
