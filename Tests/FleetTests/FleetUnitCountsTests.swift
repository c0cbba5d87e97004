// FleetUnitCountsTests.swift -- units that several daemons count in a store, across its losses and their restarts.

import EventLoop
import FleetTestSupport
import Persistence
import TestSupport
import Testing

@testable import Fleet

@Suite struct `Units that a store counts` {
  private static let key = Array("httpdnsd:1:u:acc:19700106".utf8)

  /// The counter in the store.
  private func total(_ fleet: EngineScene) -> Int? {
    fleet.store.values[Self.key].flatMap { Int(String(decoding: $0.octets, as: UTF8.self)) }
  }

  private func spend(_ own: Int, _ fleet: EngineScene, _ number: Int = 0, day: Int64 = 5) {
    fleet.fleet(number).units.spent(own: own, day: day, of: "acc")
    fleet.loop.advance(by: .milliseconds(5))
  }

  @Test func `units of all daemons count, once, also after the store has lost its data`() throws {
    let fleet = EngineScene(3)
    let levels = (0..<3).map { fleet.fleet($0) }
    for (number, level) in levels.enumerated() { level.units.spent(own: 10 * (number + 1), day: 5, of: "acc") }
    fleet.loop.advance(by: .milliseconds(1))
    levels[0].units.spent(own: 11, day: 5, of: "acc")
    fleet.loop.advance(by: .milliseconds(1))
    #expect(levels[0].units.othersUnits(own: 11, day: 5, of: "acc") == 50)
    #expect(levels[0].units.othersUnits(own: 11, day: 6, of: "acc") == 0)
    fleet.store.flushAll()
    for (number, level) in levels.enumerated() { level.units.spent(own: 10 * (number + 1) + 5, day: 5, of: "acc") }
    fleet.loop.advance(by: .milliseconds(5))
    #expect((75...150).contains(total(fleet) ?? 0))
    #expect(levels.allSatisfy { $0.counters.losses == 1 })
  }

  @Test func `units that were spent while the store was down count as soon as it is back`() throws {
    let fleet = EngineScene(2)
    let levels = (0..<2).map { fleet.fleet($0) }
    for level in levels { level.units.spent(own: 10, day: 5, of: "acc") }
    fleet.store.condition = .down
    levels[0].units.spent(own: 110, day: 5, of: "acc")
    fleet.loop.advance(by: .seconds(60))
    fleet.store.condition = .works
    fleet.loop.advance(by: .seconds(1))
    levels[1].units.spent(own: 11, day: 5, of: "acc")
    fleet.loop.advance(by: .milliseconds(1))
    #expect(levels[1].units.othersUnits(own: 11, day: 5, of: "acc") == 110)
  }

  @Test func `the first daemon to count a day deletes the days before`() throws {
    let fleet = EngineScene(1)
    fleet.fleet(0).units.spent(own: 10, day: 5, of: "acc")
    fleet.loop.advance(by: .milliseconds(5))
    fleet.fleet(0).units.spent(own: 1, day: 7, of: "acc")
    fleet.loop.advance(by: .milliseconds(5))
    #expect(fleet.store.keys.filter { $0.contains(":u:") } == ["httpdnsd:1:u:acc:19700108"])
  }

  @Test func `a daemon that restarts or reloads adds its units to the fleet's once`() throws {
    let folder = TemporaryFolder()
    let path = folder.path(of: "fleet")
    let file = { StateFile(path: path) { _ in } }
    let fleet = EngineScene(1)
    for start in 1...12 as ClosedRange<UInt8> {
      let ledger = FleetLedger(file(), on: fleet.loop)
      fleet.join(0, start: start, ledger: ledger)
      spend(10 * Int(start), fleet)
      #expect(total(fleet) == 10 * Int(start))
      // A reload.
      fleet.join(0, start: start, ledger: ledger)
      spend(10 * Int(start) + 1, fleet)
      #expect(total(fleet) == 10 * Int(start) + 1)
      ledger.close()
    }
    #expect(fleet.fleet(0).counters.losses == 0)
    // It was killed before it had stored what the store counted since.
    spend(130, fleet)
    fleet.join(0, start: 13, ledger: FleetLedger(file(), on: fleet.loop))
    spend(130, fleet)
    #expect(total(fleet) == 130 + 9)
  }

  @Test func `a daemon that is moved to another store and back adds its units once to each`() throws {
    let folder = TemporaryFolder()
    let fleet = EngineScene(1)
    var stores: [[[UInt8]: ScriptedStore.Value]] = [[:], [:]]
    for move in 0..<6 as Range<UInt8> {
      let ledger = FleetLedger(StateFile(path: folder.path(of: "fleet")) { _ in }, on: fleet.loop)
      fleet.store.values = stores[Int(move) % 2]
      fleet.join(0, start: move + 1, ledger: ledger)
      spend(10 + Int(move), fleet)
      #expect(total(fleet) == 10 + Int(move), "\(move)")
      stores[Int(move) % 2] = fleet.store.values
      ledger.close()
    }
  }

  @Test func `a daemon that starts without the store knows what the fleet had spent`() throws {
    let folder = TemporaryFolder()
    let fleet = EngineScene(2)
    let ledger = FleetLedger(StateFile(path: folder.path(of: "fleet")) { _ in }, on: fleet.loop)
    fleet.join(1, start: 1, ledger: ledger)
    spend(10, fleet, 1)
    spend(500, fleet, 0)
    let day = fleet.loop.wallTime / 86_400
    spend(20, fleet, 1, day: day)
    fleet.loop.advance(by: .seconds(60))
    // What it only read is worth no write of its own.
    spend(700, fleet, 0, day: day)
    fleet.fleet(1).units.limitedAccounts = ["acc"]
    fleet.fleet(1).units.readTotals()
    fleet.loop.advance(by: .milliseconds(5))
    ledger.close()
    fleet.store.condition = .down
    let read = FleetLedger(StateFile(path: folder.path(of: "fleet")) { _ in }, on: fleet.loop)
    fleet.join(1, start: 2, ledger: read)
    fleet.fleet(1).units.spent(own: 20, day: day, of: "acc")
    #expect(fleet.fleet(1).units.othersUnits(own: 20, day: day, of: "acc") == 700)
  }

  @Test func `a store that was emptied while the daemon was stopped gets its whole count`() throws {
    let ledger = FleetLedger()
    let fleet = EngineScene(1)
    fleet.join(0, start: 1, ledger: ledger)
    spend(10, fleet)
    fleet.store.flushAll()
    fleet.join(0, start: 2, ledger: ledger)
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
    let fleet = EngineScene(1)
    fleet.store.changesEpoch = fleet.fleet(0).keys.epoch
    for own in 1...10 { spend(own, fleet) }
    #expect(fleet.store.commands["GET", default: 0] < 30)
    #expect(fleet.fleet(0).counters.losses >= 9)
  }

  @Test func `a store that takes no writes is told later`() throws {
    let fleet = EngineScene(1)
    fleet.store.condition = .readOnly
    spend(10, fleet)
    #expect(total(fleet) == nil)
    fleet.store.condition = .works
    fleet.loop.advance(by: .milliseconds(5))
    #expect(total(fleet) == 10)
  }
}
