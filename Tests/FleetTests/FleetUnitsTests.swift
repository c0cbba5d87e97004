// FleetUnitsTests.swift -- units of a fleet: added once, again after a loss, and never less than this daemon's own.

import Files
import TestSupport
import Testing

@testable import Fleet

@Suite struct `Units of a fleet's account` {
  private func next(_ units: inout FleetUnits) throws -> FleetUnits.Increment {
    let increment = units.next()
    return try #require(increment)
  }

  @Test func `what was spent since the last report is added, one report at a time`() throws {
    var units = FleetUnits()
    units.update(own: 5, day: 1)
    let first = try next(&units)
    #expect(first.units == 5 && first.day == 1)
    units.update(own: 8, day: 1)
    let none = units.next()
    #expect(none == nil)
    units.counted(first, total: 105)
    #expect(units.spent == 108)
    let second = try next(&units)
    #expect(second.units == 3)
    units.counted(second, total: 208)
    let nothing = units.next()
    #expect(units.spent == 208 && nothing == nil)
  }

  @Test func `what is on its way counts, and so does what was read meanwhile`() throws {
    var units = FleetUnits()
    units.received(total: 40, day: 1)
    #expect(units.spent == 40)
    units.update(own: 5, day: 1)
    #expect(units.spent == 45)
    let increment = try next(&units)
    #expect(units.spent == 45)
    units.received(total: 50, day: 1)
    #expect(units.spent == 55)
    units.counted(increment, total: 57)
    #expect(units.spent == 57)
    units.received(total: 9_999, day: 0)
    #expect(units.spent == 57)
  }

  @Test func `a report without a reply is made again`() throws {
    var units = FleetUnits()
    units.update(own: 5, day: 1)
    units.failed(try next(&units))
    #expect(units.spent == 5)
    let again = try next(&units)
    #expect(again.units == 5)
  }

  @Test func `another day begins at nothing, and late replies to the one before do not count`() throws {
    var units = FleetUnits()
    units.update(own: 5, day: 1)
    let late = try next(&units)
    units.update(own: 2, day: 2)
    units.counted(late, total: 500)
    #expect(units.spent == 2)
    let rest = try next(&units)
    #expect(rest.units == 2)
  }

  @Test func `after a loss the whole count is added again, and a late reply is no total`() throws {
    var units = FleetUnits()
    units.update(own: 5, day: 1)
    units.counted(try next(&units), total: 50)
    units.update(own: 7, day: 1)
    let late = try next(&units)
    units.storeLostData()
    units.counted(late, total: 52)
    #expect(units.spent == 7)
    let whole = try next(&units)
    #expect(whole.units == 7)
    units.counted(whole, total: 7)
    #expect(units.spent == 7)
  }

  @Test(arguments: [Int.max, Int.min]) func `a counter that no daemon has written is no danger`(total: Int) throws {
    var units = FleetUnits()
    units.received(total: total, day: 1)
    units.update(own: 5, day: 1)
    let increment = try next(&units)
    #expect((5...NumberRange.units.upperBound + 5).contains(units.spent))
    units.counted(increment, total: total)
    units.update(own: 9, day: 1)
    #expect((9...NumberRange.units.upperBound + 9).contains(units.spent))
  }

  @Test func `what was counted before a restart is not added again`() throws {
    var units = FleetUnits()
    units.update(own: 5, day: 1)
    units.counted(try next(&units), total: 50)
    units.update(own: 7, day: 1)
    _ = try next(&units)
    // It was stored while two units were on their way.
    #expect(units.counted == 5)
    var restarted = FleetUnits(counted: units.counted, day: 1)
    restarted.update(own: 7, day: 1)
    let rest = try next(&restarted)
    #expect(rest.units == 2)
    // What this daemon knows to have spent was stored earlier than what was counted.
    var behind = FleetUnits(counted: 9, day: 1)
    behind.update(own: 7, day: 1)
    behind.update(own: 8, day: 1)
    let one = try next(&behind)
    #expect(one.units == 1)
    // Another day, and another store.
    var other = FleetUnits(counted: 9, day: 1)
    other.update(own: 3, day: 2)
    let more = try next(&other)
    #expect(more.units == 3 && other.counted == 0)
    var lost = FleetUnits(counted: 9, day: 1)
    lost.storeLostData()
    lost.update(own: 9, day: 1)
    let whole = try next(&lost)
    #expect(whole.units == 9)
  }

  /// Ten daemons, a store that loses replies and all of its data: the total is never less than what was spent since the day's
  /// beginning, once everybody has reported.
  @Test func `nothing is lost, whatever the store does`() throws {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<50 {
      var store = 0
      var daemons = Array(repeating: FleetUnits(), count: 10)
      var own = Array(repeating: 0, count: 10)
      for _ in 0..<400 {
        let index = Int.random(in: 0..<10, using: &random)
        own[index] += Int.random(in: 0...5, using: &random)
        daemons[index].update(own: own[index], day: 1)
        if let increment = daemons[index].next() {
          switch Int.random(in: 0..<10, using: &random) {
          case 0: daemons[index].failed(increment)  // never arrived
          case 1:  // the reply was lost
            store += increment.units
            daemons[index].failed(increment)
          default:
            store += increment.units
            daemons[index].counted(increment, total: store)
          }
        }
        if Int.random(in: 0..<100, using: &random) == 0 {
          store = 0
          for other in daemons.indices { daemons[other].storeLostData() }
        }
        #expect(daemons[index].spent >= own[index])
      }
      for index in daemons.indices {
        if let increment = daemons[index].next() {
          store += increment.units
          daemons[index].counted(increment, total: store)
        }
      }
      #expect(store >= own.reduce(0, +), "seed \(testSeed)")
    }
  }
}
