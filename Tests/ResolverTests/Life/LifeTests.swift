// LifeTests.swift -- whole lives on a virtual clock, each from one seed: what clients get, and what that costs.

import Glibc
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct LifeTests {
  /// A life of a bit more than a virtual hour with a bit of everything.
  private static func hour(_ seed: UInt64) -> LifePlan { LifePlan(seed: seed, span: 4000, rate: 0.13) }

  /// A week in which little is asked, but enough to make the most popular names hot.
  private static func week(_ seed: UInt64, rate: Double) -> LifePlan {
    var plan = LifePlan(seed: seed, span: 7 * 86_400, rate: rate)
    plan.names = 8
    plan.ttls = [600, 3600]
    plan.session = 86_400
    return plan
  }

  /// A network that changes every minute, while many names are in use.
  private static func flap(_ seed: UInt64) -> LifePlan {
    var plan = LifePlan(seed: seed, span: 900, rate: 2)
    plan.names = 60
    plan.ttls = [300, 3600]
    plan.session = 0
    (plan.flap, plan.wakefulness) = (60, 0)
    plan.perMinute = 10
    return plan
  }

  /// More names that are always kept fresh than may be refreshed.
  private static func budget(_ seed: UInt64) -> LifePlan {
    var plan = LifePlan(seed: seed, span: 30 * 3600, rate: 0.02)
    plan.ttls = [300, 600]
    plan.session = 0
    plan.kept = 8
    (plan.perMinute, plan.perDay) = (2, 200)
    return plan
  }

  /// A quarter of an hour with a hostile client that comes every two minutes.
  private static func siege(_ seed: UInt64) -> LifePlan {
    var plan = LifePlan(seed: seed, span: 1000, rate: 0.5)
    plan.hostility = 110
    plan.isOneMachine = seed % 2 == 0
    plan.wakefulness = 0
    (plan.hasLocalDNS, plan.isHostileFromTheStart) = (true, seed % 3 == 0)
    return plan
  }

  /// How many weeks are to be lived through: `make simulate SEEDS=N`.
  private static let weeks = getenv("HTTPDNSD_SIMULATE_WEEKS").flatMap { Int(String(cString: $0)) } ?? 1

  /// Lives from `first` on; stops at the first one in which something was against the rules.
  @discardableResult
  private func live(
    _ numbers: some Sequence<Int>, _ location: SourceLocation = #_sourceLocation, _ plan: (UInt64) -> LifePlan
  ) -> [LifeTally] {
    var tallies: [LifeTally] = []
    for number in numbers {
      let seed = testSeed &+ UInt64(number)
      let (violations, tally) = Life(plan(seed)).run()
      #expect(
        violations.isEmpty, "HTTPDNSD_TEST_SEED=\(seed): \(violations.joined(separator: "; "))",
        sourceLocation: location)
      guard violations.isEmpty else { break }
      tallies.append(tally)
    }
    return tallies
  }

  @Test(arguments: 0..<8)
  func `no answer is older than allowed, and no client waits for a hot name`(_ part: Int) {
    let tallies = live((0..<25).map { $0 * 8 + part }) { LifeTests.hour($0) }
    #expect(tallies.reduce(0) { $0 + $1.ahead } > 50)
    #expect(tallies.reduce(0) { $0 + $1.stale } > 50)
  }

  @Test(arguments: 0..<4)
  func `a week with an outage an hour`(_ part: Int) {
    live(stride(from: part, to: LifeTests.weeks, by: 4)) { seed in
      var plan = LifeTests.week(seed, rate: LifeTests.weeks > 1 ? 0.1 : 0.02)
      if LifeTests.weeks > 1 { (plan.hostility, plan.isOneMachine) = (6 * 3600, seed % 2 == 0) }
      return plan
    }
  }

  @Test(arguments: 0..<4)
  func `hostile clients get their share and take nothing from others`(_ part: Int) {
    let tallies = live((0..<5).map { $0 * 4 + part }) { LifeTests.siege($0) }
    #expect(tallies.allSatisfy { $0.hostile > 5000 }, "\(tallies)")
  }

  @Test func `the same seed is the same life`() {
    let lives = [1, 1, 2].map { Life(LifeTests.hour(testSeed &+ $0)).run().tally }
    #expect(lives[0] == lives[1])
    #expect(lives[0] != lives[2])
  }

  @Test func `a network that changes every minute costs no more than the budget, and no answer`() {
    let tallies = live(0..<6) { LifeTests.flap($0) }
    #expect(tallies.allSatisfy { $0.overBudget > 0 })
  }

  @Test func `a machine that sleeps for hours resumes without a storm and without answers of yesterday`() {
    live(0..<10) { seed in
      var plan = LifePlan(seed: seed, span: 6 * 3600, rate: 0.1)
      plan.wakefulness = 400
      return plan
    }
  }

  @Test func `no client waits for a hot name whose TTL is a few transfers long`() {
    let tallies = live(0..<4) { seed in
      var plan = LifePlan(seed: seed, span: 400, rate: 6)
      (plan.names, plan.ttls, plan.session) = (2, [10, 11, 12, 15], 0)
      (plan.isSlow, plan.isDual, plan.hasRemovals, plan.hasOutages) = (true, true, false, false)
      (plan.wakefulness, plan.flap, plan.kept) = (0, 0, 0)
      (plan.perMinute, plan.perDay) = (100, 10_000)
      return plan
    }
    #expect(tallies.allSatisfy { $0.ahead > 30 }, "\(tallies)")
  }

  @Test func `the budget holds in any minute and any day, and what is over it expires`() {
    let tallies = live(0..<4) { LifeTests.budget($0) }
    #expect(tallies.allSatisfy { $0.overBudget > 0 && (200...500).contains($0.refreshes) }, "\(tallies)")
  }

  @Test func `a name without further queries is refreshed three times and then expires`() {
    let tallies = live(0..<6) { seed in
      var plan = LifePlan(seed: seed, span: 4 * 3600, rate: 0.3)
      plan.ttls = [60, 120]
      plan.session = 900
      plan.hasOutages = false
      (plan.wakefulness, plan.flap, plan.kept) = (0, 0, 0)
      (plan.perMinute, plan.perDay) = (60, 10_000)
      return plan
    }
    #expect(tallies.map(\.mostFruitless).max() == LifePlan.giveUpAfter)
  }

  @Test func `names fetched together are not refreshed together forever`() {
    for number in UInt64(0)..<2 {
      var plan = LifePlan(seed: testSeed &+ number, span: 3600, rate: 0.001)
      plan.dialect = .json
      (plan.names, plan.kept) = (100, 100)
      plan.ttls = [300]
      (plan.perMinute, plan.perDay) = (10_000, 100_000)
      (plan.hasOutages, plan.hasRemovals, plan.isSlow) = (false, false, true)
      (plan.wakefulness, plan.flap) = (0, 0)
      let life = Life(plan)
      #expect(life.run().violations.isEmpty)
      // Each name and family of which there are addresses: first within 45 s, in the end all over 225 s.
      let times = life.refreshTimes.map { $0 - 1000 }
      let all = times.count { (190.0..<260.0).contains($0) }
      #expect(all > 150)
      for span in [(190.0)..<(260.0), (2700.0)..<(3600.0)] {
        let within = times.filter { span.contains($0) }
        let crowd = within.map { time in within.count { (time..<(time + 5)).contains($0) } }.max() ?? 0
        #expect(within.count > 150 && crowd < all / 4, "\(plan.seed): \(crowd) of \(all) in 5 s")
      }
    }
  }

  @Test(arguments: [LifeDialect.baidu, .volcengine, .jdcloud])
  func `ten kept names need at most 0.15 of the requests that they need one by one`(_ dialect: LifeDialect) {
    var transfers: [Bool: Int] = [:]
    for batches in [true, false] {
      var plan = LifePlan(seed: testSeed, span: 7200, rate: 0.0005)
      (plan.dialect, plan.batches) = (dialect, batches)
      (plan.names, plan.kept, plan.ttls) = (10, 10, [300])
      (plan.perMinute, plan.perDay) = (10_000, 1_000_000)
      (plan.hasOutages, plan.hasRemovals, plan.isSlow, plan.isDual) = (false, false, false, true)
      (plan.wakefulness, plan.flap, plan.hostility) = (0, 0, 0)
      let (violations, tally) = Life(plan).run()
      #expect(violations.isEmpty, "\(violations)")
      transfers[batches] = tally.transfers
    }
    #expect(transfers[true]! > 20 && Double(transfers[true]!) <= 0.15 * Double(transfers[false]!), "\(transfers)")
  }

  @Test(arguments: [LifeDialect.baidu, .volcengine, .jdcloud, .ucloud])
  func `in an hour with faults the units that are counted are those that the service bills`(_ dialect: LifeDialect) {
    for number in UInt64(0)..<3 {
      var plan = LifePlan(seed: testSeed &+ number, span: 3600, rate: 1)
      (plan.dialect, plan.hasOutages, plan.hostility, plan.flap) = (dialect, true, 300, 601)
      let (violations, tally) = Life(plan).run()
      #expect(violations.isEmpty, "HTTPDNSD_TEST_SEED=\(plan.seed): \(violations)")
      #expect(tally.units > 100)
    }
  }

  @Test func `in an hour with faults a service of plain text costs nothing`() {
    for number in UInt64(0)..<3 {
      var plan = LifePlan(seed: testSeed &+ number, span: 3600, rate: 1)
      (plan.dialect, plan.hasOutages, plan.hostility, plan.flap) = (.text, true, 300, 601)
      let (violations, tally) = Life(plan).run()
      #expect(violations.isEmpty, "HTTPDNSD_TEST_SEED=\(plan.seed): \(violations)")
      #expect(tally.units == 0 && tally.transfers > 100)
    }
  }

  @Test(arguments: [LifeDialect.emas, .tencent, .baidu, .volcengine])
  func `names in one transfer need half the transfers and no more units`(_ dialect: LifeDialect) {
    var (together, apart) = (LifeTally(), LifeTally())
    for number in UInt64(0)..<2 {
      for batches in [true, false] {
        var plan = LifePlan(seed: testSeed &+ number, span: 7200, rate: 1.5)
        plan.dialect = dialect
        plan.batches = batches
        (plan.names, plan.ttls, plan.session) = (12, [60, 300], 0)
        (plan.perMinute, plan.perDay) = (10_000, 100_000)
        (plan.hasOutages, plan.hasRemovals, plan.isSlow, plan.isDual) = (false, false, false, true)
        (plan.wakefulness, plan.flap, plan.kept) = (0, 0, 0)
        let (violations, tally) = Life(plan).run()
        #expect(violations.isEmpty, "HTTPDNSD_TEST_SEED=\(plan.seed): \(violations)")
        if batches { together.add(tally) } else { apart.add(tally) }
      }
    }
    #expect(Double(together.refreshes) <= 0.5 * Double(apart.refreshes))
    #expect(together.units <= apart.units)
  }
}
