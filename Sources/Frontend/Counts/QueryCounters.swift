// QueryCounters.swift -- counts the queries that one thread answers, without a lock and without allocation.
//
// Each listener thread has its own counters, TCP has one set, and so have the queries that wait for the resolver. They
// belong to the process and not to the tables: a reload does not reset them.

import CHotPath
import DNSWire
import Telemetry

/// Increments one thread's counters. Valid as long as its `QueryCounters`.
///
/// - Note: plain pointers, since a reference would be retained at each use.
struct QueryTally {
  private let cells: UnsafeMutablePointer<UInt64>
  private let rules: UnsafeMutablePointer<UInt64>
  private let bounds: UnsafePointer<UInt64>

  // The size of each group. A hot function cannot use `allCases`, which allocates; a test compares the two.
  @inlinable static var transportCount: Int { @_noAllocation get { 4 } }
  @inlinable static var fateCount: Int { @_noAllocation get { 10 } }
  @inlinable static var codeCount: Int { @_noAllocation get { 8 } }
  @inlinable static var typeCount: Int { @_noAllocation get { 5 } }
  @inlinable static var boundCount: Int { @_noAllocation get { 18 } }

  // The index at which each group begins: after the group before it.
  @inlinable static var fates: Int { @_noAllocation get { 0 } }
  @inlinable static var codes: Int { @_noAllocation get { fates &+ transportCount &* fateCount } }
  @inlinable static var types: Int { @_noAllocation get { codes &+ codeCount } }
  @inlinable static var unsent: Int { @_noAllocation get { types &+ typeCount } }
  @inlinable static var delays: Int { @_noAllocation get { unsent &+ 1 } }
  @inlinable static var longest: Int { @_noAllocation get { delays &+ transportCount } }
  @inlinable static var durationSum: Int { @_noAllocation get { longest &+ 1 } }
  @inlinable static var durations: Int { @_noAllocation get { durationSum &+ 1 } }
  static let cellCount = durations + LatencyHistogram.bucketCount

  init(
    _ cells: UnsafeMutablePointer<UInt64>, rules: UnsafeMutablePointer<UInt64>, bounds: UnsafePointer<UInt64>
  ) {
    self.cells = cells
    self.rules = rules
    self.bounds = bounds
  }

  /// Counts a query that a rule has decided.
  ///
  /// - Parameter rule: the rule's counter, below `RuleNames.most`.
  @_noAllocation
  func count(rule: UInt16) { hot_counter_add(rules + Int(rule), 1) }

  @_noAllocation
  func count(_ fate: QueryFate, _ transport: QueryTransport) {
    hot_counter_add(cells + QueryTally.cell(fate.place, transport), 1)
  }

  /// The cell for a fate, by its place.
  @_noAllocation @inline(__always)
  static func cell(_ fate: Int, _ transport: QueryTransport) -> Int { fates &+ transport.place &* fateCount &+ fate }

  /// Counts the QTYPE of a query that was read.
  @_noAllocation
  func count(type: UInt16) {
    let place =
      switch type {
      case RecordType.a.rawValue: 0
      case RecordType.aaaa.rawValue: 1
      case RecordType.https.rawValue: 2
      case RecordType.ptr.rawValue: 3
      default: 4
      }
    hot_counter_add(cells + QueryTally.types + place, 1)
  }

  /// Counts the code of a response that was written.
  @_noAllocation
  func count(code: UInt16) {
    let place =
      switch code {
      case ResponseCode.noError.rawValue: 0
      case ResponseCode.formErr.rawValue: 1
      case ResponseCode.servFail.rawValue: 2
      case ResponseCode.nxDomain.rawValue: 3
      case ResponseCode.notImp.rawValue: 4
      case ResponseCode.refused.rawValue: 5
      case ResponseCode.badVers.rawValue: 6
      default: 7
      }
    hot_counter_add(cells + QueryTally.codes + place, 1)
  }

  /// Counts responses that the kernel did not take.
  @_noAllocation
  func count(unsent: Int) { hot_counter_add(cells + QueryTally.unsent, UInt64(truncatingIfNeeded: unsent)) }

  /// Counts a query that is delayed because its client exceeds `listen.rate_limit`.
  @_noAllocation
  func count(delayedOver transport: QueryTransport) { hot_counter_add(cells + QueryTally.delays + transport.place, 1) }

  /// Counts `answers` responses that took `nanoseconds` each.
  @_noAllocation
  func count(answers: Int, took nanoseconds: Int64) {
    let nanoseconds = nanoseconds < 0 ? 0 : UInt64(truncatingIfNeeded: nanoseconds)
    var bucket = 0
    while bucket < QueryTally.boundCount, bounds[bucket] < nanoseconds { bucket &+= 1 }
    hot_counter_add(cells + QueryTally.durations + bucket, UInt64(truncatingIfNeeded: answers))
    hot_counter_add(cells + QueryTally.durationSum, nanoseconds &* UInt64(truncatingIfNeeded: answers))
    // Only this thread writes it.
    if cells[QueryTally.longest] < nanoseconds { hot_counter_set(cells + QueryTally.longest, nanoseconds) }
  }
}

extension QueryFate {
  /// The raw value; its own getter may allocate, as far as the compiler knows.
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
  /// For the thread that owns the counters.
  var tally: QueryTally { QueryTally(block.cells, rules: rules.cells, bounds: bounds.cells) }
  private let block = CounterBlock(count: QueryTally.cellCount)
  private let rules = CounterBlock(count: RuleNames.most)
  private let bounds = CounterBlock(count: LatencyHistogram.bounds.count)

  package init() {
    for (index, bound) in LatencyHistogram.bounds.enumerated() { bounds.cells[index] = UInt64(bound) }
  }

  /// The latencies of this thread's answers. Any thread.
  package var durations: LatencyHistogram {
    LatencyHistogram(
      counts: (0..<LatencyHistogram.bucketCount).map { block.value(QueryTally.durations + $0) },
      sum: block.value(QueryTally.durationSum), longest: block.value(QueryTally.longest))
  }

  /// Queries that were delayed. Any thread.
  func countDelayed(over transport: QueryTransport) -> UInt64 { block.value(QueryTally.delays + transport.place) }

  /// Adds this thread's counters to `totals`. Any thread.
  package func add(to totals: inout QueryTotals) {
    for transport in QueryTransport.allCases {
      for fate in QueryFate.allCases {
        totals.add(block.value(QueryTally.cell(fate.rawValue, transport)), fate, over: transport)
      }
      totals.delayed[transport.place] &+= countDelayed(over: transport)
    }
    for code in CountedCode.allCases { totals.codes[code.rawValue] &+= block.value(QueryTally.codes + code.rawValue) }
    for type in CountedType.allCases { totals.types[type.rawValue] &+= block.value(QueryTally.types + type.rawValue) }
    totals.unsent &+= block.value(QueryTally.unsent)
    for (index, count) in rules.values.enumerated() { totals.rules[index] &+= count }
  }
}
