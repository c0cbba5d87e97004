// TransferQueueTests.swift -- transfers that wait: who is next, and what it costs to take them all out.

import Testing

@testable import HTTPClient

@Suite struct TransferQueueTests {
  @Test func `each waiting transfer comes out once, in any state of the queue`() {
    let queue = TransferQueue()
    let all = (0..<12).map { _ in Transfer() }
    for (number, transfer) in all.enumerated() { queue.append(transfer, client: 1, domain: UInt64(number % 4)) }
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
    queue.append(all[0], client: 1, domain: 1)
    #expect(queue.next(free: 1) === all[0])
    #expect(queue.next(free: 1) == nil)
  }

  /// The clients of the transfers that begin, one after the other, until none may.
  private func begin(_ queue: TransferQueue, places: Int, _ client: [ObjectIdentifier: UInt64]) -> [UInt64] {
    var order: [UInt64] = []
    while let transfer = queue.next(free: places - order.count) { order.append(client[ObjectIdentifier(transfer)]!) }
    return order
  }

  @Test func `a free place goes to the client with the fewest, whatever it asks about`() {
    let queue = TransferQueue()
    var clients: [ObjectIdentifier: UInt64] = [:]
    let all = (0..<40).map { _ in Transfer() }
    // The first client has thirty names of as many domains, the others one each.
    for (number, transfer) in all.enumerated() {
      let client = UInt64(number < 30 ? 1 : number)
      clients[ObjectIdentifier(transfer)] = client
      queue.append(transfer, client: client, domain: UInt64(100 + number))
    }
    let order = begin(queue, places: 16, clients)
    #expect(order.prefix(11).count { $0 == 1 } == 1)
    #expect(Set(order).count == 11)
    // The first client has five, and leaves one.
    #expect(order.count == 15)
  }

  @Test func `a client has three quarters of the places, and a domain three quarters of those`() {
    for (domains, places, expected) in [(200, 64, 48), (1, 64, 36), (200, 1, 1), (1, 1, 1), (200, 4, 3)] {
      let queue = TransferQueue()
      var clients: [ObjectIdentifier: UInt64] = [:]
      let all = (0..<200).map { _ in Transfer() }
      for (number, transfer) in all.enumerated() {
        clients[ObjectIdentifier(transfer)] = 1
        queue.append(transfer, client: 1, domain: UInt64(1 + number % domains))
      }
      #expect(begin(queue, places: places, clients).count == expected, "\(domains) domains, \(places) places")
      // Another client finds a place at once.
      let other = Transfer()
      queue.append(other, client: 2, domain: 1)
      if expected < places { #expect(queue.next(free: places - expected) === other) }
    }
  }

  @Test func `clients whose transfers all hang leave a place to each that has none`() {
    for hanging in 1...12 {
      let queue = TransferQueue()
      let all = (0..<hanging * 64).map { _ in Transfer() }
      for (number, transfer) in all.enumerated() {
        queue.append(transfer, client: UInt64(1 + number % hanging), domain: UInt64(number))
      }
      var free = 64
      while queue.next(free: free) != nil { free -= 1 }
      #expect(free >= 64 / (1 + 3 * hanging), "\(hanging) clients")
      #expect(free <= 64 / 4, "\(hanging) clients")
      for number in 0..<free {
        let other = Transfer()
        queue.append(other, client: UInt64(1000 + number), domain: 1)
        #expect(queue.next(free: free - number) === other, "\(hanging) clients")
      }
    }
  }

  @Test func `the daemon's own transfers are not limited`() {
    let queue = TransferQueue()
    let all = (0..<20).map { _ in Transfer() }
    for transfer in all { queue.append(transfer, client: 0, domain: 0) }
    for left in (1...20).reversed() { #expect(queue.next(free: left) != nil) }
  }

  @Test func `a client at its limit does not keep others from beginning`() {
    let queue = TransferQueue()
    let all = (0..<40).map { _ in Transfer() }
    for transfer in all[..<20] { queue.append(transfer, client: 1, domain: 1) }
    for (number, transfer) in all[20...].enumerated() { queue.append(transfer, client: 2, domain: UInt64(number)) }
    var begun = [0, 0]
    while let transfer = queue.next(free: 16 - begun[0] - begun[1]) {
      begun[all[..<20].contains { $0 === transfer } ? 0 : 1] += 1
    }
    #expect(begun == [6, 8])
  }

  @Test func `a transfer for several clients begins with the first of their turns, and costs no other client one`() {
    let queue = TransferQueue()
    let all = (0..<40).map { _ in Transfer() }
    // The first client has all the connections that it may have, and others wait.
    for transfer in all[..<20] { queue.append(transfer, client: 1, domain: 7) }
    var begun: [Transfer] = []
    while let transfer = queue.next(free: 16 - begun.count) { begun.append(transfer) }
    let (waiting, free) = (queue.count, 16 - begun.count)
    #expect(waiting > 0)
    // Another client asks for the last of these, and the first one for what that one asks for.
    queue.append(all[20], client: 2, domain: 8)
    queue.join(all[19], client: 2)
    queue.join(all[19], client: 2)
    queue.join(all[20], client: 1)
    #expect(queue.count == waiting + 1)
    var next: [Transfer] = []
    while let transfer = queue.next(free: free - next.count) { next.append(transfer) }
    #expect(Set(next.map(ObjectIdentifier.init)) == Set(all[19...20].map(ObjectIdentifier.init)))
    // They count for the client whose turns they took, and go back into its list.
    #expect(next.allSatisfy { queue.countOfClient($0) == 2 })
    queue.takeBack(next[0])
    #expect(queue.next(free: free - 1) === next[0])
    // One that waits again, or is joined before that, has all its turns.
    queue.join(next[1], client: 3)
    queue.ended(next[1])
    queue.append(next[1], client: next[1] === all[20] ? 2 : 1, domain: 8)
    #expect(queue.next(free: 1) === next[1] && queue.countOfClient(next[1]) == 1)
    for transfer in begun + next { queue.ended(transfer) }
    #expect(queue.takeAll().count == waiting - 1 && queue.isEmpty)
  }

  @Test func `a transfer that leaves the queue leaves all lists`() {
    let queue = TransferQueue()
    let (first, second) = (Transfer(), Transfer())
    queue.append(first, client: 1, domain: 1)
    queue.append(second, client: 2, domain: 1)
    for client in 2..<40 { queue.join(first, client: UInt64(client)) }
    queue.remove(first)
    #expect(queue.count == 1 && queue.next(free: 4) === second && queue.next(free: 4) == nil)
    // One that does not wait is in no list.
    queue.join(first, client: 3)
    #expect(queue.isEmpty && queue.next(free: 4) == nil)
  }

  @Test func `taking ten times as many transfers takes ten times the steps`() {
    func steps(_ count: Int, owners: Int) -> Int {
      let queue = TransferQueue()
      for (number, transfer) in (0..<count).map({ _ in Transfer() }).enumerated() {
        queue.append(transfer, client: UInt64(number % owners), domain: UInt64(number % 7))
      }
      #expect(queue.takeAll().count == count)
      return queue.steps
    }
    for (count, owners) in [(100, 100), (1000, 1000), (1000, 3), (1000, 1)] {
      #expect(steps(count, owners: owners) <= 2 * count)
    }
  }
}
