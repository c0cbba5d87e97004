// PatienceTests.swift -- how long a question waits for a provider: the usual time, silence, and its end.

import EventLoop
import FairShares
import Testing

@testable import Upstreams

@Suite struct PatienceTests: ~Copyable {
  private var now = BootInstant(nanoseconds: 1_000_000_000_000)
  private var patience = Patience()

  private func isSilent(_ now: BootInstant) -> Bool { patience.isSilent(now: now) }

  private func domain(_ number: Int) -> DomainKey { DomainKey(value: UInt64(number)) }

  private mutating func verdict(_ number: Int, of client: UInt64 = 1, after milliseconds: Int) -> Bool {
    patience.gaveVerdict(
      on: domain(number), of: ClientKey(value: client), after: .milliseconds(milliseconds), wasAway: false, now: now)
  }

  @Test mutating func `the usual time is the median of the latest verdicts, between 20 and 250 ms`() {
    #expect(patience.usual == .microseconds(37_500))
    for (number, time) in [10, 30, 40, 35, 900].enumerated() { _ = verdict(number, after: time) }
    #expect(patience.usual == .milliseconds(35))
    for number in 10..<30 { _ = verdict(number, after: 1) }
    #expect(patience.usual == .milliseconds(20))
    for number in 30..<50 { _ = verdict(number, after: 2000) }
    #expect(patience.usual == .milliseconds(250))
  }

  @Test mutating func `of one domain a verdict counts once a second`() {
    for _ in 0..<30 { _ = verdict(1, after: 100) }
    for number in 2...4 { _ = verdict(number, after: 40) }
    #expect(patience.usual == .milliseconds(40))
    for _ in 0..<5 {
      now = now + .seconds(1)
      _ = verdict(1, after: 100)
    }
    #expect(patience.usual == .milliseconds(100))
  }

  @Test mutating func `slow names of one client do not decide what is usual`() {
    for number in 0..<5 { _ = verdict(number, after: 30) }
    for number in 10..<40 { _ = verdict(number, of: 9, after: 400) }
    #expect(patience.usual == .milliseconds(30))
    for number in 50..<55 { _ = verdict(number, of: 2, after: 400) }
    #expect(patience.usual == .milliseconds(250))
  }

  @Test(arguments: [([1, 2, 3], true), ([1, 1, 1, 1, 1], true), ([1, 2], false), ([1, 1, 1, 1], false)])
  func `patience is short when a question is two seconds old and three domains or five questions were asked since`(
    domains: [Int], isShort: Bool
  ) {
    var patience = Patience()
    for number in domains { patience.sent(domain(number), askedAt: now) }
    let (isEarly, isThen) = (
      patience.isSilent(now: now + .milliseconds(1999)), patience.isSilent(now: now + .milliseconds(2000))
    )
    #expect(!isEarly)
    #expect(isThen == isShort)
  }

  @Test mutating func `the short patience is 150 ms, or four times the usual time`() {
    let first = patience.short
    #expect(first == .milliseconds(150))
    for (time, expected) in [(20, 150), (30, 150), (60, 240), (1000, 1000)] {
      patience = Patience()
      _ = verdict(9, after: time)
      let short = patience.short
      #expect(short == .milliseconds(expected))
    }
  }

  @Test mutating func `a question that waited for other providers counts from when its client asked`() {
    let asked = now
    now = now + .milliseconds(1900)
    for number in 1...3 { patience.sent(domain(number), askedAt: asked) }
    #expect(!isSilent(now))
    #expect(isSilent(now + .milliseconds(100)))
  }

  @Test mutating func `another transfer of a question is no silence from before the last verdict`() {
    let asked = now
    now = now + .milliseconds(1500)
    _ = verdict(1, after: 30)
    now = now + .milliseconds(500)
    for number in 2...9 { patience.sent(domain(number), askedAt: asked) }
    #expect(!isSilent(now))
    #expect(isSilent(now + .milliseconds(1500)))
  }

  @Test mutating func `a verdict ends a silence, and only that one ends what is remembered`() {
    let isFirst = verdict(1, after: 30)
    #expect(!isFirst)
    for number in 1...2 { patience.sent(domain(number), askedAt: now) }
    now = now + .seconds(60)
    let isQuiet = verdict(1, after: 30)
    #expect(!isQuiet)
    #expect(patience.verdicts.recoveredAt < patience.verdicts.last)
    for number in 1...3 { patience.sent(domain(number), askedAt: now) }
    now = now + .seconds(2)
    let isBack = verdict(1, after: 30)
    #expect(isBack)
    #expect(patience.verdicts.recoveredAt == now && patience.verdicts.last == now)
    #expect(!isSilent(now + .seconds(60)))
    #expect(patience.silentSince == nil)
  }

  @Test mutating func `a provider that was not asked for a while recovers with its first verdict`() {
    let isBack = patience.gaveVerdict(on: domain(1), of: .ourselves, after: .zero, wasAway: true, now: now)
    #expect(isBack)
    #expect(patience.verdicts.recoveredAt == now)
  }

  @Test mutating func `another network ends a silence`() {
    for number in 1...3 { patience.sent(domain(number), askedAt: now) }
    now = now + .seconds(10)
    patience.networkHasChanged(now: now)
    #expect(!isSilent(now + .seconds(10)))
    #expect(patience.verdicts.recoveredAt == now)
  }
}
