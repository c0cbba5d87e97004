// DueQueueTests.swift -- the queue against a sorted list, and what it takes in memory.

import TestSupport
import Testing

@testable import EventLoop

@Suite struct DueQueueTests {
  @Test func `an empty queue has no element at any time`() {
    var queue = DueQueue()
    let popped = queue.popFirst(dueBy: .max)
    #expect(popped == nil)
    #expect(queue.earliestDue == nil)
    #expect(queue.count == 0)
  }

  @Test func `an element is due at its time and not a nanosecond before`() {
    var queue = DueQueue()
    queue.insert(7, due: 1000)
    let early = queue.popFirst(dueBy: 999)
    let due = queue.popFirst(dueBy: 1000)
    #expect(early == nil)
    #expect(due == DueQueue.Element(due: 1000, ticket: 7))
    #expect(queue.count == 0)
  }

  @Test func `elements due at the same time are ordered by ticket`() {
    var random = SeededGenerator(seed: testSeed)
    var queue = DueQueue()
    for ticket in (0..<100).shuffled(using: &random) { queue.insert(UInt64(ticket), due: 5) }
    let popped = queue.popAll(dueBy: 5)
    #expect(popped.map(\.ticket) == Array(0..<100))
  }

  @Test func `an element takes 16 octets`() {
    #expect(MemoryLayout<DueQueue.Element>.stride == 16)
  }

  @Test func `the queue agrees with a sorted list for any operations`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<40 {
      var queue = DueQueue()
      var model: [DueQueue.Element] = []
      var now: Int64 = 0
      // Few different due times and tickets make ties and duplicates.
      let spread = Int64.random(in: 1...2000, using: &random)
      for _ in 0..<Int.random(in: 1...600, using: &random) {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<6:
          let element = DueQueue.Element(
            due: now + Int64.random(in: -5...spread, using: &random), ticket: random.next() % 50)
          queue.insert(element.ticket, due: element.due)
          model.append(element)
        case 6, 7:
          now += Int64.random(in: 0...spread / 20 + 1, using: &random)
          let expected = model.filter { $0.due <= now }.sorted { $0.isBefore($1) }
          model.removeAll { $0.due <= now }
          let popped = queue.popAll(dueBy: now)
          #expect(popped == expected)
        case 8:
          let expected = model.filter { $0.due <= now + 3 }.min { $0.isBefore($1) }
          if let expected, let index = model.firstIndex(of: expected) { model.remove(at: index) }
          let popped = queue.popFirst(dueBy: now + 3)
          #expect(popped == expected)
        default:
          let divisor = UInt64.random(in: 1...4, using: &random)
          queue.compact { $0.ticket % divisor == 0 }
          model.removeAll { $0.ticket % divisor != 0 }
        }
        #expect(queue.count == model.count)
        #expect(queue.earliestDue == model.map(\.due).min())
      }
      let rest = queue.popAll(dueBy: .max)
      #expect(rest == model.sorted { $0.isBefore($1) })
    }
  }

  @Test func `a sweep drops what is outdated, with few looks at a time, and keeps the order`() {
    var random = SeededGenerator(seed: testSeed)
    for outdated in [0, 1, 2, 9, 10] as [UInt64] {
      var queue = DueQueue()
      while !queue.isCrowded { queue.insert(random.next() % 1000, due: Int64.random(in: 0...500, using: &random)) }
      var model: [DueQueue.Element] = []
      queue.forEach { if $0.ticket % 10 >= outdated { model.append($0) } }
      var (isDone, mostLooks, calls) = (false, 0, 0)
      while !isDone, calls < 1000 {
        var looks = 0
        isDone = queue.sweep { element in
          looks += 1
          return element.ticket % 10 >= outdated
        }
        mostLooks = max(mostLooks, looks)
        calls += 1
      }
      #expect(isDone && mostLooks <= 32)
      #expect(!queue.isCrowded)
      let rest = queue.popAll(dueBy: .max)
      #expect(rest == model.sorted { $0.isBefore($1) })
    }
  }

  /// What exists at the worst moment: old and new room while the queue changes from one to the other.
  private func peak(_ before: Int, _ after: Int) -> Int { before == after ? after : before + after }

  @Test func `growing, shrinking and compacting, the queue takes no more than 54 octets for an entry`() {
    var random = SeededGenerator(seed: testSeed)
    let most = 100_000
    // Below that the room that is always there counts.
    let least = 1000
    var worst = (growing: 0.0, shrinking: 0.0, crowded: 0.0)
    var queue = DueQueue()
    for ticket in 0..<UInt64(most) {
      let before = queue.reservedOctets
      queue.insert(ticket, due: Int64.random(in: 0...1_000_000_000, using: &random))
      guard queue.count > least else { continue }
      worst.growing = max(worst.growing, Double(peak(before, queue.reservedOctets)) / Double(queue.count))
    }
    queue.compact { _ in true }
    // Outdated elements come on top until the queue is crowded.
    while !queue.isCrowded {
      let before = queue.reservedOctets
      queue.insert(UInt64(most), due: Int64.random(in: 0...1_000_000_000, using: &random))
      worst.crowded = max(worst.crowded, Double(peak(before, queue.reservedOctets)) / Double(most))
    }
    let before = queue.reservedOctets
    queue.compact { $0.ticket < most }
    worst.crowded = max(worst.crowded, Double(peak(before, queue.reservedOctets)) / Double(most))
    #expect(queue.count == most)
    while queue.count > least {
      let before = queue.reservedOctets
      _ = queue.popFirst(dueBy: .max)
      worst.shrinking = max(worst.shrinking, Double(peak(before, queue.reservedOctets)) / Double(queue.count))
    }
    #expect(worst.growing > 16 && worst.growing <= 37, "\(worst)")
    #expect(worst.shrinking > 16 && worst.shrinking <= 43, "\(worst)")
    #expect(worst.crowded > 16 && worst.crowded <= 54, "\(worst)")
  }

  @Test func `a queue that is nearly empty after a storm gives its room back`() {
    var queue = DueQueue()
    for ticket in 0..<50_000 as Range<UInt64> { queue.insert(ticket, due: Int64(ticket)) }
    _ = queue.popAll(dueBy: 49_989)
    #expect(queue.count == 10)
    #expect(queue.reservedOctets < 4096)
    queue.compact { _ in false }
    #expect(queue.count == 0)
    #expect(queue.earliestDue == nil)
  }

  @Test func `the queue is crowded when a quarter of the entries is outdated besides`() {
    var queue = DueQueue()
    for ticket in 0..<2000 as Range<UInt64> { queue.insert(ticket, due: 0) }
    queue.compact { _ in true }
    for ticket in 0..<499 as Range<UInt64> { queue.insert(ticket, due: 0) }
    #expect(!queue.isCrowded)
    queue.insert(0, due: 0)
    #expect(queue.isCrowded)
    queue.compact { $0.ticket < 10 }
    #expect(!queue.isCrowded)
  }
}

extension DueQueue {
  /// The size of the buffer in octets.
  fileprivate var reservedOctets: Int { heap.capacity * MemoryLayout<Element>.stride }

  /// Removes and returns all due elements, earliest first.
  fileprivate mutating func popAll(dueBy now: Int64) -> [Element] {
    var taken: [Element] = []
    while let element = popFirst(dueBy: now) { taken.append(element) }
    return taken
  }
}
