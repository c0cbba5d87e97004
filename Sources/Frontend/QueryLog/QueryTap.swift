// QueryTap.swift -- passes answered queries from a listener thread to the query log.
//
// A ring with one writer, the listener's thread, and one reader, the resolver's. The writer never waits and never
// allocates: if the ring is full, it counts queries and leaves them out.

import CEvent
import CHotPath
import CSocket
import DNSWire
import FairShares
import Glibc
import Synchronization

/// An answered query; its name is stored beside it.
struct TappedQuery {
  /// When it was received, in nanoseconds of the boot-time clock.
  var receivedAt: Int64 = 0
  /// Nanoseconds from its reception to its answer.
  var took: Int64 = 0
  var client = IPNumber()
  var fate: UInt8 = 0
  var transport = QueryTransport.udp
  /// Octets of the name; 0 if the query could not be read that far.
  var nameLength: UInt8 = 0
  var code: UInt16 = 0
  var type: UInt16 = 0
  /// As in `RouteFinding`.
  var rule: UInt16 = 0
  /// As in `TokenLabels`.
  var token: UInt16 = 0

  @_noAllocation
  init() {}
}

/// The size of a tap; outside the class, whose metadata the hot path may not touch.
enum TapSize {
  /// The most queries that wait for the reader: a power of two.
  static var queries: Int { @_noAllocation get { 1024 } }
  /// Octets reserved for a name.
  static var name: Int { @_noAllocation get { 256 } }
}

/// One thread's ring of answered queries.
package final class QueryTap: @unchecked Sendable {
  // Allocated when the log is first switched on, and never freed before deinit: the writer may be using them.
  private var records: UnsafeMutablePointer<TappedQuery>?
  private var names: UnsafeMutablePointer<UInt8>?
  private let isSwitchedOn = Atomic<Bool>(false)
  /// Queries that the reader may take, counted since the start.
  private let published = Atomic<Int>(0)
  /// Queries that the reader has taken, counted since the start.
  private let taken = Atomic<Int>(0)
  private let leftOut = Atomic<Int>(0)
  /// Whether the reader has been woken and has not looked yet.
  private let isSignalled = Atomic<Bool>(false)
  /// The writer's state, in memory apart from the shared counters.
  private let state: UnsafeMutablePointer<WriterState>

  private struct WriterState {
    var written = 0
    /// `taken`, as the writer last read it.
    var knownTaken = 0
  }

  init() {
    state = .allocate(capacity: 1)
    state.initialize(to: WriterState())
  }

  deinit {
    state.deallocate()
    records?.deallocate()
    names?.deallocate()
  }

  // MARK: the listener's thread

  /// Whether queries are wanted; checked once a batch.
  @inlinable var isOn: Bool {
    @_noAllocation get { isSwitchedOn.load(ordering: .acquiring) }
  }

  /// Adds the query that a path answered last; the reader sees it after `publish`. Call it only if `isOn` was true.
  @_noAllocation
  func add(
    _ path: QueryPath, _ message: UnsafeBufferPointer<UInt8>, from client: UnsafePointer<sockaddr_storage>,
    _ transport: QueryTransport, receivedAt: Int64, token: UInt16 = 0
  ) {
    add(path.query, of: message, from: client, transport, path.lastEnd, receivedAt: receivedAt, token: token)
  }

  /// Adds a query, or counts it as left out if the ring is full.
  @_noAllocation
  func add(
    _ query: Query, of message: UnsafeBufferPointer<UInt8>, from client: UnsafePointer<sockaddr_storage>,
    _ transport: QueryTransport, _ end: QueryEnd, receivedAt: Int64, token: UInt16 = 0
  ) {
    guard let records, let names else { return }
    let written = state.pointee.written
    if written &- state.pointee.knownTaken >= TapSize.queries {
      state.pointee.knownTaken = taken.load(ordering: .acquiring)
      guard written &- state.pointee.knownTaken < TapSize.queries else {
        leftOut.store(leftOut.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        return
      }
    }
    let place = written & (TapSize.queries &- 1)
    let record = records + place
    record.pointee.receivedAt = receivedAt
    record.pointee.fate = end.fate
    record.pointee.transport = transport
    record.pointee.code = end.code
    record.pointee.rule = end.rule
    record.pointee.token = token
    record.pointee.type = query.type
    record.pointee.client = IPNumber(client)
    var length = query.nameLength
    if length > 255 || QueryReader.headerLength &+ length > message.count { length = 0 }
    record.pointee.nameLength = UInt8(truncatingIfNeeded: length)
    if length > 0, let octets = message.baseAddress {
      hot_copy(names + place &* TapSize.name, octets + QueryReader.headerLength, length)
    }
    state.pointee.written = written &+ 1
  }

  /// Makes the queries that were added since the last call visible to the reader.
  ///
  /// - Parameter instant: when the answers were sent, in nanoseconds of the boot-time clock.
  /// - Returns: whether the caller must wake the reader, which has not been woken since it looked last.
  @_noAllocation
  func publish(at instant: Int64) -> Bool {
    guard let records else { return false }
    let written = state.pointee.written
    var number = published.load(ordering: .relaxed)
    guard number != written else { return false }
    while number != written {
      let record = records + (number & (TapSize.queries &- 1))
      record.pointee.took = instant &- record.pointee.receivedAt
      number &+= 1
    }
    published.store(written, ordering: .releasing)
    return !isSignalled.exchange(true, ordering: .acquiringAndReleasing)
  }

  // MARK: the resolver's thread

  /// Switches the tap on or off; allocates the ring when it is first switched on.
  func setOn(_ isOn: Bool) {
    if isOn, records == nil {
      let records = UnsafeMutablePointer<TappedQuery>.allocate(capacity: TapSize.queries)
      records.initialize(repeating: TappedQuery(), count: TapSize.queries)
      names = .allocate(capacity: TapSize.queries * TapSize.name)
      self.records = records
    }
    isSwitchedOn.store(isOn, ordering: .releasing)
  }

  /// Whether the writer has published queries since `clearUnread`.
  var hasUnread: Bool { isSignalled.load(ordering: .acquiring) }

  /// The reader calls this before it looks, so that a later `publish` wakes it again.
  func clearUnread() { _ = isSignalled.exchange(false, ordering: .acquiringAndReleasing) }

  /// Takes the oldest query, if there is one. The octets of its name are valid only within `body`.
  func take<Value>(_ body: (TappedQuery, UnsafeBufferPointer<UInt8>) -> Value) -> Value? {
    let number = taken.load(ordering: .relaxed)
    guard number != published.load(ordering: .acquiring), let records, let names else { return nil }
    let place = number & (TapSize.queries - 1)
    let record = records[place]
    let name = UnsafeBufferPointer(start: UnsafePointer(names + place * TapSize.name), count: Int(record.nameLength))
    let value = body(record, name)
    taken.store(number + 1, ordering: .releasing)
    return value
  }

  /// The number of queries that were left out since the last call.
  func takeLeftOut(_ last: inout Int) -> Int {
    let now = leftOut.load(ordering: .relaxed)
    defer { last = now }
    return now - last
  }
}
