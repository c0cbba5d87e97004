// FleetCommonTests.swift -- what daemons know of each other: units of the fleet, who is there, and steps of the store's clock.

import DNSWire
import EventLoop
import Fleet
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Resolver

@Suite struct `Units of a fleet` {
  private static let key = Array("httpdnsd:1:u:acc:19700106".utf8)

  /// The counter in the store.
  private func total(_ fleet: FleetScene) -> Int? {
    fleet.store.values[Self.key].flatMap { Int(String(decoding: $0.octets, as: UTF8.self)) }
  }

  private func spend(_ own: Int, _ fleet: FleetScene, _ number: Int = 0, day: Int64 = 5) {
    fleet.fleet(number).spent(own: own, day: day, of: "acc")
    fleet.loop.advance(by: .milliseconds(5))
  }

  @Test func `units of all daemons count, once, also after the store has lost its data`() throws {
    let fleet = FleetScene(3)
    let levels = (0..<3).map { fleet.fleet($0) }
    for (number, level) in levels.enumerated() { level.spent(own: 10 * (number + 1), day: 5, of: "acc") }
    fleet.loop.advance(by: .milliseconds(1))
    levels[0].spent(own: 11, day: 5, of: "acc")
    fleet.loop.advance(by: .milliseconds(1))
    #expect(levels[0].othersUnits(own: 11, day: 5, of: "acc") == 50)
    #expect(levels[0].othersUnits(own: 11, day: 6, of: "acc") == 0)
    fleet.store.flushAll()
    for (number, level) in levels.enumerated() { level.spent(own: 10 * (number + 1) + 5, day: 5, of: "acc") }
    fleet.loop.advance(by: .milliseconds(5))
    #expect((75...150).contains(total(fleet) ?? 0))
    #expect(levels.allSatisfy { $0.counters.losses == 1 })
  }

  @Test func `units that were spent while the store was down count as soon as it is back`() throws {
    let fleet = FleetScene(2)
    let levels = (0..<2).map { fleet.fleet($0) }
    for level in levels { level.spent(own: 10, day: 5, of: "acc") }
    fleet.store.condition = .down
    levels[0].spent(own: 110, day: 5, of: "acc")
    fleet.loop.advance(by: .seconds(60))
    fleet.store.condition = .works
    fleet.loop.advance(by: .seconds(1))
    levels[1].spent(own: 11, day: 5, of: "acc")
    fleet.loop.advance(by: .milliseconds(1))
    #expect(levels[1].othersUnits(own: 11, day: 5, of: "acc") == 110)
  }

  @Test func `the first daemon to count a day deletes the days before`() throws {
    let fleet = FleetScene(1)
    fleet.fleet(0).spent(own: 10, day: 5, of: "acc")
    fleet.loop.advance(by: .milliseconds(5))
    fleet.fleet(0).spent(own: 1, day: 7, of: "acc")
    fleet.loop.advance(by: .milliseconds(5))
    #expect(fleet.store.keys.filter { $0.contains(":u:") } == ["httpdnsd:1:u:acc:19700108"])
  }

  @Test func `a daemon that has spent nothing on a new day knows what the others have spent on it`() throws {
    let fleet = FleetScene(2)
    let today = fleet.loop.wallTime / 86_400
    let units = (0..<2).map { AccountUnits(fleet.fleet($0), account: "acc", isLimited: true) }
    for (number, units) in units.enumerated() { units.spent(own: 10 + number, day: today - 1) }
    fleet.loop.advance(by: .milliseconds(5))
    units[0].spent(own: 500, day: today)
    fleet.loop.advance(by: .milliseconds(5))
    _ = try fleet.ask(1)
    #expect(units[1].othersUnits(own: 0, day: today) == 500)
  }

  @Test func `a counter is read once at a time`() throws {
    let fleet = FleetScene(1)
    let units = (0..<3).map { AccountUnits(fleet.fleet(0), account: "acc\($0)", isLimited: true) }
    let before = fleet.store.commands["GET", default: 0]
    let asked = (0..<60).map { fleet.scenes[0].ask("n\($0).example") }
    fleet.loop.advance(by: .milliseconds(300))
    for number in asked { _ = try fleet.scenes[0].reply(number) }
    #expect(fleet.store.commands["GET", default: 0] - before == 60 + units.count)
  }

  @Test func `a daemon that restarts or reloads adds its units to the fleet's once`() throws {
    let folder = TemporaryFolder()
    let path = folder.path(of: "fleet")
    let file = { StateFile(path: path) { _ in } }
    let fleet = FleetScene(1)
    let scene = fleet.scenes[0]
    for start in 1...12 as ClosedRange<UInt8> {
      let ledger = FleetLedger(file(), on: fleet.loop)
      fleet.join(scene, 0, start: start, ledger: ledger)
      spend(10 * Int(start), fleet)
      #expect(total(fleet) == 10 * Int(start))
      // A reload.
      fleet.join(scene, 0, start: start, ledger: ledger)
      spend(10 * Int(start) + 1, fleet)
      #expect(total(fleet) == 10 * Int(start) + 1)
      ledger.close()
    }
    #expect(fleet.fleet(0).counters.losses == 0)
    // It was killed before it had stored what the store counted since.
    spend(130, fleet)
    fleet.join(scene, 0, start: 13, ledger: FleetLedger(file(), on: fleet.loop))
    spend(130, fleet)
    #expect(total(fleet) == 130 + 9)
  }

  @Test func `a daemon that is moved to another store and back adds its units once to each`() throws {
    let folder = TemporaryFolder()
    let fleet = FleetScene(1)
    var stores: [[[UInt8]: ScriptedStore.Value]] = [[:], [:]]
    for move in 0..<6 as Range<UInt8> {
      let ledger = FleetLedger(StateFile(path: folder.path(of: "fleet")) { _ in }, on: fleet.loop)
      fleet.store.values = stores[Int(move) % 2]
      fleet.join(fleet.scenes[0], 0, start: move + 1, ledger: ledger)
      spend(10 + Int(move), fleet)
      #expect(total(fleet) == 10 + Int(move), "\(move)")
      stores[Int(move) % 2] = fleet.store.values
      ledger.close()
    }
  }

  @Test func `a daemon that starts without the store knows what the fleet had spent`() throws {
    let folder = TemporaryFolder()
    let fleet = FleetScene(2)
    let ledger = FleetLedger(StateFile(path: folder.path(of: "fleet")) { _ in }, on: fleet.loop)
    fleet.join(fleet.scenes[1], 1, start: 1, ledger: ledger)
    spend(10, fleet, 1)
    spend(500, fleet, 0)
    let day = fleet.loop.wallTime / 86_400
    spend(20, fleet, 1, day: day)
    fleet.loop.advance(by: .seconds(60))
    // What it only read is worth no write of its own.
    spend(700, fleet, 0, day: day)
    fleet.fleet(1).limitedAccounts = ["acc"]
    fleet.fleet(1).readUnits()
    fleet.loop.advance(by: .milliseconds(5))
    ledger.close()
    fleet.store.condition = .down
    let read = FleetLedger(StateFile(path: folder.path(of: "fleet")) { _ in }, on: fleet.loop)
    fleet.join(fleet.scenes[1], 1, start: 2, ledger: read)
    fleet.fleet(1).spent(own: 20, day: day, of: "acc")
    #expect(fleet.fleet(1).othersUnits(own: 20, day: day, of: "acc") == 700)
  }

  @Test func `a store that was emptied while the daemon was stopped gets its whole count`() throws {
    let ledger = FleetLedger()
    let fleet = FleetScene(1)
    fleet.join(fleet.scenes[0], 0, start: 1, ledger: ledger)
    spend(10, fleet)
    fleet.store.flushAll()
    fleet.join(fleet.scenes[0], 0, start: 2, ledger: ledger)
    spend(12, fleet)
    #expect(total(fleet) == 12 && fleet.fleet(0).counters.losses == 1)
    // On another day nothing of that is left.
    spend(3, fleet, day: 7)
    #expect(fleet.store.keys.filter { $0.contains(":u:") } == ["httpdnsd:1:u:acc:19700108"])
  }

  @Test func `a ledger that is damaged, or of another program, is an empty one`() {
    let folder = TemporaryFolder()
    let loop = SimulatedLoop()
    let member = "member 000102030405060708090a0b0c0d0e0f\n"
    let good = "httpdnsd fleet 1\n\(member)epoch 0a0b\nacc 5 10 70\n"
    func read(_ text: String) -> FleetLedger {
      FleetLedger(StateFile(path: folder.write(text, to: "fleet")) { _ in }, on: loop)
    }
    #expect(read(good).epoch == [10, 11] && read(good).units(of: "acc").counted == 10)
    #expect(read(good).units(of: "acc").total == 70)
    #expect(read(good).member == "000102030405060708090a0b0c0d0e0f")
    for text in [
      "", "httpdnsd fleet 1\n", good.replacing("fleet 1", with: "fleet 2"), good.replacing("0a0b", with: "0a0"),
      good.replacing("0f\n", with: "\n"), good.replacing(member, with: ""),
    ] {
      #expect(read(text).epoch == nil && read(text).units(of: "acc").counted == 0, "\(text)")
      #expect(read(text).member.utf8.count == 32)
    }
    for line in [
      "acc 5 10", "acc -1 10 70", "acc 5 -1 70", "acc 5 x 70", "acc 9223372036854775807 1 70", "acc 5 10 -1",
      "acc 5 99999999999999999999 70", "acc 5 10 99999999999999999999", "epoch 0a0\nacc 5 10 70",
      "epoch \nacc 5 10 70",
    ] {
      #expect(read("httpdnsd fleet 1\n\(member)epoch 0a0b\n\(line)\n").units(of: "acc").counted == 0, "\(line)")
    }
  }

  @Test func `a store whose epoch is another one each time is asked once for each report`() throws {
    let fleet = FleetScene(1)
    fleet.store.changesEpoch = fleet.fleet(0).keys.epoch
    for own in 1...10 { spend(own, fleet) }
    #expect(fleet.store.commands["GET", default: 0] < 30)
    #expect(fleet.fleet(0).counters.losses >= 9)
  }

  @Test func `a store that takes no writes is told later`() throws {
    let fleet = FleetScene(1)
    fleet.store.condition = .readOnly
    spend(10, fleet)
    #expect(total(fleet) == nil)
    fleet.store.condition = .works
    fleet.loop.advance(by: .milliseconds(5))
    #expect(total(fleet) == 10)
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

  @Test func `a daemon whose configuration has changed is one member`() throws {
    let fleet = FleetScene(2)
    let before = FleetMember(id: "1.0", version: "1", fingerprint: "before", host: "h1")
    fleet.store.members[Array(before.text.utf8)] = fleet.store.time - 5_000
    #expect(Set(fleet.present(0).map(\.fingerprint)) == ["f.s.r"] && fleet.present(0).count == 2)
  }

  @Test func `members that are none, and times that are none, are left out`() throws {
    let fleet = FleetScene(1)
    for (score, member) in [("1", "short"), ("9223372036854775807", "1|2|3|4"), ("-5", "a|b|c|d"), ("nan", "e|f|g|h")] {
      fleet.store.members[Array(member.utf8)] = Int64(score) ?? -1
    }
    #expect(fleet.present(0).map(\.id) == ["0.0"])
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
