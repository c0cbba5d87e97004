// UnitBudgetTests.swift -- a day's units can be spent once, with any jumps of the clock.

import Files
import Testing
@testable import Upstreams

private let day: Int64 = 86_400

/// A budget, the wall clock and boot time.
private struct Scene {
  var budget: UnitBudget
  var wall: Int64
  var boot: Int64 = 1000

  init(perDay: Int = 10, keptDay: Int64 = 0, spent: Int = 0, wall: Int64) {
    budget = UnitBudget(perDay: perDay, day: keptDay, spent: spent)
    self.wall = wall
  }

  mutating func pass(_ seconds: Int64) {
    wall += seconds
    boot += seconds
  }

  mutating func isOpen() -> Bool { budget.isOpen(unixTime: wall, now: boot * 1_000_000_000) }

  @discardableResult
  mutating func spend(_ units: Int) -> Int? { budget.spend(units, unixTime: wall, now: boot * 1_000_000_000) }

  /// Spends single units while that is allowed; returns their number.
  mutating func spendAll() -> Int {
    var spent = 0
    while isOpen(), spent < 1000 {
      spend(1)
      spent += 1
    }
    return spent
  }
}

@Suite struct UnitBudgetTests {
  @Test func `a day's units can be spent once, and are reset at midnight UTC`() {
    var scene = Scene(wall: 20_000 * day + 86_399)
    var isOpen = scene.isOpen()
    #expect(isOpen)
    scene.spend(8)
    isOpen = scene.isOpen()
    #expect(isOpen)
    scene.spend(5)
    isOpen = scene.isOpen()
    #expect(!isOpen)
    #expect(scene.budget.spent == 13)
    scene.pass(1)
    isOpen = scene.isOpen()
    #expect(isOpen)
    #expect(scene.budget.spent == 0)
  }

  @Test func `units spent before a restart count, and 0 is no limit`() {
    var kept = Scene(keptDay: 20_000, spent: 10, wall: 20_000 * day)
    #expect(kept.spendAll() == 0)
    var later = Scene(keptDay: 19_999, spent: 10, wall: 20_000 * day)
    #expect(later.spendAll() == 10)
    var unlimited = Scene(perDay: 0, wall: 0)
    unlimited.spend(1_000_000)
    let isOpen = unlimited.isOpen()
    #expect(isOpen)
  }

  @Test func `setting the clock back and forward starts no second day`() {
    var scene = Scene(wall: 20_000 * day + 40_000)
    var spent = scene.spendAll()
    for jump in [-3 * day, 3 * day, day, -day, 2 * day, -2 * day, 30 * day, -30 * day] {
      scene.wall += jump
      scene.pass(60)
      spent += scene.spendAll()
    }
    #expect(spent == 10)
  }

  @Test func `a machine that boots in 1970 spends one day's units, whenever it learns the time`() {
    // Yesterday's units were spent; the time comes by the network a minute after the start.
    var scene = Scene(keptDay: 19_999, spent: 10, wall: 0)
    #expect(scene.spendAll() == 0)
    scene.pass(60)
    scene.wall = 20_000 * day + 100
    #expect(scene.spendAll() == 10)
    // Today's units were spent; then none is left.
    var again = Scene(keptDay: 20_000, spent: 10, wall: 0)
    #expect(again.spendAll() == 0)
    again.pass(60)
    again.wall = 20_000 * day + 200
    #expect(again.spendAll() == 0)
  }

  @Test func `units spent before the time is known count for the actual day`() {
    var scene = Scene(keptDay: 19_999, spent: 3, wall: 0)
    for _ in 0..<4 { scene.spend(1) }
    scene.pass(60)
    scene.wall = 20_000 * day
    #expect(scene.spendAll() == 6)
  }

  @Test func `a clock that was far ahead blocks the budget for at most a day`() {
    var scene = Scene(wall: 30_000 * day)
    #expect(scene.spendAll() == 10)
    scene.pass(10)
    scene.wall = 20_000 * day
    #expect(scene.spendAll() == 0)
    scene.pass(day - 11)
    #expect(scene.spendAll() == 0)
    scene.pass(1)
    #expect(scene.spendAll() == 10)
    #expect(scene.spendAll() == 0)
    for _ in 0..<3 {
      scene.pass(day)
      #expect(scene.spendAll() == 10)
    }
  }

  @Test func `a small correction at midnight is no jump`() {
    var scene = Scene(wall: 20_000 * day + 86_000)
    #expect(scene.spendAll() == 10)
    scene.pass(300)
    scene.wall += 200
    #expect(scene.spendAll() == 10)
  }

  @Test func `each milestone of a day's units is reported once a day`() {
    var scene = Scene(wall: 20_000 * day)
    #expect((1...12).map { _ in scene.spend(1) } == [nil, nil, nil, nil, 50, nil, nil, 80, nil, 100, nil, nil])
    scene.pass(day)
    #expect(scene.spend(9) == 80)
    var single = Scene(perDay: 1, wall: 0)
    #expect(single.spend(1) == 100)
  }

  @Test func `numbers of any size are safe`() {
    var scene = Scene(perDay: .max, keptDay: .max, spent: .max, wall: 20_000 * day)
    scene.spend(.max / 2)
    #expect(scene.budget.spent == NumberRange.units.upperBound)
    var negative = Scene(keptDay: 5, spent: -7, wall: 5 * day)
    #expect(negative.spendAll() == 10)
  }
}
