// FleetLevelTests.swift -- daemons that share a store: who asks the provider, what the others get, and what a bad store does.

import Configuration
import DNSWire
import EventLoop
import FleetTestSupport
import HTTPDNS
import MessageCache
import Refresh
import TestSupport
import Testing

@testable import Fleet
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// Daemons of one site on one virtual clock.
final class FleetScene {
  let loop: SimulatedLoop
  let store: ScriptedStore
  let providers: [ScriptedUpstream]
  let scenes: [ResolverScene]
  let notes = Notes()
  /// The daemons' connections for flushes.
  private(set) var streams: [ScriptedStream] = []

  /// The default settings of refreshing, with a store.
  static let refreshing: Configuration = {
    var configuration = Configuration()
    configuration.cache.redis = try? Configuration.StoreURL(text: "redis://127.0.0.1")
    return configuration
  }()

  static let secret = Array("0123456789abcdef0123456789abcdef".utf8)

  /// - Parameters:
  ///   - count: how many daemons there are.
  ///   - isAlone: whether each of them is for itself, without the store.
  ///   - script: what each daemon's provider answers.
  init(
    _ count: Int, secret: [UInt8]? = FleetScene.secret, local: Bool = false, isAlone: Bool = false,
    subnets: Configuration.ClientSubnet = .none, price: RefreshPrice = .free,
    _ configure: @escaping (inout ResolverSettings) -> Void = { _ in },
    script: ScriptedUpstream.Script? = nil
  ) {
    let loop = SimulatedLoop()
    self.loop = loop
    let store = ScriptedStore(on: loop)
    self.store = store
    let script: ScriptedUpstream.Script =
      script ?? { question, _ in .answer(.addresses(question.name, "192.0.2.1", ttl: 60), after: .milliseconds(100)) }
    providers = (0..<count).map { _ in ScriptedUpstream(on: loop, script) }
    for provider in providers {
      provider.traits.clientSubnet = subnets
      provider.traits.refreshPrice = price
    }
    scenes = providers.enumerated().map { number, provider in
      let local =
        local ? ScriptedLocalDNS(on: loop) { q, _ in .answer(.addresses(q.name, "192.0.2.53", ttl: 60)) } : nil
      // A cache sets the last bit of its seed.
      let seed = testSeed &+ 2 * UInt64(number)
      return ResolverScene(on: loop, [provider], local: local, cacheSeed: seed) { settings in
        settings.routes[0].fleetFingerprint = [UInt8](repeating: 1, count: 32)
        configure(&settings)
      }
    }
    if !isAlone { for (number, scene) in scenes.enumerated() { join(scene, number, secret) } }
    loop.advance(by: .milliseconds(1))
  }

  /// Makes a daemon take part, or take part again as after a reload or a restart.
  ///
  /// - Parameters:
  ///   - start: tells its starts apart.
  ///   - ledger: what it knows of its units.
  func join(
    _ scene: ResolverScene, _ number: Int, _ secret: [UInt8]? = FleetScene.secret, start: UInt8 = 0,
    ledger: FleetLedger = FleetLedger()
  ) {
    let notes = notes
    if streams.indices.contains(number) { streams[number].isAway = true }
    let (level, stream) = store.join(number, secret: secret, start: start, ledger: ledger) { notes.add($0.text) }
    nonisolated(unsafe) let fleet = level
    scene.resolver.assumeIsolated { $0.use(fleet) }
    if streams.indices.contains(number) { streams[number] = stream } else { streams.append(stream) }
  }

  func fleet(_ number: Int) -> FleetLevel {
    nonisolated(unsafe) var found: FleetLevel?
    scenes[number].resolver.assumeIsolated { found = $0.fleet }
    return found!
  }

  /// The daemons that one of them finds.
  func present(_ number: Int) -> [FleetMember] {
    nonisolated(unsafe) let level = fleet(number)
    return loop.run { await level.presence.present().map(\.member) }
  }

  /// When a daemon's cache is flushed by others from now on.
  final class Passes { var all: [BootInstant] = [] }

  func passes(of number: Int) -> Passes {
    let (passes, pacer, loop) = (Passes(), fleet(number).pacer, loop)
    pacer.flushCache = { [flushCache = pacer.flushCache] flush in
      passes.all.append(loop.now)
      flushCache?(flush)
    }
    return passes
  }

  /// Whether a daemon has read a part of the stream of flushes.
  func isBehind(_ number: Int) -> Bool {
    !fleet(number).report.knowsFlushes && fleet(number).follower.nextRead.last != Array("0-0".utf8)
  }

  /// Transfers of all daemons together.
  var transfers: Int { providers.reduce(0) { $0 + $1.count } }

  func ask(_ number: Int, _ name: String = "www.example.com", _ type: RecordType = .a) throws -> Message {
    try scenes[number].answer(name, type)
  }
}

@Suite struct `Daemons that share a store` {
  private let question = FleetQuestion(
    name: name("www.example.com"), type: .a, dnssecOK: false, checkingDisabled: false, subnet: nil,
    fingerprint: [UInt8](repeating: 1, count: 32))

  @Test(arguments: [FleetScene.secret, nil])
  func `the second one to ask gets the first one's answer, with what is left of its TTL`(secret: [UInt8]?) throws {
    let fleet = FleetScene(2, secret: secret)
    #expect(try fleet.ask(0).answers.map(\.ttl) == [60])
    fleet.loop.advance(by: .milliseconds(20_500))
    let message = try fleet.ask(1)
    #expect(message.addresses == ["192.0.2.1"])
    #expect(message.answers.map(\.ttl) == [39])
    #expect(fleet.transfers == 1)
    #expect(fleet.fleet(1).counters.count(of: .hit) == 1)
    // It expires where the first one does, and lives in the cache until then.
    fleet.loop.advance(by: .seconds(38))
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"] && fleet.transfers == 1)
    fleet.loop.advance(by: .seconds(3))
    _ = try fleet.ask(1)
    #expect(fleet.transfers == 2)
  }

  @Test func `ten that are asked for a cold name at once need at most two transfers`() throws {
    let fleet = FleetScene(10)
    let numbers = fleet.scenes.map { $0.ask("www.example.com") }
    fleet.loop.advance(by: .milliseconds(400))
    for (scene, number) in zip(fleet.scenes, numbers) {
      #expect(try scene.reply(number).message.addresses == ["192.0.2.1"])
      #expect(try scene.reply(number).after < .milliseconds(290))
    }
    #expect(fleet.transfers <= 2)
  }

  @Test func `NXDOMAIN and NODATA are shared, failures and LocalDNS's answers are not`() throws {
    let fleet = FleetScene(
      2, local: true,
      script: { question, _ in
        switch question.name.text {
        case "no.example.": .answer(.negative(.nxDomain, zone: name("example")))
        case "empty.example.": .answer(.negative(.noError, zone: name("example")))
        default: .failure()
        }
      })
    for (text, code) in [("no.example", ResponseCode.nxDomain), ("empty.example", .noError)] {
      let before = fleet.transfers
      for number in 0..<2 { #expect(try fleet.ask(number, text).responseCode == code) }
      #expect(fleet.transfers == before + 1)
    }
    let before = fleet.transfers
    for number in 0..<2 { #expect(try fleet.ask(number, "down.example").addresses == ["192.0.2.53"]) }
    #expect(fleet.transfers == before + 2)
    // The lease of the one that failed was given back.
    #expect(fleet.fleet(1).counters.leases.lost == 0)
  }

  @Test func `a lease whose holder has died costs the others their wait, and then one transfer each`() throws {
    let fleet = FleetScene(2)
    fleet.store.values[fleet.fleet(0).keys.lease(question)] = ScriptedStore.Value(octets: [1], expiresAt: nil)
    let asked = fleet.scenes[0].ask("www.example.com")
    fleet.loop.advance(by: .milliseconds(400))
    let reply = try fleet.scenes[0].reply(asked)
    #expect(reply.message.addresses == ["192.0.2.1"])
    #expect(reply.after > .milliseconds(200) && reply.after < .milliseconds(100 + 180 + 20))
    #expect(fleet.fleet(0).counters.leases.expired == 1)
  }

  // MARK: Values that are no answers

  private func forged(_ change: (inout FleetValue) -> Void, _ keys: FleetKeys) -> [UInt8]? {
    var header = Header()
    header.qr = true
    let now = Int64(1_800_000_000_000)
    var value = FleetValue(
      message: Message(
        id: 0, header: header, questions: [Message.Entry(Question(name: question.name, type: .a))],
        answers: [ResourceRecord(owner: question.name, type: .a, ttl: 60, rdata: [192, 0, 2, 66])]),
      scope: nil, extendedError: nil, stored: now + 1_000_000, expires: now + 1_050_000, provider: "first")
    change(&value)
    return value.octets(for: keys.answer(question), keys)
  }

  private func expectRefused(
    _ reason: FleetRejection, _ octets: [UInt8]?, in fleet: FleetScene, _ location: SourceLocation = #_sourceLocation
  ) throws {
    let level = fleet.fleet(0)
    let key = level.keys.answer(question)
    fleet.store.values[key] = ScriptedStore.Value(octets: try #require(octets), expiresAt: nil)
    #expect(try fleet.ask(0).addresses == ["192.0.2.1"], sourceLocation: location)
    #expect(level.counters.rejected == [reason: 1], sourceLocation: location)
    #expect(level.counters.count(of: .rejected) == 1 && fleet.transfers == 1, sourceLocation: location)
    // The provider's answer has taken its place.
    fleet.loop.advance(by: .milliseconds(1))
    #expect(fleet.store.values[key]?.octets != octets, sourceLocation: location)
  }

  @Test func `a good value is one that passes every check`() throws {
    let fleet = FleetScene(1, secret: nil)
    let level = fleet.fleet(0)
    fleet.store.values[level.keys.answer(question)] = ScriptedStore.Value(
      octets: try #require(forged({ _ in }, level.keys)), expiresAt: nil)
    #expect(try fleet.ask(0).addresses == ["192.0.2.66"])
    #expect(fleet.transfers == 0)
  }

  @Test func `forged values in the store are refused with the right reason`() throws {
    let plain = FleetKeys(namespace: "httpdnsd", site: "", secret: nil)
    try expectRefused(.seal, forged({ _ in }, plain), in: FleetScene(1))
    try expectRefused(.version, [9, 0, 1], in: FleetScene(1, secret: nil))
    try expectRefused(.size, [UInt8](repeating: 1, count: 70_000), in: FleetScene(1, secret: nil))
    try expectRefused(.message, forged({ $0.message.header.tc = true }, plain), in: FleetScene(1, secret: nil))
    try expectRefused(.question, forged({ $0.message.questions = [] }, plain), in: FleetScene(1, secret: nil))
    // It would live longer than its records.
    try expectRefused(.lifetime, forged({ $0.expires += 3_600_000 }, plain), in: FleetScene(1, secret: nil))
    let late: (inout FleetValue) -> Void = { ($0.stored, $0.expires) = ($0.stored + 3_600_000, $0.expires + 3_600_000) }
    try expectRefused(.lifetime, forged(late, plain), in: FleetScene(1, secret: nil))
    try expectRefused(.expired, forged({ $0.expires = $0.stored + 1 }, plain), in: FleetScene(1, secret: nil))
    // Records of another name.
    try expectRefused(
      .records, forged({ $0.message.answers[0].owner = name("bank.example") }, plain), in: FleetScene(1, secret: nil))
    try expectRefused(.records, forged({ $0.message.header.rcode = 2 }, plain), in: FleetScene(1, secret: nil))
  }

  @Test func `an answer from before a flush is not used`() throws {
    let fleet = FleetScene(2)
    _ = try fleet.ask(0)
    fleet.loop.advance(by: .milliseconds(1))
    let level = fleet.fleet(1)
    level.follower.record(.names([name("example.com")], andBelow: true))
    _ = try fleet.ask(1)
    #expect(Array(level.counters.rejected.keys) == [.flushed] && fleet.transfers == 2)
  }

  // MARK: A store that is slow, gone or wrong

  @Test func `a silent store costs the first misses its timeout, and later ones nothing`() throws {
    let fleet = FleetScene(1)
    fleet.store.condition = .silent
    for number in 0..<10 {
      let asked = fleet.scenes[0].ask("n\(number).example")
      fleet.loop.advance(by: .milliseconds(150))
      let after = try fleet.scenes[0].reply(asked).after
      #expect(after == .milliseconds(number < 3 ? 120 : 100), "\(number)")
    }
    #expect(fleet.transfers == 10)
    fleet.store.condition = .works
    fleet.loop.advance(by: .seconds(2))
    _ = try fleet.ask(0)
    #expect(fleet.fleet(0).counters.count(of: .miss) == 1)
  }

  @Test func `a store that is down costs nothing`() throws {
    let fleet = FleetScene(1)
    fleet.store.condition = .down
    let asked = fleet.scenes[0].ask("www.example.com")
    fleet.loop.advance(by: .milliseconds(100))
    #expect(try fleet.scenes[0].reply(asked).after == .milliseconds(100))
    #expect(fleet.fleet(0).counters.count(of: .open) == 1)
  }

  @Test func `what could not be written before the store was away does not replace what others wrote`() throws {
    let fleet = FleetScene(1)
    for number in 0..<100 { _ = fleet.scenes[0].ask("n\(number).example") }
    fleet.loop.advance(by: .milliseconds(50))
    fleet.store.latency = .milliseconds(15)
    fleet.loop.advance(by: .milliseconds(60))
    fleet.store.condition = .down
    fleet.loop.advance(by: .seconds(5))
    fleet.store.latency = .milliseconds(1)
    fleet.store.condition = .works
    let written = fleet.store.commands["SET", default: 0]
    fleet.loop.advance(by: .seconds(1))
    #expect(fleet.fleet(0).report.droppedWrites == 36)
    // The mark of its data.
    #expect(fleet.store.commands["SET", default: 0] == written + 1)
  }

  @Test func `a store that refuses writes is still read`() throws {
    let fleet = FleetScene(2)
    _ = try fleet.ask(0)
    fleet.loop.advance(by: .milliseconds(1))
    fleet.store.condition = .readOnly
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
    #expect(fleet.transfers == 1)
    // Without leases each daemon asks for itself.
    for number in 0..<2 { #expect(try fleet.ask(number, "other.example").addresses == ["192.0.2.1"]) }
    #expect(fleet.transfers == 3)
  }

  @Test func `a store whose clock is far off is not used with a secret, and only warned of without one`() throws {
    for secret in [FleetScene.secret, nil] {
      let fleet = FleetScene(2, secret: secret)
      fleet.store.clockOffset = 400
      for number in 0..<2 { fleet.fleet(number).hasSlept() }
      fleet.loop.advance(by: .milliseconds(1))
      for number in 0..<2 { _ = try fleet.ask(number) }
      #expect(fleet.transfers == (secret == nil ? 1 : 2))
      #expect(fleet.notes.all.count == 2)
      #expect(fleet.notes.all[0].hasPrefix("the store's clock is 400 s ahead of this machine's"))
      #expect(fleet.notes.all[0].contains("not used") == (secret != nil))
      // A new connection is no news.
      for _ in 0..<3 {
        fleet.store.reconnect()
        fleet.loop.advance(by: .milliseconds(10))
      }
      #expect(fleet.notes.all.count == 2)
    }
  }

  @Test func `a store whose clock has gone back does not make old answers live longer`() throws {
    let fleet = FleetScene(2)
    _ = try fleet.ask(0)
    fleet.loop.advance(by: .seconds(20))
    fleet.store.clockOffset = -30
    fleet.store.reconnect()
    fleet.loop.advance(by: .seconds(20))
    _ = try fleet.ask(1)
    #expect(fleet.transfers == 2 && fleet.fleet(1).counters.count(of: .rejected) == 1)
    // When its clock is where it was, answers are shared again.
    fleet.loop.advance(by: .seconds(31))
    for number in 0..<2 { _ = try fleet.ask(number, "other.example") }
    #expect(fleet.transfers == 3)
  }

  @Test func `an answer is used that a daemon with another estimate of the store's clock has just written`() throws {
    for error in [-700, 700] as [Int64] {
      let fleet = FleetScene(2)
      fleet.store.timeError = error
      fleet.fleet(1).hasSlept()
      fleet.loop.advance(by: .milliseconds(1))
      fleet.store.timeError = 0
      #expect(abs(try #require(fleet.fleet(1).clock.time) - fleet.store.time - error) <= 1)
      _ = try fleet.ask(0)
      fleet.loop.advance(by: .milliseconds(1))
      let ttl = try #require(try fleet.ask(1).answers.first?.ttl)
      #expect(fleet.transfers == 1 && (58...60).contains(ttl), "\(error): \(ttl)")
    }
  }

  @Test func `after a sleep nothing is used before the store's clock is known again`() throws {
    let fleet = FleetScene(2)
    _ = try fleet.ask(0)
    fleet.store.latency = .milliseconds(500)
    fleet.fleet(1).hasSlept()
    _ = try fleet.ask(1)
    #expect(fleet.transfers == 2 && fleet.fleet(1).counters.count(of: .open) == 1)
  }

  // MARK: Shares

  @Test func `one client that floods a domain does not take it from the others, with a store as without one`() throws {
    let fleet = FleetScene(2, price: .oneUnit) {
      $0.listen.missesPerDomain = 50
      $0.listen.missesPerClient = 500
    }
    fleet.providers[0].remembers = false
    let scene = fleet.scenes[0]
    var others: [Int] = []
    for number in 0..<10_000 {
      scene.ask("x\(number).shared.example", client: 1)
      if number % 500 == 250 { others.append(scene.ask("host\(number).shared.example", client: 2)) }
      if number % 20 == 19 { fleet.loop.advance(by: .milliseconds(10)) }
    }
    fleet.loop.advance(by: .seconds(6))
    for number in others { #expect(try scene.reply(number).message.addresses == ["192.0.2.1"]) }
    #expect(fleet.transfers <= 450)
    // What is beyond a share does not ask the store either.
    let looks = FleetResult.allCases.reduce(0) { $0 + fleet.fleet(0).counters.count(of: $1) }
    #expect(looks <= 450 && fleet.fleet(0).counters.count(of: .miss) > 200)
  }

  // MARK: Lifetimes

  @Test(arguments: ["www.example.com", "no.example", "empty.example"])
  func `an answer of the store ends when the first daemon's does, whatever its TTL`(text: String) throws {
    let fleet = FleetScene(
      2,
      script: { question, _ in
        switch question.name.text {
        case "no.example.": .answer(.negative(.nxDomain, zone: name("example"), ttl: 86_400))
        case "empty.example.": .answer(HTTPDNSAnswer(responseCode: .noError, isNegative: true))
        default: .answer(.addresses(question.name, "192.0.2.1", ttl: 86_400))
        }
      })
    // max_ttl is an hour, and max_negative_ttl 30 s.
    let life: Int64 = text.hasPrefix("www") ? 3_600 : 30
    _ = try fleet.ask(0, text)
    fleet.loop.advance(by: .seconds(life - 10))
    _ = try fleet.ask(1, text)
    #expect(fleet.transfers == 1)
    fleet.loop.advance(by: .seconds(11))
    _ = try fleet.ask(1, text)
    #expect(fleet.transfers == 2)
  }

  @Test func `NXDOMAIN of the store is NODATA where the name has addresses of the other family`() throws {
    let fleet = FleetScene(
      2,
      script: { question, _ in
        question.type == .a
          ? .answer(.addresses(question.name, "192.0.2.1", ttl: 600))
          : .answer(.negative(.nxDomain, zone: name("example")))
      })
    for number in 0..<2 { _ = try fleet.ask(number) }
    for number in 0..<2 { #expect(try fleet.ask(number, "www.example.com", .aaaa).responseCode == .noError) }
    #expect(fleet.transfers == 2)
    #expect(try fleet.ask(1).addresses == ["192.0.2.1"])
  }

  @Test func `AD of a provider that is not trusted is not shared`() throws {
    let fleet = FleetScene(
      2,
      script: { question, _ in
        var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.1", ttl: 60)
        answer.isAuthenticated = true
        return .answer(answer)
      })
    fleet.providers[1].traits.trustsAD = true
    let query = ClientQuestion(name: "www.example.com", dnssecOK: true)
    for scene in fleet.scenes { #expect(try !scene.answer(query).header.ad) }
    #expect(fleet.transfers == 1)
  }

  // MARK: Leases

  @Test func `a lease ends with the answer, also one that is not shared`() throws {
    let fleet = FleetScene(
      2,
      script: { question, _ in
        .answer(.addresses(question.name, "192.0.2.1", ttl: question.name.text.hasPrefix("zero") ? 0 : 2))
      })
    for text in ["zero.example", "two.example"] {
      _ = try fleet.ask(0, text)
      fleet.loop.advance(by: .milliseconds(1))
      #expect(fleet.store.keys.filter { $0.contains(":l:") }.isEmpty, "\(text)")
    }
    // So the next daemon does not wait for nothing.
    let asked = fleet.scenes[1].ask("zero.example")
    fleet.loop.advance(by: .milliseconds(400))
    #expect(try fleet.scenes[1].reply(asked).after < .milliseconds(50))
  }

  @Test func `looks are counted once, by how they ended`() throws {
    let fleet = FleetScene(2)
    let first = fleet.scenes[0].ask("www.example.com")
    fleet.loop.advance(by: .milliseconds(5))
    let second = fleet.scenes[1].ask("www.example.com")
    fleet.loop.advance(by: .milliseconds(400))
    for (scene, number) in zip(fleet.scenes, [first, second]) { _ = try scene.reply(number) }
    #expect(FleetResult.allCases.map { fleet.fleet(0).counters.count(of: $0) } == [0, 1, 0, 0, 0, 0])
    #expect(FleetResult.allCases.map { fleet.fleet(1).counters.count(of: $0) } == [1, 0, 0, 0, 0, 0])
    #expect(fleet.fleet(1).counters.leases.lost == 1)
  }

  // MARK: Routes

  @Test func `what belongs to one network, and other configurations' answers, are not shared`() throws {
    let fleet = FleetScene(2) { $0.routes[0].fleetFingerprint = [] }
    for number in 0..<2 { _ = try fleet.ask(number) }
    #expect(fleet.transfers == 2 && fleet.store.keys.allSatisfy { !$0.contains(":c:") })
  }

  @Test func `a fixed subnet's answers are shared, and a client's only with its own subnet`() throws {
    func script(_ question: HTTPDNSQuestion, _: Int) -> ScriptedStep {
      var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.1", ttl: 60)
      answer.scopePrefixLength = 24
      return .answer(answer)
    }
    let fixed = FleetScene(2, script: script)
    for provider in fixed.providers { provider.traits.clientSubnet = .fixed(IPPrefix(text: "198.51.100.0/24")!) }
    for number in 0..<2 {
      _ = try fixed.ask(number)
      fixed.loop.advance(by: .milliseconds(1))
    }
    #expect(fixed.transfers == 1)
    let own = FleetScene(2, subnets: .fromClient, script: script)
    for subnet in ["203.0.7.0/24", "203.0.9.0/24"] {
      for scene in own.scenes {
        _ = try scene.answer(ClientQuestion(name: "www.example.com", subnet: IPPrefix(text: subnet)!))
        own.loop.advance(by: .milliseconds(1))
      }
    }
    #expect(own.transfers == 2)
  }

  @Test func `a query with DO gets an answer of its own`() throws {
    let fleet = FleetScene(2)
    for provider in fleet.providers { provider.traits.knowsDNSSECFlags = true }
    _ = try fleet.ask(0)
    let count = fleet.store.keys.count
    _ = try fleet.scenes[1].answer(ClientQuestion(name: "www.example.com", dnssecOK: true))
    #expect(fleet.transfers == 2 || count < fleet.store.keys.count)
  }

  // MARK: Refreshes

  @Test func `one of ten refreshes a hot name, and the others adopt its answer`() throws {
    let fleet = FleetScene(10)
    let refreshers = fleet.scenes.map { RefresherScene($0) { $0 = FleetScene.refreshing } }
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<3600 {
      for scene in fleet.scenes where Int.random(in: 0..<3, using: &random) == 0 {
        _ = scene.ask("www.example.com")
        fleet.loop.advance(by: .milliseconds(30))
      }
      fleet.loop.advance(by: .milliseconds(700))
    }
    let seconds = Double((fleet.loop.now - BootInstant(nanoseconds: 1_000_000_000_000)).nanoseconds) / 1e9
    // A refreshed name is fetched every 75 % of its TTL.
    #expect(Double(fleet.transfers) <= 1.03 * seconds / 45, "\(fleet.transfers) in \(seconds) s, seed \(testSeed)")
    #expect((0..<10).reduce(0) { $0 + fleet.fleet($1).counters.adopted } > 500)
    withExtendedLifetime(refreshers) {}
  }
}
