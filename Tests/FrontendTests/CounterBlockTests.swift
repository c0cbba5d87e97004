// CounterBlockTests.swift -- counters that one thread writes and others read.

import CHotPath
@testable import Frontend
import Glibc
import Testing

@Suite struct CounterBlockTests {
  @Test func `counters begin at 0 and are independent`() {
    let block = CounterBlock(count: 20)
    #expect(block.values == Array(repeating: 0, count: 20))
    hot_counter_add(block.cells + 3, 2)
    hot_counter_add(block.cells + 3, 5)
    hot_counter_set(block.cells + 4, 9)
    #expect(block.value(3) == 7)
    #expect(block.values.reduce(0, +) == 16)
  }

  @Test func `no two blocks share a cache line`() {
    let blocks = (0..<8).map { _ in CounterBlock(count: 1) }
    let lines = blocks.map { UInt(bitPattern: $0.cells) / 128 }
    #expect(Set(lines).count == blocks.count)
    #expect(blocks.allSatisfy { UInt(bitPattern: $0.cells) % 128 == 0 })
  }

  @Test func `a reader never sees a counter decrease`() {
    let block = CounterBlock(count: 1)
    var thread = pthread_t()
    let context = Unmanaged.passRetained(block).toOpaque()
    let code = pthread_create(
      &thread, nil,
      { context in
        let block = Unmanaged<CounterBlock>.fromOpaque(context!).takeRetainedValue()
        for _ in 0..<200_000 { hot_counter_add(block.cells, 1 << 31 | 1) }
        return nil
      }, context)
    #expect(code == 0)
    var last: UInt64 = 0
    while last < 200_000 * (1 << 31 | 1) {
      let value = block.value(0)
      // A torn number would not be a multiple.
      guard value >= last, value % (1 << 31 | 1) == 0 else {
        Issue.record("\(value) after \(last)")
        break
      }
      last = value
    }
    pthread_join(thread, nil)
    #expect(block.value(0) == 200_000 * (1 << 31 | 1))
  }
}
