// FleetScheduleTests.swift -- the store's clock, waiting for another daemon, the queue of writes, members.

import Testing

@testable import Fleet

private let millisecond: Int64 = 1_000_000

@Suite struct `The store's clock` {
  @Test func `is halfway between question and answer`() {
    var clock = StoreClock()
    #expect(clock.time(at: 0) == nil && clock.isDue(at: 0))
    clock.update(milliseconds: 1_700_000_000_100, sentAt: 0, now: 20 * millisecond, wallTime: 1_700_000_000)
    #expect(clock.time(at: 20 * millisecond) == 1_700_000_000_110)
    #expect(!clock.isDue(at: 3_599_000 * millisecond) && clock.isDue(at: 3_600_020 * millisecond))
    #expect(!clock.isOff && clock.difference == 0)
    clock.invalidate()
    #expect(clock.time(at: 0) == nil && clock.isDue(at: 0))
  }

  @Test(arguments: [(Int64(300), false), (301, true), (-300, false), (-301, true)])
  func `five minutes from ours is too far`(difference: Int64, isOff: Bool) {
    var clock = StoreClock()
    clock.update(milliseconds: (1_700_000_000 + difference) * 1000, sentAt: 0, now: 0, wallTime: 1_700_000_000)
    #expect(clock.isOff == isOff)
  }
}

@Suite struct `Waiting for a lease` {
  private func pauses(_ longest: Int64, median: Int64? = nil, random: Double = 0.5) -> [Int64] {
    LeaseWait(longest: longest * millisecond, median: median.map { $0 * millisecond }, random: random).map {
      $0 / millisecond
    }
  }

  @Test func `looks again after 10, 30, 70 and 150 ms`() {
    #expect(pauses(150) == [10, 20, 40, 80])
    #expect(pauses(0) == [])
    // Never after the end of the wait, and once at it.
    #expect(pauses(149) == [10, 20, 40, 79])
    #expect(pauses(150, median: 20) == [10, 20, 10])
    #expect(pauses(150, random: 1) == [12, 24, 48, 66])
    #expect(pauses(2_000) == [10, 20, 40, 80, 160, 320, 640, 730])
  }
}

@Suite struct `Writes that wait` {
  private func write(_ number: Int, octets: Int = 10) -> WriteQueue.Write {
    WriteQueue.Write(
      question: FleetQuestion(
        name: .root, type: .a, dnssecOK: false, checkingDisabled: false, subnet: nil, fingerprint: []),
      key: [UInt8(number & 255)], value: [UInt8](repeating: 0, count: octets), lifetime: Int64(number))
  }

  @Test func `keep their order, and the oldest make room`() {
    var queue = WriteQueue()
    var dropped: [Int64] = []
    for number in 0..<1_100 { dropped += queue.add(write(number)).map(\.lifetime) }
    #expect(queue.count == 1_024 && queue.dropped == 76 && dropped == Array(0..<76))
    for number in 76..<1_100 {
      let next = queue.next()
      #expect(next?.lifetime == Int64(number))
    }
    let none = queue.next()
    #expect(none == nil && queue.isEmpty)
    for number in 0..<40 { _ = queue.add(write(number, octets: 60_000)) }
    let first = queue.next()
    #expect(queue.count == 16 && first?.lifetime == 23)
  }

  @Test func `come out as they went in`() {
    var queue = WriteQueue()
    for number in 0..<5_000 {
      _ = queue.add(write(number))
      guard number >= 1_000 else { continue }
      let next = queue.next()
      #expect(next?.lifetime == Int64(number - 1_000))
    }
    #expect(queue.dropped == 0)
  }
}

@Suite struct `A member` {
  @Test func `is read as it was written`() {
    let member = FleetMember(id: "0123", version: "0.2.0", fingerprint: "abc", host: "web-1|x")
    #expect(FleetMember(text: member.text) == member)
    #expect(FleetMember(text: "a|b|c") == nil && FleetMember(text: String(repeating: "|", count: 600)) == nil)
    #expect(FleetMember(text: "a|b|c|\u{1B}[2J")?.host == "?[2J")
  }
}
