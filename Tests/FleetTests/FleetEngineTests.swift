// FleetEngineTests.swift -- the list of daemons, and measuring the store's clock.

import FleetTestSupport
import TestSupport
import Testing

@testable import Fleet

/// Daemons of one site on one virtual clock, without their resolvers.
final class EngineScene {
  let loop: SimulatedLoop
  let store: ScriptedStore
  private var daemons: [(level: FleetLevel, stream: ScriptedStream)] = []

  /// - Parameter count: how many daemons there are.
  init(_ count: Int) {
    loop = SimulatedLoop()
    store = ScriptedStore(on: loop)
    for number in 0..<count { join(number) }
    loop.advance(by: .milliseconds(1))
  }

  /// Makes a daemon take part, or take part again as after a reload or a restart.
  ///
  /// - Parameters:
  ///   - start: tells its starts apart.
  ///   - ledger: what it knows of its units.
  func join(_ number: Int, start: UInt8 = 0, ledger: FleetLedger = FleetLedger()) {
    let secret = Array("0123456789abcdef0123456789abcdef".utf8)
    if daemons.indices.contains(number) { daemons[number].stream.isAway = true }
    let daemon = store.join(number, secret: secret, start: start, ledger: ledger) { _ in }
    guard daemons.indices.contains(number) else { return daemons.append(daemon) }
    daemons[number].level.close()
    daemons[number] = daemon
  }

  func fleet(_ number: Int) -> FleetLevel { daemons[number].level }

  /// The daemons that one of them finds.
  func present(_ number: Int) -> [FleetMember] {
    nonisolated(unsafe) let level = fleet(number)
    return loop.run { await level.presence.present().map(\.member) }
  }
}

@Suite struct `The list of daemons` {
  @Test func `a daemon whose configuration has changed is one member`() throws {
    let fleet = EngineScene(2)
    let before = FleetMember(id: "1.0", version: "1", fingerprint: "before", host: "h1")
    fleet.store.members[Array(before.text.utf8)] = fleet.store.time - 5_000
    #expect(Set(fleet.present(0).map(\.fingerprint)) == ["f.s.r"] && fleet.present(0).count == 2)
  }

  @Test func `members that are none, and times that are none, are left out`() throws {
    let fleet = EngineScene(1)
    for (score, member) in [("1", "short"), ("9223372036854775807", "1|2|3|4"), ("-5", "a|b|c|d"), ("nan", "e|f|g|h")] {
      fleet.store.members[Array(member.utf8)] = Int64(score) ?? -1
    }
    #expect(fleet.present(0).map(\.id) == ["0.0"])
  }
}

@Suite struct `Measuring the store's clock` {
  @Test func `the store's clock is measured by a short round trip, and not often`() throws {
    let fleet = EngineScene(1)
    #expect(fleet.store.commands["TIME"] == 1)
    // As on a machine that is busy at first.
    fleet.store.latency = .milliseconds(400)
    fleet.fleet(0).hasSlept()
    fleet.loop.advance(by: .milliseconds(500))
    fleet.store.latency = .milliseconds(1)
    fleet.loop.advance(by: .seconds(1))
    #expect(fleet.store.commands["TIME"] == 4)
    let time = try #require(fleet.fleet(0).clock.time)
    #expect(abs(time - fleet.store.time) <= 1)
    // A store that is far away.
    fleet.store.latency = .milliseconds(100)
    fleet.fleet(0).hasSlept()
    fleet.loop.advance(by: .seconds(60))
    #expect(fleet.store.commands["TIME"] == 9)
  }
}
