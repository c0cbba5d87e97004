// ClientQueries.swift -- passes queries without an answer at hand from a listener to the resolver and back.
//
// A bounded pool of fixed slots: a listener takes one, fills it and queues it; the resolver answers from it and
// releases it. If none is free, or the client has its share, the listener answers SERVFAIL itself, so nothing grows
// with the load.

import CHotPath
import CSocket
import DNSWire
import FairShares

/// A query that waits for its answer.
package struct ClientQuery {
  /// The parsed query.
  package var query = Query()
  /// The route that the route table gave it.
  package var route: UInt16 = 0
  /// The counter of the rule that decided so, as in `RouteFinding`.
  var rule: UInt16 = 0
  var transport = QueryTransport.udp
  /// The options of its response; none over UDP.
  var options = StreamOptions()
  /// When it was received, in nanoseconds of the boot-time clock.
  var receivedAt: Int64 = 0
  /// The UDP socket to answer through, or -1 for a stream.
  var descriptor: Int32 = -1
  /// By which a `StreamFrontend` finds the client of a query over a stream.
  var ticket: UInt64 = 0
  /// The number of the client's token, as in `TokenLabels`; 0 for none.
  var token: UInt16 = 0
  /// Whether the client still waits; if not, it has an answer from the cache, and only the cache needs the new one.
  package var wantsAnswer = true

  /// Octets of a header and the longest question: an answer needs no more of its query.
  @inlinable static var messageSize: Int { @_noAllocation get { 12 + 255 + 4 } }
  /// A client may hold this many times as many slots as are free: alone eight ninths of all, two greedy clients eight
  /// seventeenths each. So a new client finds free slots.
  @inlinable static var mostTimesFree: Int { @_noAllocation get { 8 } }
}

/// The pool and the queue. Any thread.
package final class ClientQueries: @unchecked Sendable {
  /// The slots. Only the holder of an index may read and write that slot.
  package let slots: UnsafeMutablePointer<ClientQuery>
  private let capacity: Int
  private let messages: UnsafeMutablePointer<UInt8>
  private let peers: UnsafeMutablePointer<datagram_peer>
  private let lock: UnsafeMutablePointer<hot_mutex>
  private let free: UnsafeMutablePointer<UInt32>
  private var freeCount: Int
  private let queue: UnsafeMutablePointer<UInt32>
  private var queued = 0
  /// The client of each slot in use.
  private let owners: UnsafeMutablePointer<ClientKey>
  private var held: HolderCounts
  /// Queries that got no slot.
  private var refusals: UInt64 = 0

  /// Makes a pool of `capacity` slots. A slot's memory is not touched before its first use.
  package init(capacity: Int) {
    self.capacity = capacity
    slots = .allocate(capacity: capacity)
    messages = .allocate(capacity: capacity * ClientQuery.messageSize)
    peers = .allocate(capacity: capacity)
    lock = .allocate(capacity: 1)
    hot_mutex_init(lock)
    free = .allocate(capacity: capacity)
    queue = .allocate(capacity: capacity)
    for index in 0..<capacity { free[index] = UInt32(capacity - 1 - index) }
    freeCount = capacity
    owners = .allocate(capacity: capacity)
    held = HolderCounts(things: capacity)
  }

  deinit {
    slots.deallocate()
    messages.deallocate()
    peers.deallocate()
    free.deallocate()
    owners.deallocate()
    queue.deallocate()
    hot_mutex_destroy(lock)
    lock.deallocate()
  }

  /// Free slots.
  package var available: Int { capacity - inUse }

  /// Slots in use.
  package var inUse: Int {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return capacity - freeCount
  }

  /// Takes a slot for a query of that client; -1 if none is free for it.
  @_noAllocation
  func take(_ client: ClientKey) -> Int {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard freeCount > 0, held.count(client) < ClientQuery.mostTimesFree &* freeCount else {
      refusals &+= 1
      return -1
    }
    freeCount &-= 1
    let slot = Int(free[freeCount])
    owners[slot] = client
    held.add(client)
    return slot
  }

  /// Queues a filled slot for the resolver, which the caller must wake afterwards.
  @_noAllocation
  func submit(_ slot: Int) {
    hot_mutex_lock(lock)
    queue[queued] = UInt32(truncatingIfNeeded: slot)
    queued &+= 1
    hot_mutex_unlock(lock)
  }

  /// Takes all queued slots, in order.
  ///
  /// - Returns: the number of queries that got no slot so far: none was free, or their client had its share.
  @discardableResult
  package func drain(into batch: inout [Int]) -> UInt64 {
    batch.removeAll(keepingCapacity: true)
    hot_mutex_lock(lock)
    for index in 0..<queued { batch.append(Int(queue[index])) }
    queued = 0
    let refused = refusals
    hot_mutex_unlock(lock)
    return refused
  }

  /// Returns a slot to the pool; the caller no longer holds it.
  package func release(_ slot: Int) {
    hot_mutex_lock(lock)
    held.remove(owners[slot])
    free[freeCount] = UInt32(slot)
    freeCount += 1
    hot_mutex_unlock(lock)
  }

  /// Copies into a slot what the answer needs. The caller holds the slot.
  @_noAllocation
  func fill(
    _ slot: Int, _ query: Query, of message: UnsafePointer<UInt8>, over transport: QueryTransport,
    options: StreamOptions = StreamOptions(), route: UInt16, rule: UInt16, receivedAt: Int64, descriptor: Int32
  ) {
    let entry = slots + slot
    entry.pointee.query = query
    entry.pointee.transport = transport
    entry.pointee.options = options
    entry.pointee.route = route
    entry.pointee.rule = rule
    entry.pointee.receivedAt = receivedAt
    entry.pointee.descriptor = descriptor
    entry.pointee.token = 0
    entry.pointee.wantsAnswer = true
    hot_copy(messages + slot &* ClientQuery.messageSize, message, query.questionEnd)
  }

  /// The header and the question of a slot's query.
  @_noAllocation
  package func message(_ slot: Int) -> UnsafePointer<UInt8> {
    UnsafePointer(messages + slot &* ClientQuery.messageSize)
  }

  /// The client that gets a slot's answer: over UDP all fields are valid, over TCP only the address.
  @_noAllocation
  func peer(_ slot: Int) -> UnsafeMutablePointer<datagram_peer> {
    peers + slot
  }
}
