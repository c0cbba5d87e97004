// AccountPauseTests.swift -- which words of a provider begin a pause, how long it lasts, and what ends it.

import EventLoop
import FairShares
import HTTPDNS
import Testing

@testable import Upstreams

@Suite struct AccountPauseTests {
  private var now = BootInstant(nanoseconds: 1_000_000_000_000)
  private var pause = AccountPause()

  private func domain(_ number: Int) -> DomainKey { DomainKey(value: UInt64(number)) }

  private mutating func refuse(_ failure: HTTPDNSFailure, _ number: Int = 1) -> Duration? {
    pause.refused(failure, on: domain(number), now: now)
  }

  @Test(arguments: [
    (HTTPDNSFailure.authentication, 30), (.expired, 30), (.account, 30), (.unsigned, 30), (.quota, 5),
  ])
  func `the service's own words about the account begin a pause`(failure: HTTPDNSFailure, seconds: Int) {
    var pause = pause
    #expect(pause.refused(failure, on: domain(1), now: now) == .seconds(seconds))
    #expect(pause.left(now: now + .milliseconds(seconds * 1000 - 1)) == .milliseconds(1))
    #expect(pause.left(now: now + .seconds(seconds)) == nil)
  }

  @Test(arguments: [
    HTTPDNSFailure.status(401), .status(403), .status(429), .status(400), .status(404), .status(500), .name, .fault,
    .wrongQuestion, .truncated, .unsupported, .unreadable(.page),
  ])
  func `what a name can provoke begins none, however often`(failure: HTTPDNSFailure) {
    var pause = pause
    for number in 0..<100 { #expect(pause.refused(failure, on: domain(number), now: now) == nil) }
    #expect(pause.left(now: now) == nil)
  }

  @Test mutating func `a pause doubles while nothing is answered, up to an hour`() {
    var lengths: [Duration] = []
    for _ in 0..<9 {
      let length = refuse(.account)
      lengths.append(length ?? .zero)
      now = now + (length ?? .zero)
    }
    #expect(lengths == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600].map { .seconds($0) })
  }

  @Test mutating func `refusals of requests in flight change nothing`() {
    let first = refuse(.account)
    #expect(first == .seconds(30))
    for _ in 0..<10 {
      let again = refuse(.account)
      #expect(again == nil)
    }
    #expect(pause.left(now: now) == .seconds(30))
  }

  @Test mutating func `one question in 30 s is let through, and its verdict ends the pause`() {
    for _ in 0..<2 {
      _ = refuse(.account)
      now = now + (pause.left(now: now) ?? .zero)
    }
    _ = refuse(.account)
    #expect(pause.left(now: now) == .seconds(120))
    var trials: [Int] = []
    for second in 0..<120 {
      guard pause.takeTrial(1, now: now + .seconds(second)) else { continue }
      trials.append(second)
      let length = pause.refused(.account, on: domain(1), now: now + .seconds(second))
      #expect(length == nil)
    }
    #expect(trials == [30, 60, 90])
    pause.gaveVerdict(sentAt: now + .seconds(90), now: now + .seconds(91))
    #expect(pause.left(now: now + .seconds(91)) == nil)
    // The next one is short again.
    now = now + .seconds(100)
    let next = refuse(.account)
    #expect(next == .seconds(30))
  }

  @Test mutating func `a trial that said nothing leaves the next one to another client`() {
    for _ in 0..<2 {
      _ = refuse(.account)
      now = now + (pause.left(now: now) ?? .zero)
    }
    _ = refuse(.account)
    let first = pause.takeTrial(1, now: now + .seconds(30))
    let again = pause.takeTrial(1, now: now + .seconds(60))
    let other = pause.takeTrial(2, now: now + .seconds(61))
    #expect(first && !again && other)
    // Alone, a client has to be enough.
    let isEarly = pause.takeTrial(2, now: now + .seconds(95))
    let isInTime = pause.takeTrial(2, now: now + .seconds(96))
    #expect(!isEarly && isInTime)
  }

  @Test mutating func `a verdict on a question that was sent before does not end it`() {
    _ = refuse(.quota)
    pause.gaveVerdict(sentAt: BootInstant(nanoseconds: now.nanoseconds - 1), now: now + .milliseconds(20))
    #expect(pause.left(now: now + .milliseconds(20)) != nil)
  }

  @Test mutating func `Retry-After counts when names of three domains got it without a verdict in between`() {
    let busy = HTTPDNSFailure.status(429, retryAfter: .seconds(17))
    for number in [1, 1, 1, 2, 2] {
      let length = refuse(busy, number)
      #expect(length == nil)
    }
    pause.gaveVerdict(sentAt: now, now: now)
    for number in [3, 4] {
      let length = refuse(busy, number)
      #expect(length == nil)
    }
    let length = refuse(busy, 5)
    #expect(length == .seconds(17))
    // It is kept: no trial, no verdict ends it.
    let isTried = pause.takeTrial(1, now: now + .seconds(16))
    #expect(!isTried)
    pause.gaveVerdict(sentAt: now + .seconds(1), now: now + .seconds(2))
    #expect(pause.left(now: now + .seconds(16)) == .seconds(1))
    #expect(pause.left(now: now + .seconds(17)) == nil)
    // One name does not renew it.
    now = now + .seconds(18)
    let renewed = refuse(busy, 5)
    #expect(renewed == nil)
  }

  @Test(arguments: [(0, 1), (1, 1), (86_400, 86_400), (10_000_000, 86_400)])
  func `Retry-After is a second at least and a day at most`(named: Int, expected: Int) {
    var pause = pause
    var length: Duration?
    for number in 0..<3 {
      length = pause.refused(.status(429, retryAfter: .seconds(named)), on: domain(number), now: now)
    }
    #expect(length == .seconds(expected))
  }

  @Test mutating func `a server that asks for calm has a second, doubled while it asks again, up to a minute`() {
    var lengths: [Duration?] = []
    for _ in 0..<8 {
      let length = pause.askedForCalm(now: now)
      lengths.append(length)
      let again = pause.askedForCalm(now: now)
      #expect(again == nil)
      now = now + (length ?? .zero)
    }
    #expect(lengths == [1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) })
    pause.gaveVerdict(sentAt: now, now: now)
    let next = pause.askedForCalm(now: now)
    #expect(next == .seconds(1))
  }

  @Test mutating func `a service that is switched off is not asked for an hour, or until a list has servers`() {
    pause.switchedOff(now: now)
    #expect(pause.left(now: now) == .seconds(3600))
    let isTried = pause.takeTrial(1, now: now + .seconds(1000))
    #expect(!isTried)
    pause.end()
    #expect(pause.left(now: now) == nil)
  }
}
