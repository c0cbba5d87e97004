// TransferQueueTests.swift -- transfers that wait: who is next, and what it costs to take them all out.

import Testing

@testable import HTTPClient

@Suite struct TransferQueueTests {
  @Test func `each waiting transfer comes out once, in any state of the queue`() {
    let queue = TransferQueue()
    let all = (0..<12).map { _ in Transfer() }
    for (number, transfer) in all.enumerated() { queue.append(transfer, share: UInt64(number % 4)) }
    let begun = (0..<3).compactMap { _ in queue.next(free: 100) }
    queue.takeBack(begun[0])
    queue.remove(all[11])
    let taken = queue.takeAll()
    #expect(Set(taken.map(ObjectIdentifier.init)).count == 9)
    #expect(taken.count == 9)
    #expect(!taken.contains { $0 === begun[1] || $0 === begun[2] || $0 === all[11] })
    #expect(queue.isEmpty && queue.next(free: 100) == nil)
    // Those that had begun end as ever, and others come.
    for transfer in begun[1...] { queue.ended(transfer) }
    queue.append(all[0], share: 1)
    #expect(queue.next(free: 1) === all[0])
    #expect(queue.next(free: 1) == nil)
  }

  @Test func `taking ten times as many transfers takes ten times the steps`() {
    func steps(_ count: Int, owners: Int) -> Int {
      let queue = TransferQueue()
      for (number, transfer) in (0..<count).map({ _ in Transfer() }).enumerated() {
        queue.append(transfer, share: UInt64(number % owners))
      }
      #expect(queue.takeAll().count == count)
      return queue.steps
    }
    for (count, owners) in [(100, 100), (1000, 1000), (1000, 3), (1000, 1)] {
      #expect(steps(count, owners: owners) <= 2 * count)
    }
  }
}
