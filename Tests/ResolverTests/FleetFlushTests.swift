// FleetFlushTests.swift -- a flush of one daemon reaches all others, also those that were away; strangers' flushes are few.

import DNSWire
import EventLoop
import HTTPDNS
import Store
import TestSupport
import Testing

@testable import Fleet
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `Flushes of a fleet` {
  /// What the provider says, which may change.
  private final class Zone { var address = "192.0.2.1" }
  private let zone = Zone()
  /// The notes of a daemon have ascending times.
  private final class Sender { var sentAt: Int64 = 1_800_000_000_000 + 2_000_000 }
  private let sender = Sender()

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

  private func note(_ names: FlushedNames, _ keys: FleetKeys, sentAt: Int64? = nil) -> [UInt8] {
    sender.sentAt += 1
    return FlushNote(names: names, sender: [UInt8](repeating: 99, count: 16), sentAt: sentAt ?? sender.sentAt)
      .octets(keys)
  }

  private let www = FlushedNames.names([name("example.com")], andBelow: true)

  @Test func `a flush of one reaches all ten, and nothing flushed comes back from the store`() throws {
    let fleet = fleet()
    try warm(fleet)
    zone.address = "192.0.2.2"
    let before = fleet.transfers
    #expect(flush(fleet, by: 3, www) == .notified(9))
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
    fleet.loop.advance(by: .milliseconds(50))
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
    fleet.loop.advance(by: .milliseconds(50))
    // What is in the store is as old.
    #expect(try fleet.ask(9).addresses == ["192.0.2.2"])
    #expect(try fleet.ask(9, "other.example").addresses == ["192.0.2.2"])
    #expect(fleet.fleet(9).counters.rejected == [.flushed: 2])
    for number in 0..<9 { #expect(try fleet.ask(number).addresses == ["192.0.2.1"]) }
  }

  @Test func `without a secret six flushes a minute are carried out at once, and the others together`() throws {
    for secret in [FleetScene.secret, nil] {
      let fleet = fleet(2, secret: secret)
      let keys = fleet.fleet(0).keys
      let names = (0..<20).map { "n\($0).example" }
      for text in names { _ = try fleet.ask(0, text) }
      for text in names { add([note(.names([name(text)], andBelow: false), keys)], to: fleet) }
      for number in 0..<2 { #expect(fleet.fleet(number).counters.flushes == 1) }
      fleet.loop.advance(by: .seconds(1))
      for number in 0..<2 { #expect(fleet.fleet(number).counters.flushes == (secret == nil ? 6 : 20)) }
      let before = fleet.transfers
      func fetched() throws -> Int {
        for text in names { _ = try fleet.ask(0, text) }
        return fleet.transfers - before
      }
      #expect(try fetched() == (secret == nil ? 6 : 20))
      fleet.loop.advance(by: .seconds(61))
      #expect(try fetched() == 20)
      #expect(fleet.fleet(0).counters.flushes == 20)
      add([note(www, keys)], to: fleet)
      fleet.loop.advance(by: .seconds(1))
      #expect(fleet.fleet(0).counters.flushes == 21)
      let stranger = FleetKeys(namespace: "httpdnsd", site: "", secret: secret == nil ? FleetScene.secret : nil)
      add([note(www, stranger), [], [0xFF]], to: fleet)
      #expect(fleet.fleet(0).counters.flushes == 21)
      #expect(fleet.fleet(0).counters.refusedFlushes == 3)
    }
  }

  @Test func `a daemon that was away while there was no secret misses none of many flushes`() throws {
    let fleet = fleet(2, secret: nil)
    try warm(fleet)
    fleet.streams[1].isAway = true
    for number in 0..<50 {
      add([note(.names([name("n\(number).example")], andBelow: false), fleet.fleet(0).keys)], to: fleet)
    }
    _ = flush(fleet, by: 0, www)
    zone.address = "192.0.2.2"
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(50))
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
    #expect(try fleet.ask(1, "other.example").addresses == ["192.0.2.1"])
  }

  @Test func `a sealed flush that a stranger adds again flushes nothing new, after a restart neither`() throws {
    let fleet = fleet(2)
    let sealed = note(.everything, fleet.fleet(0).keys, sentAt: fleet.store.time)
    add([sealed], to: fleet)
    fleet.loop.advance(by: .seconds(10))
    try warm(fleet)
    fleet.loop.advance(by: .seconds(600))
    let before = (0..<2).map { fleet.fleet($0).counters.looks }
    for _ in 0..<10 { add([sealed], to: fleet) }
    for number in 0..<2 { _ = try fleet.ask(number) }
    #expect((0..<2).map { fleet.fleet($0).counters.looks } == before)
    #expect(fleet.fleet(1).counters.flushes == 1)
    // It does not make the fleet's answers old either.
    _ = try fleet.ask(0, "new.example")
    fleet.loop.advance(by: .milliseconds(1))
    let transfers = fleet.transfers
    _ = try fleet.ask(1, "new.example")
    #expect(fleet.transfers == transfers)
    // A reload keeps the cache, as a restart does with its file: what came after the flush stays in it.
    fleet.join(fleet.scenes[1], 1, start: 1)
    fleet.loop.advance(by: .seconds(1))
    add([sealed], to: fleet)
    fleet.loop.advance(by: .seconds(2))
    fleet.streams[1].isAway = true
    for name in ["www.example.com", "new.example"] { _ = try fleet.ask(1, name) }
    #expect(fleet.transfers == transfers && fleet.fleet(1).counters.flushes == 1)
  }

  @Test func `more recorded flushes than the stream has entries flush nothing new, in whichever order`() throws {
    let fleet = fleet(2)
    let recorded = (0..<1_500).map { number in
      note(
        .names([name("n\(number).example")], andBelow: false), fleet.fleet(0).keys,
        sentAt: fleet.store.time - 1_500 + Int64(number))
    }
    for part in 0..<100 { add(Array(recorded[part * 15..<part * 15 + 15]), to: fleet) }
    fleet.loop.advance(by: .seconds(10))
    try warm(fleet)
    let (passes, flushes) = (fleet.passes(of: 1), fleet.fleet(1).counters.flushes)
    #expect(flushes == 1_500)
    for round in 0..<3 {
      for sealed in round == 1 ? recorded.reversed() : recorded { add([sealed], to: fleet) }
    }
    fleet.loop.advance(by: .seconds(2))
    #expect(passes.all.isEmpty && fleet.fleet(1).counters.flushes == flushes)
    // Two flushes of one daemon in the same millisecond are both new.
    #expect(flush(fleet, by: 0, www) == .notified(1) && flush(fleet, by: 0, .everything) == .notified(1))
    fleet.loop.advance(by: .seconds(2))
    #expect(fleet.fleet(1).counters.flushes == flushes + 2)
  }

  @Test func `a flush that was recorded before the start takes nothing that is remembered since`() throws {
    let fleet = FleetScene(
      2, secret: FleetScene.secret, script: { _, _ in .failure(.networkError, .nextServer, after: .milliseconds(30)) })
    fleet.loop.advance(by: .seconds(1))
    _ = try? fleet.ask(1)
    func failures() -> Int { fleet.scenes[1].resolver.assumeIsolated { $0.memory.count } }
    for age in [600_000, 500_000] as [Int64] {
      add([note(.everything, fleet.fleet(0).keys, sentAt: fleet.store.time - age)], to: fleet)
    }
    fleet.loop.advance(by: .seconds(1))
    #expect(fleet.fleet(1).counters.flushes == 2 && failures() == 1)
    add([note(.everything, fleet.fleet(0).keys, sentAt: fleet.store.time)], to: fleet)
    fleet.loop.advance(by: .seconds(1))
    #expect(failures() == 0)
  }

  @Test(arguments: [15, 16])
  func `a reply with more entries than were asked for is not believed`(count: Int) throws {
    let fleet = fleet(1)
    try warm(fleet)
    let level = fleet.fleet(0)
    let octets = note(www, level.keys, sentAt: fleet.store.time)
    let entries = (1...count).map { number in
      RESPValue.array([
        .bulk(Array("\(fleet.store.time)-\(number)".utf8)), .array([.bulk(Array("f".utf8)), .bulk(octets)]),
      ])
    }
    _ = level.follower.received(.array([.array([.bulk(level.keys.flushes), .array(entries)])]))
    _ = level.follower.received(.null)
    #expect(level.counters.flushes == (count == 15 ? 1 : 0))
  }

  @Test func `of a reply that is full of names a turn looks at 64 KiB, and the rest is read again`() throws {
    let fleet = fleet(1)
    try warm(fleet)
    let level = fleet.fleet(0)
    func entry(_ number: Int) -> RESPValue {
      let names = (0..<256).map { name("n\($0).e\(number).\(String(repeating: "x", count: 60)).example") }
      let octets = note(.names(names, andBelow: false), level.keys, sentAt: fleet.store.time + Int64(number))
      return .array([
        .bulk(Array("\(fleet.store.time)-\(number)".utf8)), .array([.bulk(Array("f".utf8)), .bulk(octets)]),
      ])
    }
    var (rest, turns) = ((1...15).map(entry)[...], 0)
    while !rest.isEmpty, turns < 15 {
      turns += 1
      #expect(level.follower.received(.array([.array([.bulk(level.keys.flushes), .array(Array(rest))])])))
      // A store sends what is behind the last entry that the daemon names.
      rest = rest.drop { entry in
        guard case .array(let parts) = entry, case .bulk(let id) = parts[0] else { return true }
        return id != level.follower.nextRead.last
      }.dropFirst()
    }
    // Each has 20 KiB.
    #expect((4...8).contains(turns))
    _ = level.follower.received(.null)
    fleet.loop.advance(by: .seconds(2))
    #expect(level.counters.flushes == 15)
  }

  @Test func `what is flushed faster than once a second is flushed together`() throws {
    let fleet = fleet(2)
    let keys = fleet.fleet(0).keys
    try warm(fleet)
    let passes = fleet.passes(of: 1)
    for number in 0..<3_000 {
      add([note(.names([name("n\(number).example")], andBelow: false), keys, sentAt: fleet.store.time)], to: fleet)
    }
    #expect((3...4).contains(Set(passes.all).count))
    fleet.loop.advance(by: .seconds(1))
    #expect(fleet.fleet(1).counters.flushes == 3_000)
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
  }

  @Test(arguments: [0, 1, 2_000_000_000_000_000_000, Int64.max / 4])
  func `a flush of any time flushes what is there, and no more`(time: Int64) throws {
    let fleet = fleet(2, secret: nil)
    try warm(fleet)
    fleet.store.entry(at: time, [Array("f".utf8), note(.everything, fleet.fleet(0).keys, sentAt: time)])
    fleet.loop.advance(by: .seconds(2))
    let before = fleet.transfers
    for number in 0..<2 {
      _ = try fleet.ask(number)
      fleet.loop.advance(by: .milliseconds(1))
    }
    #expect(fleet.transfers == before + (time > 1 ? 1 : 0))
  }

  @Test func `flushes are carried out after the store was replaced by an empty one whose clock is behind`() throws {
    let fleet = fleet(2)
    try warm(fleet)
    _ = flush(fleet, by: 0, www)
    fleet.loop.advance(by: .milliseconds(1))
    for number in 0..<2 { _ = try fleet.ask(number) }
    fleet.store.flushAll()
    fleet.store.clockOffset = -60
    fleet.store.reconnect()
    fleet.loop.advance(by: .seconds(1))
    zone.address = "192.0.2.2"
    #expect(flush(fleet, by: 0, www) == .notified(1))
    fleet.loop.advance(by: .milliseconds(1))
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
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
    #expect(fleet.notes.all.count <= 3, "\(fleet.notes.all)")
  }

  @Test func `an entry whose number no clock shows hides no flush, and is read once`() throws {
    let fleet = fleet(2)
    try warm(fleet)
    fleet.store.entry(at: Int64.max, [Array("f".utf8), [0xFF]])
    fleet.loop.advance(by: .milliseconds(10))
    #expect(fleet.fleet(1).counters.refusedFlushes == 1)
    let sealed = note(www, fleet.fleet(0).keys, sentAt: fleet.store.time)
    fleet.store.entry(at: Int64.max, number: 1, [Array("f".utf8), sealed])
    fleet.loop.advance(by: .milliseconds(10))
    zone.address = "192.0.2.2"
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"] && fleet.fleet(1).report.isUsed)
  }

  @Test func `while a flush waits, values from before it are not used`() throws {
    let fleet = fleet(2, secret: nil)
    let keys = fleet.fleet(0).keys
    for number in 0..<6 { add([note(.names([name("n\(number).example")], andBelow: false), keys)], to: fleet) }
    fleet.loop.advance(by: .seconds(1))
    _ = try fleet.ask(0)
    fleet.loop.advance(by: .milliseconds(1))
    zone.address = "192.0.2.2"
    add([note(www, keys, sentAt: fleet.store.time)], to: fleet)
    #expect(fleet.fleet(1).counters.flushes == 6)
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
  }

  // MARK: Values from before a flush that is not known yet

  @Test func `a daemon whose stream is behind does not use the store`() throws {
    let fleet = fleet(2)
    try warm(fleet, ["other.example"])
    _ = try fleet.ask(0)
    fleet.streams[1].isAway = true
    zone.address = "192.0.2.2"
    _ = flush(fleet, by: 0, www)
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
    #expect(fleet.fleet(1).counters.count(of: .open) == 1 && !fleet.fleet(1).report.isUsed)
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(1))
    #expect(fleet.fleet(1).report.isUsed)
  }

  @Test func `a connection that ends while the stream is read loses no flush`() throws {
    let fleet = fleet(2)
    try warm(fleet)
    fleet.streams[1].isAway = true
    _ = flush(fleet, by: 0, www)
    for number in 0..<100 {
      add([note(.names([name("n\(number).example")], andBelow: false), fleet.fleet(0).keys)], to: fleet)
    }
    fleet.streams[1].isAway = false
    // Time for a part of them.
    fleet.loop.advance(by: .microseconds(700))
    #expect(fleet.isBehind(1))
    fleet.streams[1].isAway = true
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(50))
    zone.address = "192.0.2.2"
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
    #expect(fleet.fleet(1).counters.flushes == 101)
  }

  @Test func `flushes that the stream lost between two connections flush everything from before`() throws {
    let fleet = fleet(2)
    func add(_ count: Int) {
      for number in 0..<count {
        self.add([note(.names([name("n\(number).example")], andBelow: false), fleet.fleet(0).keys)], to: fleet)
      }
    }
    fleet.streams[1].isAway = true
    add(100)
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .microseconds(700))
    #expect(fleet.isBehind(1))
    fleet.streams[1].isAway = true
    fleet.loop.advance(by: .seconds(5))
    _ = try fleet.ask(1)
    fleet.loop.advance(by: .seconds(1))
    _ = flush(fleet, by: 0, www)
    add(1_100)
    zone.address = "192.0.2.2"
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(50))
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
  }

  @Test func `a stream that overflowed while the daemon was away is noticed over two connections too`() throws {
    let fleet = fleet(2)
    try warm(fleet)
    fleet.streams[1].isAway = true
    fleet.loop.advance(by: .seconds(1))
    _ = flush(fleet, by: 0, www)
    for number in 0..<1_200 {
      add([note(.names([name("n\(number).example")], andBelow: false), fleet.fleet(0).keys)], to: fleet)
    }
    zone.address = "192.0.2.2"
    fleet.streams[1].isAway = false
    let now = fleet.store.time
    fleet.loop.advance(by: .milliseconds(6))
    // The stream keeps the last 1,000 entries, of a millisecond each; more than 100 of them have been read.
    let last = String(decoding: fleet.fleet(1).follower.nextRead.last ?? [], as: UTF8.self)
    #expect(fleet.isBehind(1) && Int64(last.prefix { $0 != "-" }) ?? 0 > now - 900, "\(last)")
    fleet.streams[1].isAway = true
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(50))
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
  }

  @Test func `a stream of old flushes, as another store has it, flushes nothing that is younger`() throws {
    let fleet = fleet(2)
    _ = flush(fleet, by: 0, .everything)
    fleet.loop.advance(by: .seconds(3_600))
    try warm(fleet)
    let looks = fleet.fleet(1).counters.looks
    fleet.store.values[fleet.fleet(1).keys.epoch]?.octets.append(0)
    fleet.fleet(1).connected()
    fleet.loop.advance(by: .seconds(1))
    #expect(fleet.fleet(1).counters.losses == 1)
    #expect(fleet.fleet(1).counters.flushes == 1)
    _ = try fleet.ask(1)
    #expect(fleet.fleet(1).counters.looks == looks)
  }

  @Test func `a flush that waits makes no value old that was stored since`() throws {
    let fleet = fleet(2, secret: nil)
    let keys = fleet.fleet(0).keys
    for number in 0..<6 { add([note(.names([name("n\(number).example")], andBelow: false), keys)], to: fleet) }
    // The store's clock is not known when the flush is read.
    fleet.store.refused = ["TIME"]
    for number in 0..<2 { fleet.fleet(number).hasSlept() }
    add([note(.everything, keys, sentAt: fleet.store.time)], to: fleet)
    fleet.loop.advance(by: .seconds(120))
    #expect(fleet.fleet(1).counters.flushes == 7)
    fleet.store.refused = []
    for number in 0..<2 { fleet.fleet(number).connected() }
    fleet.loop.advance(by: .seconds(600))
    let before = fleet.transfers
    for number in 0..<2 {
      _ = try fleet.ask(number)
      fleet.loop.advance(by: .milliseconds(1))
    }
    #expect(fleet.transfers == before + 1)
  }

  @Test func `only a flush that comes now and cannot be read is logged`() throws {
    let fleet = fleet(2)
    let stranger = FleetKeys(namespace: "httpdnsd", site: "", secret: nil)
    fleet.streams[1].isAway = true
    add([note(www, stranger)], to: fleet)
    #expect(fleet.notes.all == ["ignored a flush from the store: different secret, or corrupt entry"])
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(10))
    #expect(fleet.fleet(1).counters.refusedFlushes == 1 && fleet.notes.all.count == 1)
  }

  @Test func `a value that was taken by a daemon before it was started again is flushed too`() throws {
    let fleet = fleet(2)
    _ = try fleet.ask(0)
    fleet.streams[1].latency = .seconds(3_600)
    zone.address = "192.0.2.2"
    _ = flush(fleet, by: 0, www)
    fleet.loop.advance(by: .seconds(20))
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
    fleet.loop.advance(by: .seconds(20))
    // A reload keeps the cache, as a restart does with its file.
    fleet.join(fleet.scenes[1], 1, start: 1)
    fleet.loop.advance(by: .milliseconds(10))
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
  }

  @Test func `a value that was taken while its flush was on its way is flushed too`() throws {
    for way in [Duration.milliseconds(500), .seconds(60)] {
      zone.address = "192.0.2.1"
      let fleet = fleet(2)
      _ = try fleet.ask(0)
      fleet.streams[1].latency = way
      zone.address = "192.0.2.2"
      _ = flush(fleet, by: 0, www)
      fleet.loop.advance(by: way / 2)
      #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
      fleet.loop.advance(by: way)
      #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
    }
  }

  @Test func `a value that was taken while the stream was dead unnoticed is flushed too`() throws {
    let fleet = fleet(2)
    _ = try fleet.ask(0)
    fleet.streams[1].latency = .seconds(45)
    zone.address = "192.0.2.2"
    _ = flush(fleet, by: 0, www)
    fleet.loop.advance(by: .seconds(20))
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
    fleet.loop.advance(by: .seconds(20))
    fleet.streams[1].isAway = true
    fleet.loop.advance(by: .seconds(20))
    // What this daemon has fetched since it knows that it knows nothing of flushes is from after them.
    _ = try fleet.ask(1, "own.example.com")
    fleet.streams[1].latency = nil
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(50))
    let before = fleet.transfers
    #expect(try fleet.ask(1, "own.example.com").addresses == ["192.0.2.2"])
    #expect(fleet.transfers == before)
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
    #expect(fleet.transfers == before + 1)
  }

  @Test func `a value that was taken while its flush was on its way is flushed too if the flush has to wait`() throws {
    let fleet = fleet(2, secret: nil)
    let keys = fleet.fleet(0).keys
    for number in 0..<6 { add([note(.names([name("n\(number).example")], andBelow: false), keys)], to: fleet) }
    fleet.loop.advance(by: .seconds(1))
    _ = try fleet.ask(0)
    fleet.streams[1].latency = .milliseconds(500)
    zone.address = "192.0.2.2"
    _ = flush(fleet, by: 0, www)
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
    fleet.loop.advance(by: .seconds(1))
    #expect(fleet.fleet(1).counters.flushes == 6)
    fleet.loop.advance(by: .seconds(60))
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
  }

  @Test func `a flush says whom it has reached, and why not`() {
    let fleet = fleet(2)
    let stranger = FleetMember(id: "7", version: "1", fingerprint: "x.y.z", host: "h7")
    let reader = FleetMember(id: "8", version: "1", fingerprint: "f.y.z", host: "h8")
    for member in [stranger, reader] { fleet.store.members[Array(member.text.utf8)] = fleet.store.time }
    #expect(flush(fleet, by: 0, www) == .notified(2, strangers: 1))
    fleet.store.refused = ["ZRANGE"]
    #expect(flush(fleet, by: 0, www) == .notified(nil))
    fleet.store.refused = ["XADD"]
    guard case .failed(let reason) = flush(fleet, by: 0, www) else {
      Issue.record("not refused")
      return
    }
    #expect(reason.hasPrefix("the store refused the flush: NOPERM"))
    fleet.store.condition = .down
    let level = fleet.fleet(0)
    level.describe = { FleetReport(store: StoreReport(state: "away", isUp: false, since: .now), own: level.member) }
    #expect(flush(fleet, by: 0, www) == .failed("the store is away"))
    // The connections that it describes may be gone then.
    level.close()
    #expect(level.describe() == nil)
    #expect(flush(fleet, by: 0, www) == .failed("the store is no longer used"))
  }

  @Test func `flushes of thousands of names reach a daemon that starts`() throws {
    let fleet = fleet(2)
    try warm(fleet)
    fleet.streams[1].isAway = true
    for round in 0..<40 {
      let names = (0..<256).map { name("\(String(repeating: "x", count: 60)).n\($0).\(round).example") }
      add([note(.names(names, andBelow: false), fleet.fleet(0).keys)], to: fleet)
    }
    zone.address = "192.0.2.2"
    _ = flush(fleet, by: 0, www)
    fleet.streams[1].isAway = false
    fleet.loop.advance(by: .milliseconds(50))
    #expect(try fleet.ask(1).addresses == ["192.0.2.2"])
    #expect(try fleet.ask(1, "other.example").addresses == ["192.0.2.1"])
  }

  @Test func `what is flushed here alone does not come back from the store`() throws {
    let fleet = fleet(2)
    try warm(fleet)
    zone.address = "192.0.2.2"
    let resolver = fleet.scenes[0].resolver
    let names = www
    #expect(fleet.loop.run { await resolver.flush(names, everywhere: false).reach } == nil)
    #expect(try fleet.ask(0).addresses == ["192.0.2.2"])
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
  }
}
