// RefreshBudgetTests.swift -- the budget against a list of everything that was spent.

import TestSupport
import Testing

@testable import Refresh

@Suite struct RefreshBudgetTests {
  private let second: Int64 = 1_000_000_000
  private let day: Int64 = 86_400_000_000_000

  @Test func `a minute's budget opens again when the minute is over, a second later at most`() {
    var budget = RefreshBudget(perMinute: 2, perDay: 1000)
    let start = 10 * second + second / 2
    let taken = (0..<3).map { _ in budget.take(now: start) }
    #expect(taken == [true, true, false])
    let opening = budget.nextOpening(now: start)
    #expect(opening == 71 * second)
    let early = budget.take(now: opening - 1)
    let late = budget.take(now: opening)
    #expect(!early)
    #expect(late)
  }

  @Test func `a day's budget opens again when the day is over, five minutes later at most`() {
    var budget = RefreshBudget(perMinute: 100, perDay: 3)
    let taken = (0..<4).map { budget.take(now: Int64($0) * 3600 * second + 1) }
    #expect(taken == [true, true, true, false])
    let opening = budget.nextOpening(now: 4 * 3600 * second)
    #expect(opening == day + 300 * second)
    let early = budget.take(now: opening - 1)
    let late = budget.take(now: opening)
    #expect(!early)
    #expect(late)
    #expect(budget.nextOpening(now: opening) == day + 3900 * second)
  }

  @Test(arguments: [(0, 5), (5, 0), (0, 0)])
  func `a budget of nothing never opens`(perMinute: Int, perDay: Int) {
    var budget = RefreshBudget(perMinute: perMinute, perDay: perDay)
    for now in [0, second, day, 100 * day, .max] {
      let (taken, opening) = (budget.take(now: now), budget.nextOpening(now: now))
      #expect(!taken)
      #expect(opening == .max)
    }
  }

  @Test func `a refusal of one limit does not spend the other`() {
    var budget = RefreshBudget(perMinute: 1, perDay: 2)
    for _ in 0..<10 { _ = budget.take(now: 0) }
    let next = budget.take(now: 61 * second)
    #expect(next)
  }

  @Test func `a clock that jumps ahead gives one budget at most, one that goes back gives nothing`() {
    var budget = RefreshBudget(perMinute: 5, perDay: 8)
    let spent = (now: 100 * day, later: 200 * day + 1)
    let first = (0..<20).filter { _ in budget.take(now: spent.now) }.count
    let second = (0..<20).filter { _ in budget.take(now: spent.later) }.count
    let back = (0..<20).filter { _ in budget.take(now: spent.now) }.count
    #expect(first == 5)
    #expect(second == 5)
    #expect(back == 0)
  }

  @Test func `the budget is open now if something is left`() {
    var budget = RefreshBudget(perMinute: 1, perDay: 1)
    #expect(budget.nextOpening(now: 12_345) == 12_345)
    _ = budget.take(now: 12_345)
    #expect(budget.nextOpening(now: 12_345) > 12_345)
  }

  /// Everything that was spent, and what a window that ends now holds of it.
  private struct Ledger {
    var times: [Int64] = []

    func count(within window: Int64, of now: Int64) -> Int {
      // The times are sorted, so those that count are at the end.
      times.reversed().prefix { $0 >= now - window }.count
    }
  }

  @Test func `no minute or day exceeds its budget at any times, and nothing is refused for long`() {
    var random = SeededGenerator(seed: testSeed)
    var refusals = 0
    for _ in 0..<150 {
      let limits = (
        minute: Int.random(in: 1...8, using: &random), day: Int.random(in: 1...120, using: &random)
      )
      var budget = RefreshBudget(perMinute: limits.minute, perDay: limits.day)
      var ledger = Ledger()
      var now = Int64.random(in: 0...day, using: &random)
      for _ in 0..<500 {
        switch Int.random(in: 0..<40, using: &random) {
        case 0: now += Int64.random(in: 0...2 * day, using: &random)
        case 1...4: now += Int64.random(in: 0...600 * second, using: &random)
        case 5...10: now += Int64.random(in: 0...10, using: &random)
        // Whole seconds fall on the edges of buckets.
        case 11...15: now = (now / second + Int64.random(in: 0...61, using: &random)) * second
        default: now += Int64.random(in: 0...5 * second, using: &random)
        }
        let expected = budget.nextOpening(now: now)
        let taken = budget.take(now: now)
        #expect(taken == (expected == now))
        if taken {
          ledger.times.append(now)
          #expect(ledger.count(within: 60 * second, of: now) <= limits.minute)
          #expect(ledger.count(within: day, of: now) <= limits.day)
        } else {
          refusals += 1
          #expect(
            ledger.count(within: 61 * second, of: now) >= limits.minute
              || ledger.count(within: day + 300 * second, of: now) >= limits.day)
          #expect(expected > now)
          guard random.oneIn(3) else { continue }
          let early = budget.take(now: expected - 1)
          let punctual = budget.take(now: expected)
          #expect(!early)
          #expect(punctual)
          now = expected
          ledger.times.append(now)
        }
      }
    }
    #expect(refusals > 150)
  }

  @Test func `the spending of one budget counts in the next one, also before a reboot`() {
    var first = RefreshBudget(perMinute: 100, perDay: 10)
    for hour in 0..<10 { _ = first.take(now: Int64(hour) * 3600 * second + 1) }
    let spent = first.spentOfDay(now: 12 * 3600 * second)
    #expect(spent.map(\.units).reduce(0, +) == 10)
    // The machine has rebooted, and with it the clock has restarted.
    var second = RefreshBudget(perMinute: 100, perDay: 10)
    for stretch in spent { second.restore(stretch, now: 5) }
    let taken = second.take(now: 6)
    #expect(!taken)
    let opening = second.nextOpening(now: 6)
    // The first of them was made twelve hours ago, and counts for up to five minutes longer than a day.
    #expect((12 * 3600 * self.second...(12 * 3600 + 600) * self.second).contains(opening))
    let later = (0..<3).map { _ in second.take(now: opening) }
    #expect(later == [true, false, false])
  }

  @Test(arguments: [-1, 172_800_000_000_000, .max] as [Int64])
  func `spending at an impossible time or long ago is ignored`(age: Int64) {
    var budget = RefreshBudget(perMinute: 5, perDay: 1)
    budget.restore(RefreshBudget.Spent(1, age: age), now: 7)
    let taken = budget.take(now: 8)
    #expect(taken)
  }
}

extension RefreshBudget {
  /// When the next unit is available: `now` for at once, `Int64.max` for never. Buckets begin with whole seconds, and room
  /// only grows while nothing is spent.
  fileprivate func nextOpening(now: Int64) -> Int64 {
    func isOpen(_ time: Int64) -> Bool {
      var copy = self
      return copy.take(now: time)
    }
    let second: Int64 = 1_000_000_000
    var (closed, open) = (now / second, now / second + 2 * 86_400)
    if isOpen(now) { return now }
    guard now < .max / 2, isOpen(open * second) else { return .max }
    while open - closed > 1 {
      let middle = (closed + open) / 2
      if isOpen(middle * second) { open = middle } else { closed = middle }
    }
    return open * second
  }
}
