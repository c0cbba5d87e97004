// CounterBlock.swift -- counters that one thread writes without a lock and any thread reads.

import CHotPath

/// A row of counters, initially 0, that shares no cache line with other data.
///
/// One thread writes; any thread may read at any time. Each value is read atomically, but not all at the same moment.
package final class CounterBlock: @unchecked Sendable {
  /// The counters, for the writing thread. Valid until deinit.
  package let cells: UnsafeMutablePointer<UInt64>
  package let count: Int

  /// Two cache lines of 64 octets: processors often fetch the neighbouring line too.
  private static let alignment = 128

  /// Allocates `count` counters, all 0.
  package init(count: Int) {
    self.count = count
    let lines = (count * MemoryLayout<UInt64>.stride + CounterBlock.alignment - 1) / CounterBlock.alignment
    cells = UnsafeMutableRawPointer.allocate(
      byteCount: lines * CounterBlock.alignment, alignment: CounterBlock.alignment
    ).bindMemory(to: UInt64.self, capacity: count)
    cells.initialize(repeating: 0, count: count)
  }

  deinit { cells.deallocate() }

  /// The current value of a counter. Any thread. Traps if `index` is out of bounds.
  package func value(_ index: Int) -> UInt64 {
    precondition(index >= 0 && index < count)
    return hot_counter_read(cells + index)
  }

  /// All current values. Any thread.
  package var values: [UInt64] { (0..<count).map { hot_counter_read(cells + $0) } }
}
