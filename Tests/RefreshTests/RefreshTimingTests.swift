// RefreshTimingTests.swift -- due times: fraction, jitter, the limit near the end, failures, kept names.

import EventLoop
import TestSupport
import Testing

@testable import Refresh

@Suite struct RefreshTimingTests {
  private static let second: Int64 = 1_000_000_000
  private let second = RefreshTimingTests.second

  private func timing(at fraction: Double = 0.75, minimumTTL: Int64 = 10) -> RefreshTiming {
    RefreshTiming(fraction: fraction, minimumTTL: minimumTTL * second)
  }

  @Test(arguments: [(-1.0, 67_500), (0, 75_000), (1, 82_500), (-7, 67_500), (7, 82_500)] as [(Double, Int64)])
  func `an entry is due at its fraction, a tenth earlier or later`(jitter: Double, milliseconds: Int64) throws {
    let due = try #require(timing().due(storedAt: 3 * second, lifetime: 100 * second, jitter: jitter))
    #expect(abs(due - 3 * second - milliseconds * 1_000_000) < 1000)
  }

  @Test func `an entry below the least TTL is not fetched ahead, one of just that TTL is`() {
    #expect(timing().due(storedAt: 0, lifetime: 10 * second - 1, jitter: 0) == nil)
    #expect(timing().due(storedAt: 0, lifetime: 10 * second, jitter: 0) != nil)
    #expect(timing(minimumTTL: 0).due(storedAt: 0, lifetime: 0, jitter: 0) == nil)
  }

  @Test(arguments: [(100, 99_000), (20, 19_000), (10, 9500), (604_800, 604_798_000)] as [(Int64, Int64)])
  func `a fraction near the end leaves two seconds for the transfer, or at least one, or a twentieth of the lifetime`(
    lifetime: Int64, latest: Int64
  ) throws {
    let due = try #require(timing(at: 0.99).due(storedAt: 0, lifetime: lifetime * second, jitter: 1))
    #expect(abs(due - latest * 1_000_000) < 1000)
  }

  @Test func `due times stay in their range and spread out for any fraction and lifetime`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<2000 {
      let timing = RefreshTiming(
        fraction: .random(in: 0.1...0.99, using: &random), minimumTTL: 0, isShared: .random(using: &random))
      let lifetime = Int64.random(in: 1...Int64(UInt32.max), using: &random) >> Int64.random(in: 0...31, using: &random)
      guard lifetime > 0 else { continue }
      let nanoseconds = lifetime * second
      let limit = nanoseconds - min(second, nanoseconds / 20)
      let dues = (0..<20).map { _ in
        timing.due(storedAt: 0, lifetime: nanoseconds, jitter: RefreshTiming.drawJitter(using: &random))!
      }
      let wanted = Double(nanoseconds) * timing.fraction
      #expect(dues.allSatisfy { $0 <= limit && Double($0) >= wanted * 0.899_999 && Double($0) <= wanted * 1.100_001 })
      #expect(Set(dues).count > 15)
    }
  }

  @Test func `where refreshes are shared, none is due before the fraction of its lifetime`() throws {
    let shared = RefreshTiming(fraction: 0.75, minimumTTL: 0, isShared: true)
    for lifetime in [12, 60, 3_600] as [Int64] {
      let due = try [-1.0, 1].map { jitter in
        try #require(shared.due(storedAt: 0, lifetime: lifetime * second, jitter: jitter))
      }
      #expect(abs(due[0] - lifetime * second * 3 / 4) < 1_000 && abs(due[1] - lifetime * second * 33 / 40) < 1_000)
    }
  }

  @Test func `jitter is spread over its whole range, and the same seed brings the same`() {
    var (first, second) = (JitterGenerator(seed: testSeed), JitterGenerator(seed: testSeed))
    let drawn = (0..<1000).map { _ in RefreshTiming.drawJitter(using: &first) }
    #expect(drawn == (0..<1000).map { _ in RefreshTiming.drawJitter(using: &second) })
    #expect(drawn.allSatisfy { (-1...1).contains($0) })
    for part in 0..<10 {
      let from = Double(part) / 5 - 1
      #expect(drawn.count { $0 >= from && $0 < from + 0.2 } > 50)
    }
  }

  @Test func `after a failure half of the rest is waited, then a second, then nothing is tried`() {
    var now: Int64 = 0
    var waits: [Int64] = []
    while let next = timing().retry(now: now, expiresAt: 25 * second) {
      waits.append((next - now) / 1_000_000)
      now = next
    }
    #expect(waits == [12_500, 6250, 3125, 1562, 1000])
    #expect(timing().retry(now: 0, expiresAt: second) == nil)
    #expect(timing().retry(now: 0, expiresAt: second + 1) == second)
    #expect(timing().retry(now: 5, expiresAt: 0) == nil)
  }

  @Test func `a keep list name with a short TTL is due after min_ttl, a longer one before its end`() {
    #expect(timing().dueOnKeepList(storedAt: second, lifetime: 5 * second, jitter: 1) == 11 * second)
    #expect(timing().dueOnKeepList(storedAt: second, lifetime: 40 * second, jitter: 0) == 31 * second)
  }

  @Test func `a keep list name is never due within a second, for any TTL and min_ttl`() {
    #expect(timing(minimumTTL: 0).dueOnKeepList(storedAt: 0, lifetime: 0, jitter: 0) == second)
    var doublings: UInt8 = 0
    #expect(timing(minimumTTL: 0).retryOnKeepList(now: 0, expiresAt: nil, doublings: &doublings) == second)
  }

  @Test func `a keep list name without an entry is retried forever, at intervals up to five minutes`() {
    var doublings: UInt8 = 0
    let waits = (0..<300).map { _ in
      timing().retryOnKeepList(now: 0, expiresAt: nil, doublings: &doublings) / second
    }
    #expect(waits.prefix(8) == [10, 20, 40, 80, 160, 300, 300, 300])
    #expect(waits.suffix(292).allSatisfy { $0 == 300 })
  }

  @Test(arguments: [(0, [1, 2, 4, 8]), (400, [300, 300]), (604_800, [300, 300])] as [(Int64, [Int64])])
  func `retries of a keep list name wait a second to five minutes, for any min_ttl`(
    minimumTTL: Int64, expected: [Int64]
  ) {
    var doublings: UInt8 = 0
    let waits = expected.map { _ in
      timing(minimumTTL: minimumTTL).retryOnKeepList(now: 0, expiresAt: -1, doublings: &doublings) / second
    }
    #expect(waits == expected)
  }

  @Test func `a keep list name is retried before its end like any other, and its later waits are unchanged`() {
    var now = 15 * second
    var doublings: UInt8 = 0
    var times: [Int64] = []
    for _ in 0..<5 {
      now = timing().retryOnKeepList(now: now, expiresAt: 20 * second, doublings: &doublings)
      times.append(now / 1_000_000)
    }
    #expect(times == [17_500, 18_750, 19_750, 29_750, 49_750])
  }

  @Test(
    arguments: [
      (0, 75, 100, 80_000), (0, 15, 20, 16_000), (0, 97, 100, 98_000), (0, 99, 100, 99_000), (0, 900, 1200, 930_000),
      (0, 120, 100, 120_000),
      (0, 10, 0, 10_000),
    ] as [(Int64, Int64, Int64, Int64)])
  func `a question waits for others for 30 s or a twentieth of its lifetime, and not into the transfer's time`(
    storedAt: Int64, now: Int64, lifetime: Int64, milliseconds: Int64
  ) {
    let deadline = timing().gatheringDeadline(
      now: now * second, storedAt: storedAt * second, lifetime: lifetime * second)
    #expect(deadline == milliseconds * 1_000_000)
  }
}
