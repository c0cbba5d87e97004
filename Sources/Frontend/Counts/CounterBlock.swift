// CounterBlock.swift -- counters of one thread: written there without a lock, read from any other.

import CHotPath

/// A row of counters that begin at 0, in memory of its own that shares no cache line with anything else.
///
/// One thread writes; any thread may read at any time, and sees whole numbers, of which some may be a moment older than
/// others.
public final class CounterBlock: @unchecked Sendable {
  /// Where the counters stand; for the one thread that writes, as long as the block lives.
  public let cells: UnsafeMutablePointer<UInt64>
  /// How many there are.
  public let count: Int

  /// Processors fetch lines of 64 octets, and often the neighbour along with them.
  private static let alignment = 128

  /// A row of `count` counters.
  public init(count: Int) {
    self.count = count
    let lines = (count * MemoryLayout<UInt64>.stride + CounterBlock.alignment - 1) / CounterBlock.alignment
    cells = UnsafeMutableRawPointer.allocate(
      byteCount: lines * CounterBlock.alignment, alignment: CounterBlock.alignment
    ).bindMemory(to: UInt64.self, capacity: count)
    cells.initialize(repeating: 0, count: count)
  }

  deinit { cells.deallocate() }

  /// The counter's present value. Any thread.
  public func value(_ index: Int) -> UInt64 {
    precondition(index >= 0 && index < count)
    return hot_counter_read(cells + index)
  }

  /// All present values. Any thread.
  public var values: [UInt64] { (0..<count).map { hot_counter_read(cells + $0) } }
}
