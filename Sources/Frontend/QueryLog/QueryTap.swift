// QueryTap.swift -- what a listener thread leaves of the queries that it has answered, for the query log.
//
// A ring with one writer, the listener's thread, and one reader, the resolver's. The writer never waits and never allocates:
// where the ring is full, queries are counted and left out.

import CEvent
import CHotPath
import CSocket
import DNSWire
import Glibc
import Synchronization

/// An answered query; its name stands beside it.
struct TappedQuery {
  /// When it was received, in nanoseconds of the boot-time clock.
  var receivedAt: Int64 = 0
  /// Nanoseconds from its reception to its answer.
  var took: Int64 = 0
  /// The client's address in network order: 16 octets, of which IPv4 has the first four.
  var address: (UInt64, UInt64) = (0, 0)
  var isIPv6 = false
  var fate: UInt8 = 0
  /// Octets of the name; 0 where the query could not be read so far.
  var nameLength: UInt8 = 0
  var code: UInt16 = 0
  var type: UInt16 = 0

  @_noAllocation
  init() {}
}

/// How large a tap is; beside the class, whose own metadata the hot path may not touch.
enum TapSize {
  /// Queries that may wait for the reader: a power of two.
  static var queries: Int { @_noAllocation get { 1024 } }
  /// Octets of a name's place.
  static var name: Int { @_noAllocation get { 256 } }
}

/// One thread's ring.
package final class QueryTap: @unchecked Sendable {
  // Made when the log is first switched on; they stay, since the writer may be at work.
  private var records: UnsafeMutablePointer<TappedQuery>?
  private var names: UnsafeMutablePointer<UInt8>?
  private let isSwitchedOn = Atomic<Bool>(false)
  /// Queries that the reader may take, of all since the start.
  private let published = Atomic<Int>(0)
  /// Queries that the reader has taken.
  private let taken = Atomic<Int>(0)
  private let leftOut = Atomic<Int>(0)
  /// Whether the reader has been told that there is something.
  private let isTold = Atomic<Bool>(false)
  /// The writer's own, on a line of their own.
  private let state: UnsafeMutablePointer<WriterState>

  private struct WriterState {
    var written = 0
    /// `taken`, as it was last looked at.
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

  /// Whether queries are wanted; looked at once a batch.
  @inlinable var isOn: Bool {
    @_noAllocation get { isSwitchedOn.load(ordering: .acquiring) }
  }

  /// Leaves the query that a path has answered last, which the reader gets with `publish`. Only where `isOn` was true.
  @_noAllocation
  func add(
    _ path: QueryPath, _ message: UnsafeBufferPointer<UInt8>, from client: UnsafePointer<sockaddr_storage>,
    receivedAt: Int64
  ) {
    add(path.query, of: message, from: client, path.lastEnd, receivedAt: receivedAt)
  }

  /// Leaves a query.
  @_noAllocation
  func add(
    _ query: Query, of message: UnsafeBufferPointer<UInt8>, from client: UnsafePointer<sockaddr_storage>,
    _ end: QueryEnd, receivedAt: Int64
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
    record.pointee.code = end.code
    record.pointee.type = query.type
    let raw = UnsafeRawPointer(client)
    if client.pointee.ss_family == sa_family_t(truncatingIfNeeded: AF_INET6) {
      record.pointee.isIPv6 = true
      hot_copy(&record.pointee.address, raw + 8, 16)
    } else {
      record.pointee.isIPv6 = false
      hot_copy(&record.pointee.address, raw + 4, 4)
    }
    var length = query.nameLength
    if length > 255 || QueryReader.headerLength &+ length > message.count { length = 0 }
    record.pointee.nameLength = UInt8(truncatingIfNeeded: length)
    if length > 0, let octets = message.baseAddress {
      hot_copy(names + place &* TapSize.name, octets + QueryReader.headerLength, length)
    }
    state.pointee.written = written &+ 1
  }

  /// Lets the reader have what was left since the last time.
  ///
  /// - Parameter instant: when the answers had gone, in nanoseconds of the boot-time clock.
  /// - Returns: whether the reader has to be woken: it has not been since it looked last.
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
    return !isTold.exchange(true, ordering: .acquiringAndReleasing)
  }

  // MARK: the resolver's thread

  /// Begins or ends to want queries.
  func setOn(_ isOn: Bool) {
    if isOn, records == nil {
      let records = UnsafeMutablePointer<TappedQuery>.allocate(capacity: TapSize.queries)
      records.initialize(repeating: TappedQuery(), count: TapSize.queries)
      names = .allocate(capacity: TapSize.queries * TapSize.name)
      self.records = records
    }
    isSwitchedOn.store(isOn, ordering: .releasing)
  }

  /// Whether the writer has said that there is something.
  var hasNews: Bool { isTold.load(ordering: .acquiring) }

  /// The reader is about to look: it wants to be told of whatever comes after that.
  func clearNews() { _ = isTold.exchange(false, ordering: .acquiringAndReleasing) }

  /// Takes the oldest query, if there is one, with the octets of its name, which are valid within `body`.
  func take<Value>(_ body: (TappedQuery, UnsafeBufferPointer<UInt8>) -> Value) -> Value? {
    let number = taken.load(ordering: .relaxed)
    guard number != published.load(ordering: .acquiring), let records, let names else { return nil }
    let place = number & (TapSize.queries - 1)
    let record = records[place]
    let name = UnsafeBufferPointer(
      start: UnsafePointer(names + place * TapSize.name), count: Int(record.nameLength))
    let value = body(record, name)
    taken.store(number + 1, ordering: .releasing)
    return value
  }

  /// How many queries were left out since this was asked last.
  func takeLeftOut(_ last: inout Int) -> Int {
    let now = leftOut.load(ordering: .relaxed)
    defer { last = now }
    return now - last
  }
}
