// FleetCommonTests.swift -- what daemons know of each other: units of the fleet, who is there, and steps of the store's clock.

import DNSWire
import EventLoop
import TestSupport
import Testing

@testable import Fleet
@testable import ForwarderTestSupport
@testable import Resolver

@Suite struct `Units of a fleet` {
  @Test func `a daemon that has spent nothing on a new day knows what the others have spent on it`() throws {
    let fleet = FleetScene(2)
    let today = fleet.loop.wallTime / 86_400
    let units = (0..<2).map { AccountUnits(fleet.fleet($0).units, account: "acc", isLimited: true) }
    for (number, units) in units.enumerated() { units.spent(own: 10 + number, day: today - 1) }
    fleet.loop.advance(by: .milliseconds(5))
    units[0].spent(own: 500, day: today)
    fleet.loop.advance(by: .milliseconds(5))
    _ = try fleet.ask(1)
    #expect(units[1].othersUnits(own: 0, day: today) == 500)
  }

  @Test func `a counter is read once at a time`() throws {
    let fleet = FleetScene(1)
    let units = (0..<3).map { AccountUnits(fleet.fleet(0).units, account: "acc\($0)", isLimited: true) }
    let before = fleet.store.commands["GET", default: 0]
    let asked = (0..<60).map { fleet.scenes[0].ask("n\($0).example") }
    fleet.loop.advance(by: .milliseconds(300))
    for number in asked { _ = try fleet.scenes[0].reply(number) }
    #expect(fleet.store.commands["GET", default: 0] - before == 60 + units.count)
  }
}

@Suite struct `Members of a fleet` {
  @Test func `a daemon in use gives a sign of life every 30 s, an idle one every 10 minutes`() throws {
    let fleet = FleetScene(1)
    fleet.loop.advance(by: .seconds(3600))
    let idle = fleet.store.commands["ZADD", default: 0]
    #expect((6...8).contains(idle))
    for number in 0..<60 {
      _ = try fleet.ask(0, "n\(number).example")
      fleet.loop.advance(by: .seconds(10))
    }
    #expect((18...22).contains(fleet.store.commands["ZADD", default: 0] - idle))
    #expect(fleet.store.members.count == 1)
  }

  @Test func `a thousand daemons are counted, in replies that each have their limit`() throws {
    let fleet = FleetScene(1)
    for number in 10_000..<11_000 {
      let id = String(repeating: "a", count: 27) + "\(number)"
      let member = FleetMember(id: id, version: "0.2.0", fingerprint: "12345678", host: "host-\(number)")
      fleet.store.run([
        Array("ZADD".utf8), fleet.fleet(0).keys.members, Array("\(fleet.store.time)".utf8), Array(member.text.utf8),
      ])
    }
    fleet.loop.advance(by: .seconds(31))
    _ = try fleet.ask(0)
    fleet.loop.advance(by: .milliseconds(10))
    #expect(fleet.fleet(0).report.memberCount == 1_001)
    #expect(fleet.present(0).count == 1_001)
    // A member with an invalid time does not end the list.
    fleet.store.members[Array("a|b|c|d".utf8)] = -5
    #expect(fleet.present(0).count == 1_001)
    // In a fleet of that size they are counted every five minutes.
    let before = fleet.store.commands["ZRANGE", default: 0]
    for number in 0..<60 {
      _ = try fleet.ask(0, "n\(number).example")
      fleet.loop.advance(by: .seconds(10))
    }
    #expect((3...12).contains(fleet.store.commands["ZRANGE", default: 0] - before))
  }
}

@Suite struct `A store whose clock has gone back` {
  /// One daemon knows an answer of an hour, then the store's clock is set back by two minutes.
  private func fleet(hasWitness: Bool) throws -> FleetScene {
    let fleet = FleetScene(
      2,
      script: { question, _ in
        .answer(.addresses(question.name, "192.0.2.1", ttl: 3_600), after: .milliseconds(30))
      })
    _ = try fleet.ask(0)
    fleet.loop.advance(by: .seconds(300))
    _ = try fleet.ask(0, "other.example")
    fleet.store.clockOffset = -120
    if hasWitness { fleet.store.reconnect() }
    fleet.loop.advance(by: .seconds(1))
    return fleet
  }

  @Test(arguments: [false, true]) func `does not make old answers live longer in a daemon that starts later`(
    hasWitness: Bool
  ) throws {
    let fleet = try fleet(hasWitness: hasWitness)
    fleet.join(fleet.scenes[1], 1, start: 1)
    fleet.loop.advance(by: .milliseconds(1))
    let before = fleet.transfers
    _ = try fleet.ask(1)
    #expect(fleet.transfers == before + 1)
    #expect(fleet.fleet(1).counters.rejected == [.flushed: 1])
    fleet.store.reconnect()
    // What was asked for since then is shared as soon as its time is past the old one.
    fleet.loop.advance(by: .seconds(180))
    _ = try fleet.ask(0, "new.example")
    fleet.loop.advance(by: .milliseconds(1))
    _ = try fleet.ask(1, "new.example")
    #expect(fleet.transfers == before + 2)
  }

  @Test func `that was years ahead, leaves nothing of that`() throws {
    let fleet = FleetScene(2)
    let member = FleetMember(id: "1.9", version: "1", fingerprint: "f", host: "h9")
    fleet.store.members[Array(member.text.utf8)] = fleet.store.time + 300_000_000_000
    fleet.join(fleet.scenes[1], 1, start: 1)
    fleet.loop.advance(by: .milliseconds(10))
    #expect(!fleet.present(1).contains(member))
    for number in 0..<2 {
      _ = try fleet.ask(number)
      fleet.loop.advance(by: .milliseconds(1))
    }
    #expect(fleet.transfers == 1)
  }

  @Test func `is not remembered longer than answers live, and not for times that cannot be`() throws {
    let fleet = FleetScene(2)
    let keys = fleet.fleet(0).keys
    func mark(_ text: String, _ score: Int64) {
      fleet.store.run([Array("ZADD".utf8), keys.members, Array("\(score)".utf8), Array(text.utf8)])
    }
    mark("clock|9223372036854775807", fleet.store.time + 1_000_000)
    mark("clock|x", fleet.store.time + 1_000_000)
    // Far in the future: it counts for ten minutes.
    mark("clock|\(fleet.store.time + 500_000_000)", fleet.store.time + 500_000_000)
    fleet.join(fleet.scenes[1], 1, start: 1)
    fleet.loop.advance(by: .seconds(601))
    for number in 0..<2 {
      _ = try fleet.ask(number)
      fleet.loop.advance(by: .milliseconds(1))
    }
    #expect(fleet.transfers == 1)
  }
}
