// FleetLifeTests.swift -- hours of ten daemons whose store fails in every way: what clients get, and what it costs.

import TestSupport
import Testing

@testable import Resolver

@Suite struct FleetLifeTests {
  /// Lives from `first` on; stops at the first one in which something was against the rules.
  @discardableResult
  private func live(
    _ numbers: Range<Int>, _ location: SourceLocation = #_sourceLocation, _ plan: (UInt64) -> FleetLifePlan
  ) -> [FleetLifeTally] {
    var tallies: [FleetLifeTally] = []
    for number in numbers {
      let seed = testSeed &+ UInt64(number)
      let (violations, tally) = FleetLife(plan(seed)).run()
      #expect(
        violations.isEmpty, "HTTPDNSD_TEST_SEED=\(seed): \(violations.joined(separator: "; "))",
        sourceLocation: location)
      guard violations.isEmpty else { break }
      tallies.append(tally)
    }
    if FleetSimulationTests.size > 0 { for tally in tallies { print(tally) } }
    return tallies
  }

  private let lives = 0..<max(1, FleetSimulationTests.size)

  @Test func `no answer is wrong or late while the store fails in every way and daemons stop`() {
    let tallies = live(lives) { FleetLifePlan(seed: $0) }
    #expect(tallies.allSatisfy { $0.hits > 500 && $0.rejected > 0 && $0.adopted > 0 && $0.stops > 20 }, "\(tallies)")
    #expect(tallies.allSatisfy { $0.failures * 20 < $0.answers }, "\(tallies)")
  }

  @Test func `the units of a site are exceeded by no more than what is in flight while the store works`() {
    let tallies = live(lives) { seed in
      var plan = FleetLifePlan(seed: seed, minutes: 15)
      plan.firstFault = Int(seed % UInt64(FleetFault.allCases.count))
      // What a daemon has in flight when it is stopped the others learn only when it starts again.
      plan.hasStops = false
      plan.limit = 700
      return plan
    }
    #expect(tallies.allSatisfy { $0.forbidden > 0 && $0.requests >= 600 }, "\(tallies)")
  }

  @Test func `the same seed is the same life of a fleet`() {
    let lives = [1, 1, 2].map { FleetLife(FleetLifePlan(seed: testSeed &+ $0, minutes: 5)).run().tally }
    #expect(lives[0] == lives[1])
    #expect(lives[0] != lives[2])
  }
}
