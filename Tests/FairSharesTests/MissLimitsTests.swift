// MissLimitsTests.swift -- limits of questions upstream per client and per domain.

import FairShares
import Testing

private let second: Int64 = 1_000_000_000

@Suite struct MissLimitsTests {
  private let one = ClientKey(value: 1)
  private let other = ClientKey(value: 2)

  /// How many of `count` questions about different domains may go.
  private func passed(_ limits: inout MissLimits, _ client: ClientKey, _ count: Int, at now: Int64) -> Int {
    (0..<count).count { limits.take(client, DomainKey(value: UInt64($0) + 1), now: now) == nil }
  }

  @Test func `a domain's limit applies to every client, also to a single one`() {
    var limits = MissLimits(perClient: 500, perDomain: 50)
    var passed = 0
    // 10,000 in five seconds.
    for number in 0..<10_000 {
      let now = Int64(number) * second / 2000
      if limits.take(number % 2 == 0 ? one : other, DomainKey(value: 9), now: now) == nil { passed += 1 }
    }
    #expect((445...450).contains(passed))
    #expect(limits.take(one, DomainKey(value: 8), now: 5 * second) == nil)
    #expect((0..<2).map { _ in limits.take(one, DomainKey(value: 9), now: 5 * second) }.last == .domain)
  }

  @Test func `a question that the domain's limit forbids costs the client nothing`() {
    var limits = MissLimits(perClient: 1, perDomain: 1)
    _ = limits.take(other, DomainKey(value: 1), now: 0)
    for _ in 0..<100 { _ = limits.take(one, DomainKey(value: 1), now: 0) }
    #expect(limits.take(one, DomainKey(value: 2), now: 0) == nil)
  }

  @Test func `a single client has no limit`() {
    var limits = MissLimits(perClient: 10, perDomain: 50)
    #expect(passed(&limits, one, 10_000, at: 0) == 10_000)
  }

  @Test func `a client's limit applies while other clients are active`() {
    var limits = MissLimits(perClient: 10, perDomain: 50)
    #expect(passed(&limits, one, 1000, at: 0) == 1000)
    #expect(passed(&limits, other, 1, at: second) == 1)
    // The burst is used up; a second's worth of tokens has been added.
    #expect(passed(&limits, one, 1000, at: second) == 10)
    #expect(passed(&limits, other, 1000, at: second) == 39)
    #expect(passed(&limits, one, 1000, at: 2 * second) == 10)
    #expect(passed(&limits, one, 1000, at: second + MissLimits.company) == 40)
    #expect(passed(&limits, one, 1000, at: second + MissLimits.company + 1) == 1000)
  }

  @Test func `a client that uses all it can of a domain leaves others a part`() {
    var limits = MissLimits(perClient: 0, perDomain: 50)
    let domain = DomainKey(value: 9)
    var (flood, modest, asked) = (0, 0, 0)
    for number in 0..<20_000 {
      let now = Int64(number) * second / 2000
      if number % 500 == 250 {
        asked += 1
        if limits.take(other, domain, now: now) == nil { modest += 1 }
      }
      if limits.take(one, domain, now: now) == nil { flood += 1 }
    }
    // Four questions a second in competition with 2,000.
    #expect(asked == 40)
    #expect(modest == asked)
    // The total is at most the domain's rate.
    #expect(flood + modest <= 200 + 50 * 10)
    #expect(flood >= 160 + 40 * 10)
  }

  @Test func `two flooding clients together get the domain's rate once`() {
    var limits = MissLimits(perClient: 0, perDomain: 50)
    var passed = 0
    for number in 0..<20_000 {
      let client = ClientKey(value: UInt64(number % 7 + 1))
      if limits.take(client, DomainKey(value: 9), now: Int64(number) * second / 2000) == nil { passed += 1 }
    }
    #expect((695...700).contains(passed))
  }

  @Test func `names in use have a bucket of their own, of the same rate`() {
    var limits = MissLimits(perClient: 0, perDomain: 50)
    let domain = DomainKey(value: 9)
    while limits.take(one, domain, now: 0) == nil {}
    #expect(limits.take(one, domain, now: 0) == .domain)
    #expect((0..<1000).count { _ in limits.take(one, domain, isInUse: true, now: 0) == nil } == 200)
    // A second later, both buckets hold a second's worth.
    let later = (0..<1000).count { _ in limits.take(one, domain, isInUse: true, now: second) == nil }
    #expect((90...95).contains(later))
  }

  @Test func `ten times as many questions pass to an unbilled upstream, by buckets of its own`() {
    var limits = MissLimits(perClient: 0, perDomain: 50)
    let domain = DomainKey(value: 9)
    func pass(_ isBilled: Bool) -> Int {
      (0..<5000).count { _ in limits.take(one, domain, isBilled: isBilled, now: 0) == nil }
    }
    // Four seconds' worth, a tenth of it the client's part of the reserve.
    #expect(pass(false) == 1800)
    #expect(pass(true) == 180)
  }

  @Test func `the smallest rates have no reserve`() {
    for rate in 1...4 {
      var limits = MissLimits(perClient: 0, perDomain: rate)
      _ = limits.take(other, DomainKey(value: 8), now: 0)
      let passed = (0..<1000).count { _ in limits.take(one, DomainKey(value: 9), now: 0) == nil }
      #expect((4 * rate - 1...4 * rate).contains(passed))
    }
  }

  @Test func `a rate of 0 is no limit`() {
    var limits = MissLimits(perClient: 0, perDomain: 0)
    _ = limits.take(other, DomainKey(value: 1), now: 0)
    for _ in 0..<10_000 { #expect(limits.take(one, DomainKey(value: 1), now: 0) == nil) }
  }
}
