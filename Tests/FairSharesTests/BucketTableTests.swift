// BucketTableTests.swift -- token buckets against a plain model, and against attempts to fill the table.

import FairShares
import TestSupport
import Testing

private let second: Int64 = 1_000_000_000

@Suite struct BucketTableTests {
  /// How many of `count` simultaneous attempts are admitted.
  private func taken(_ table: BucketTable, _ key: UInt64, _ count: Int, at now: Int64) -> Int {
    (0..<count).count { _ in table.take(key, now: now) == 0 }
  }

  @Test func `a full bucket holds burst seconds' worth of tokens and refills at the rate`() {
    let table = BucketTable(rate: 50, burst: 4, seed: 1)
    #expect(taken(table, 7, 1000, at: 0) == 200)
    #expect(taken(table, 7, 1000, at: second / 50 - 1) == 0)
    #expect(taken(table, 7, 1000, at: second / 50) == 1)
    #expect(taken(table, 7, 1000, at: 2 * second) == 99)
    #expect(taken(table, 7, 1000, at: 100 * second) == 200)
    #expect(table.excessCount == 800 + 1000 + 999 + 901 + 800)
  }

  @Test func `keys do not share a bucket`() {
    let table = BucketTable(rate: 1, burst: 1, seed: 1)
    for key in 0..<1000 as Range<UInt64> { #expect(taken(table, key, 3, at: 5) == 1, "\(key)") }
  }

  @Test func `a rate of 0 is no limit`() {
    let table = BucketTable(rate: 0, burst: 1)
    #expect(!table.isOn)
    #expect(taken(table, 7, 100_000, at: 0) == 100_000)
    #expect(table.has(7, now: 0))
    #expect(table.excessCount == 0)
  }

  @Test func `a patient caller gets a future token and its delay`() {
    let table = BucketTable(rate: 10, burst: 1, seed: 1)
    let waits = (0..<25).map { _ in table.take(7, now: 0, patience: second) }
    #expect(
      waits == (0..<10).map { _ in 0 } + (1...10).map { $0 * second / 10 } + (0..<5).map { _ in BucketLimit.refused })
    // Tokens taken in advance are paid for.
    #expect(table.take(7, now: second) == BucketLimit.refused)
    #expect(table.take(7, now: 2 * second) == 0)
  }

  @Test func `a check takes no token`() {
    let table = BucketTable(rate: 1, burst: 1, seed: 1)
    for _ in 0..<5 { #expect(table.has(7, now: 0)) }
    #expect(table.take(7, now: 0) == 0)
    #expect(!table.has(7, now: 0))
    #expect(table.has(7, now: second))
  }

  @Test func `a table admits what a plain bucket admits, for any sequence`() {
    var generator = SeededGenerator(seed: testSeed)
    for _ in 0..<20 {
      let rate = Int.random(in: 1...5000, using: &generator)
      let burst = Int64.random(in: 1...5, using: &generator)
      let table = BucketTable(rate: rate, burst: burst, seed: generator.next())
      let interval = (second + Int64(rate) - 1) / Int64(rate)
      var model: [UInt64: Int64] = [:]
      var now: Int64 = 0
      for _ in 0..<2000 {
        now += Int64.random(in: 0...interval, using: &generator)
        let key = UInt64.random(in: 0..<4, using: &generator)
        let next = max(model[key] ?? now, now) + interval
        let isLetThrough = next - now <= burst * second
        if isLetThrough { model[key] = next }
        #expect(table.has(key, now: now) == isLetThrough, "seed \(testSeed)")
        #expect((table.take(key, now: now) == 0) == isLetThrough, "seed \(testSeed)")
      }
    }
  }

  @Test func `filling the table with keys neither restores an attacker's tokens nor takes others' tokens`() {
    // A client can forge any number of addresses: ten thousand different ones a second, each once.
    let table = BucketTable(rate: 50, burst: 4, capacity: 4096, seed: 1)
    var greedy = 0
    var modest = 0
    var next: UInt64 = 1000
    for tick in 0..<1000 {
      let now = Int64(tick) * second / 100
      for _ in 0..<100 {
        _ = table.take(next, now: now)
        next += 1
      }
      greedy += taken(table, 1, 20, at: now)
      if tick % 10 == 0 { modest += taken(table, 2, 1, at: now) }
    }
    #expect((690...705).contains(greedy))
    #expect(modest == 100)
  }

  @Test func `in a full set the emptiest bucket stays and a new key has a full bucket`() {
    let table = BucketTable(rate: 1, burst: 100, capacity: 8, seed: 1)
    for key in 1...8 as ClosedRange<UInt64> { #expect(taken(table, key, Int(key) * 10, at: 0) == Int(key) * 10) }
    #expect(taken(table, 9, 200, at: 0) == 100)
    // The fullest bucket was dropped, the emptiest was not.
    #expect(taken(table, 8, 200, at: 0) == 20)
    #expect(taken(table, 1, 200, at: 0) == 100)
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `taking a token does not allocate`() {
    let table = BucketTable(rate: 50, burst: 4)
    let run = {
      var key: UInt64 = 0
      while key < 10_000 {
        _ = table.take(key & 1023, now: 5)
        _ = table.has(key, now: 5)
        key &+= 1
      }
    }
    run()
    #expect(AllocationTrap.run(run) == .clean)
  }

  @Test func `four threads together take no more tokens than there are`() async {
    let table = BucketTable(rate: 100, burst: 4, seed: 1)
    let counts = await withTaskGroup(of: Int.self) { group in
      for _ in 0..<4 { group.addTask { (0..<1000).count { _ in table.take(7, now: 0) == 0 } } }
      return await group.reduce(0, +)
    }
    #expect(counts == 400)
  }
}
