// QueryCounters.swift -- what one thread counts of the queries that it answers, without a lock and without allocation.
//
// Each listener thread has its own, TCP has one, and those who had to wait have one. They belong to the process and not to
// the tables: a reload goes on counting.

import CHotPath
import Telemetry

/// How one thread counts. Valid as long as its `QueryCounters`.
///
/// - Note: plain pointers, since a reference would be retained for each use.
struct QueryTally {
  private let cells: UnsafeMutablePointer<UInt64>
  private let bounds: UnsafePointer<UInt64>

  // How many counters each group has. A hot function cannot ask `allCases`, which allocates; a test compares the two.
  @inlinable static var fateCount: Int { @_noAllocation get { 10 } }
  @inlinable static var codeCount: Int { @_noAllocation get { 8 } }
  @inlinable static var typeCount: Int { @_noAllocation get { 5 } }
  @inlinable static var boundCount: Int { @_noAllocation get { 18 } }

  // Where each group begins in the row: behind the one before.
  @inlinable static var udp: Int { @_noAllocation get { 0 } }
  @inlinable static var tcp: Int { @_noAllocation get { udp &+ fateCount } }
  @inlinable static var codes: Int { @_noAllocation get { tcp &+ fateCount } }
  @inlinable static var types: Int { @_noAllocation get { codes &+ codeCount } }
  @inlinable static var unsent: Int { @_noAllocation get { types &+ typeCount } }
  @inlinable static var longest: Int { @_noAllocation get { unsent &+ 1 } }
  @inlinable static var durationSum: Int { @_noAllocation get { longest &+ 1 } }
  @inlinable static var durations: Int { @_noAllocation get { durationSum &+ 1 } }
  static let cellCount = durations + LatencyHistogram.bucketCount

  init(_ cells: UnsafeMutablePointer<UInt64>, bounds: UnsafePointer<UInt64>) {
    self.cells = cells
    self.bounds = bounds
  }

  /// A query has met its fate.
  @_noAllocation
  func count(_ fate: QueryFate, _ transport: QueryTransport) {
    let base =
      switch transport {
      case .udp: QueryTally.udp
      case .tcp: QueryTally.tcp
      }
    hot_counter_add(cells + base + fate.place, 1)
  }

  /// A query for that type has been read.
  @_noAllocation
  func count(type: UInt16) {
    let place =
      switch type {
      case 1: 0
      case 28: 1
      case 65: 2
      case 12: 3
      default: 4
      }
    hot_counter_add(cells + QueryTally.types + place, 1)
  }

  /// A response with that code has been written.
  @_noAllocation
  func count(code: UInt16) {
    let place =
      switch code {
      case 0: 0
      case 1: 1
      case 2: 2
      case 3: 3
      case 4: 4
      case 5: 5
      case 16: 6
      default: 7
      }
    hot_counter_add(cells + QueryTally.codes + place, 1)
  }

  /// The kernel did not take so many responses.
  @_noAllocation
  func count(unsent: Int) { hot_counter_add(cells + QueryTally.unsent, UInt64(truncatingIfNeeded: unsent)) }

  /// `count` answers took so many nanoseconds, each.
  @_noAllocation
  func count(answers: Int, took nanoseconds: Int64) {
    let nanoseconds = nanoseconds < 0 ? 0 : UInt64(truncatingIfNeeded: nanoseconds)
    var bucket = 0
    while bucket < QueryTally.boundCount, bounds[bucket] < nanoseconds { bucket &+= 1 }
    hot_counter_add(cells + QueryTally.durations + bucket, UInt64(truncatingIfNeeded: answers))
    hot_counter_add(cells + QueryTally.durationSum, nanoseconds &* UInt64(truncatingIfNeeded: answers))
    // Written by this thread alone.
    if cells[QueryTally.longest] < nanoseconds { hot_counter_set(cells + QueryTally.longest, nanoseconds) }
  }
}

extension QueryFate {
  /// The raw value, whose own getter may allocate as far as the compiler knows.
  @inlinable var place: Int {
    @_noAllocation get {
      switch self {
      case .hit: 0
      case .stale: 1
      case .local: 2
      case .blocked: 3
      case .miss: 4
      case .refused: 5
      case .invalid: 6
      case .overflow: 7
      case .dropped: 8
      case .limited: 9
      }
    }
  }
}

/// The counters of one thread.
package final class QueryCounters: Sendable {
  /// How the thread counts.
  var tally: QueryTally { QueryTally(block.cells, bounds: bounds.cells) }
  private let block = CounterBlock(count: QueryTally.cellCount)
  private let bounds = CounterBlock(count: LatencyHistogram.bounds.count)

  /// All at 0.
  package init() {
    for (index, bound) in LatencyHistogram.bounds.enumerated() { bounds.cells[index] = UInt64(bound) }
  }

  /// How long its answers took. Any thread.
  package var durations: LatencyHistogram {
    LatencyHistogram(
      counts: (0..<LatencyHistogram.bucketCount).map { block.value(QueryTally.durations + $0) },
      sum: block.value(QueryTally.durationSum), longest: block.value(QueryTally.longest))
  }

  /// Adds what this thread has counted. Any thread.
  package func add(to totals: inout QueryTotals) {
    for fate in QueryFate.allCases {
      totals.udp[fate.rawValue] &+= block.value(QueryTally.udp + fate.rawValue)
      totals.tcp[fate.rawValue] &+= block.value(QueryTally.tcp + fate.rawValue)
    }
    for code in CountedCode.allCases { totals.codes[code.rawValue] &+= block.value(QueryTally.codes + code.rawValue) }
    for type in CountedType.allCases { totals.types[type.rawValue] &+= block.value(QueryTally.types + type.rawValue) }
    totals.unsent &+= block.value(QueryTally.unsent)
  }
}
