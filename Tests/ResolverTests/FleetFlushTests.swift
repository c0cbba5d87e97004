// FleetFlushTests.swift -- a flush of one daemon reaches all others, also those that were away; strangers' flushes are few.

import DNSWire
import EventLoop
import Fleet
import HTTPDNS
import Store
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `Flushes of a fleet` {
  /// What the provider says, which may change.
  private final class Zone { var address = "192.0.2.1" }
  private let zone = Zone()

  private func fleet(_ count: Int = 10, secret: [UInt8]? = FleetScene.secret) -> FleetScene {
    FleetScene(
      count, secret: secret,
      script: { [zone] question, _ in
        .answer(.addresses(question.name, zone.address, ttl: 3_600), after: .milliseconds(30))
      })
  }

  /// All daemons know these names.
  private func warm(_ fleet: FleetScene, _ names: [String] = ["www.example.com", "other.example"]) throws {
    for name in names {
      for number in fleet.scenes.indices { _ = try fleet.ask(number, name) }
    }
    fleet.loop.advance(by: .seconds(1))
  }

  private func flush(_ fleet: FleetScene, by number: Int, _ names: FlushedNames) -> FlushReach? {
    let resolver = fleet.scenes[number].resolver
    return fleet.loop.run { await resolver.flush(names, everywhere: true).reach }
  }

  /// Adds entries to the stream, as a stranger can.
  private func add(_ notes: [[UInt8]], to fleet: FleetScene) {
    for note in notes {
      fleet.store.run([
        Array("XADD".utf8), fleet.fleet(0).keys.flushes, Array("MAXLEN".utf8), Array("~".utf8), Array("1000".utf8),
        Array("*".utf8), Array("f".utf8), note,
      ])
    }
    fleet.loop.advance(by: .milliseconds(1))
  }

  private func note(_ names: FlushedNames, _ keys: FleetKeys) -> [UInt8] {
    FlushNote(names: names, sender: [UInt8](repeating: 99, count: 16)).octets(keys)
  }

  private let www = FlushedNames.names([name("example.com")], andBelow: true)

  @Test func `a flush of one reaches all ten, and nothing flushed comes back from the store`() throws {
    let fleet = fleet()
    try warm(fleet)
    zone.address = "192.0.2.2"
    let before = fleet.transfers
    #expect(flush(fleet, by: 3, www) == .told(9))
    fleet.loop.advance(by: .milliseconds(1))
    for number in 0..<10 { #expect(try fleet.ask(number).addresses == ["192.0.2.2"], "\(number)") }
    // They share the new answer, and have kept the other name.
    #expect(fleet.transfers == before + 1)
    for number in 0..<10 { #expect(try fleet.ask(number, "other.example").addresses == ["192.0.2.1"]) }
    #expect((0..<10).map { fleet.fleet($0).counters.flushes } == (0..<10).map { $0 == 3 ? 0 : 1 })
  }

  @Test func `a daemon that was away carries out what it has missed`() throws {
    let fleet = fleet()
    try warm(fleet)
    fleet.streams[9].isAway = true
    zone.address = "192.0.2.2"
    for number in 0..<500 {
      add([note(.names([name("n\(number).example")], andBelow: false), fleet.fleet(0).keys)], to: fleet)
    }
    _ = flush(fleet, by: 0, www)
    fleet.loop.advance(by: .seconds(60))
    #expect(try fleet.ask(9).addresses == ["192.0.2.1"])
    fleet.streams[9].isAway = false
    fleet.loop.advance(by: .milliseconds(1))
    #expect(try fleet.ask(9).addresses == ["192.0.2.2"])
    #expect(try fleet.ask(9, "other.example").addresses == ["192.0.2.1"])
    #expect(fleet.fleet(9).counters.flushes == 501)
  }

  @Test func `a daemon that was away longer than the stream reaches flushes everything`() throws {
    let fleet = fleet()
    try warm(fleet)
    fleet.streams[9].isAway = true
    for number in 0..<1_200 {
      add([note(.names([name("n\(number).example")], andBelow: false), fleet.fleet(0).keys)], to: fleet)
    }
    zone.address = "192.0.2.2"
    fleet.loop.advance(by: .seconds(1))
    fleet.streams[9].isAway = false
    fleet.loop.advance(by: .milliseconds(1))
    // What is in the store is as old.
    #expect(try fleet.ask(9).addresses == ["192.0.2.2"])
    #expect(try fleet.ask(9, "other.example").addresses == ["192.0.2.2"])
    #expect(fleet.fleet(9).counters.rejected == [.flushed: 2])
    for number in 0..<9 { #expect(try fleet.ask(number).addresses == ["192.0.2.1"]) }
  }

  @Test func `without a secret six flushes a minute are carried out, with one all that carry its seal`() throws {
    for secret in [FleetScene.secret, nil] {
      let fleet = fleet(2, secret: secret)
      let keys = fleet.fleet(0).keys
      for _ in 0..<20 { add([note(www, keys)], to: fleet) }
      for number in 0..<2 {
        #expect(fleet.fleet(number).counters.flushes == (secret == nil ? 6 : 20))
        #expect(fleet.fleet(number).counters.refusedFlushes == (secret == nil ? 14 : 0))
      }
      fleet.loop.advance(by: .seconds(61))
      add([note(www, keys)], to: fleet)
      #expect(fleet.fleet(0).counters.flushes == (secret == nil ? 7 : 21))
      let stranger = FleetKeys(namespace: "httpdnsd", site: "", secret: secret == nil ? FleetScene.secret : nil)
      add([note(www, stranger), [], [0xFF]], to: fleet)
      #expect(fleet.fleet(0).counters.flushes == (secret == nil ? 7 : 21))
      #expect(fleet.fleet(0).counters.refusedFlushes == (secret == nil ? 17 : 3))
    }
  }

  @Test(arguments: [FleetScene.secret, nil])
  func `a thousand entries at once, again and again, flush no more than six times a minute`(secret: [UInt8]?) throws {
    let fleet = fleet(1, secret: secret)
    for _ in 0..<20 {
      _ = try fleet.ask(0)
      fleet.loop.advance(by: .seconds(1))
      add([[UInt8]](repeating: [0xFF], count: 1_000), to: fleet)
      fleet.loop.advance(by: .seconds(1))
    }
    #expect((2...7).contains(fleet.transfers), "\(fleet.transfers)")
  }
}
