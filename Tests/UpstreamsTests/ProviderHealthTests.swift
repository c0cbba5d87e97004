// ProviderHealthTests.swift -- up, down and pausing: when a provider is used, and the effect of probes.

import Testing
@testable import Upstreams

private let second: Int64 = 1_000_000_000

@Suite struct ProviderHealthTests {
  private func health(servers: Int = 2, attempts: Int = 3) -> ProviderHealth {
    ProviderHealth(servers: servers, attemptsBeforeSwitch: attempts, returnToFirst: 600 * second)
  }

  @Test func `a provider goes down when every server has failed in a row, not after one accident`() {
    var health = health()
    health.failed(0, now: 0)
    health.failed(1, now: 0)
    #expect(health.fitness(now: 0) == .up)
    health.failed(0, now: 1)
    #expect(health.fitness(now: 1) == .down)
  }

  @Test func `one server that replies keeps the provider up, however often the other fails`() {
    var health = health()
    for round in 0..<100 {
      health.failed(0, now: Int64(round))
      health.succeeded(1, now: Int64(round))
      #expect(health.fitness(now: Int64(round)) == .up)
    }
  }

  @Test func `a single server that fails as often as the configuration says goes down`() {
    var health = health(servers: 1, attempts: 2)
    health.failed(0, now: 0)
    #expect(health.fitness(now: 0) == .up)
    health.failed(0, now: 0)
    #expect(health.fitness(now: 0) == .down)
  }

  @Test func `probes come after 5 s, then at doubled intervals up to 60 s, and try every server`() throws {
    var health = health()
    for _ in 0..<2 {
      health.failed(0, now: 0)
      health.failed(1, now: 0)
    }
    var now: Int64 = 0
    for wait: Int64 in [5, 10, 20, 40, 60, 60, 60] {
      let probe = try #require(health.probe)
      #expect(probe.at == now + wait * second)
      #expect(probe.servers.sorted() == [0, 1])
      now = probe.at
      health.probeFailed(now: now)
      #expect(health.fitness(now: now) == .down)
    }
    health.probeSucceeded(1, now: now)
    #expect(health.fitness(now: now) == .up)
    #expect(health.rotation.current == 1)
    // Down again: the intervals start over.
    for _ in 0..<2 {
      health.failed(0, now: now)
      health.failed(1, now: now)
    }
    #expect(health.probe?.at == now + 5 * second)
  }

  @Test func `a probe returns to the first server after the configured time, and again later`() throws {
    var health = health()
    #expect(health.probe == nil)
    for _ in 0..<3 { health.failed(0, now: 7 * second) }
    #expect(health.rotation.current == 1)
    health.succeeded(1, now: 7 * second)
    #expect(health.probe == Probe(at: 607 * second, servers: [0]))
    health.probeFailed(now: 607 * second)
    #expect(health.rotation.current == 1)
    #expect(health.fitness(now: 607 * second) == .up)
    #expect(health.probe == Probe(at: 1207 * second, servers: [0]))
    health.probeSucceeded(0, now: 1207 * second)
    #expect(health.rotation.current == 0)
    #expect(health.probe == nil)
  }

  @Test func `the pause after a refusal doubles each time, up to an hour`() throws {
    var health = health()
    var now: Int64 = 0
    for expected: Int64 in [30, 60, 120, 240, 480, 960, 1920, 3600, 3600] {
      let length = health.setAside(.authentication, now: now)
      let pause = try #require(length)
      #expect(pause == expected * second)
      #expect(health.fitness(now: now + pause - 1) == .aside(.authentication))
      now += pause
      #expect(health.fitness(now: now) == .up)
    }
    health.succeeded(0, now: now)
    let afterSuccess = health.setAside(.parameters, now: now)
    #expect(afterSuccess == 30 * second)
  }

  @Test(arguments: [(7, 7), (0, 1), (-5, 1), (Int64.max / second, 86_400)] as [(Int64, Int64)])
  func `the pause that a provider names is bounded to a second and a day`(
    named: Int64, expected: Int64
  ) {
    var health = health()
    let length = health.setAside(.quota, for: named * second, now: 0)
    #expect(length == expected * second)
    #expect(health.fitness(now: expected * second - 1) == .aside(.quota))
    #expect(health.fitness(now: expected * second) == .up)
  }

  @Test func `a provider that does not serve the account gets a pause of an hour`() {
    var health = health()
    let length = health.setAside(.account, now: 0)
    #expect(length == 3600 * second)
  }

  @Test func `refusals of requests in flight count once, and the latest named time holds`() {
    var health = health()
    let first = health.setAside(.quota, now: 0)
    #expect(first == 5 * second)
    for _ in 0..<100 {
      let again = health.setAside(.quota, now: second)
      #expect(again == nil)
    }
    #expect(health.fitness(now: 5 * second) == .up)
    let next = health.setAside(.quota, now: 5 * second)
    #expect(next == 10 * second)
    let (later, earlier) = (
      health.setAside(.quota, for: 200 * second, now: 6 * second),
      health.setAside(.quota, for: 2 * second, now: 7 * second)
    )
    #expect(later == nil && earlier == nil)
    #expect(health.fitness(now: 206 * second - 1) == .aside(.quota))
    #expect(health.fitness(now: 206 * second) == .up)
  }

  @Test func `a reply that was in flight does not end a pause`() {
    var health = health()
    health.setAside(.quota, for: 17 * second, now: 0)
    health.succeeded(0, now: second)
    #expect(health.fitness(now: 17 * second - 1) == .aside(.quota))
    #expect(health.fitness(now: 17 * second) == .up)
  }

  @Test func `no probe is due during a pause, nor soon after a postponed one`() throws {
    var health = health(servers: 1, attempts: 1)
    health.failed(0, now: 0)
    #expect(health.probe?.at == 5 * second)
    health.setAside(.quota, for: 100 * second, now: second)
    #expect(health.probe?.at == 101 * second)
    health.probeWasPutOff(now: 101 * second)
    #expect(health.probe?.at == 106 * second)
    #expect(health.fitness(now: 106 * second) == .down)
    health.probeSucceeded(0, now: 106 * second)
    #expect(health.fitness(now: 106 * second) == .up)
  }

  @Test func `a pause does not change the current server`() {
    var health = health()
    for _ in 0..<10 { health.setAside(.authentication, now: 0) }
    #expect(health.rotation.current == 0)
    #expect(health.probe == nil)
  }
}

@Suite struct RequestLimitTests {
  @Test func `background work leaves half of the bucket to clients`() {
    for rate in [1, 2, 5, 10] {
      var limit = RequestLimit(perSecond: rate)
      var refreshes = 0
      while limit.hasSpare(now: 0) {
        let taken = limit.take(now: 0)
        #expect(taken)
        refreshes += 1
      }
      #expect(refreshes == rate - rate / 2)
      let clients = (0..<20).count { _ in limit.take(now: 0) }
      #expect(clients == rate / 2)
    }
  }

  @Test func `no second has more transfers than the rate, at any pace`() {
    var limit = RequestLimit(perSecond: 10)
    var taken: [Int64] = []
    for step in 0..<4000 {
      let now = Int64(step) * second / 500
      if limit.take(now: now) { taken.append(now) }
    }
    // A full bucket at first, then ten a second for eight seconds.
    #expect((80...90).contains(taken.count))
    for (index, time) in taken.enumerated() where index >= 20 { #expect(time - taken[index - 20] >= second) }
  }

  @Test func `an idle bucket holds at most a second's worth`() {
    var limit = RequestLimit(perSecond: 3)
    for now: Int64 in [0, 1_000_000 * second] {
      let outcomes = (0..<5).map { _ in limit.take(now: now) }
      #expect(outcomes == [true, true, true, false, false])
    }
  }

  @Test func `a rate of 0 is no limit`() {
    var limit = RequestLimit(perSecond: 0)
    let taken = (0..<1000).count { _ in limit.take(now: 0) }
    #expect(taken == 1000)
  }
}
