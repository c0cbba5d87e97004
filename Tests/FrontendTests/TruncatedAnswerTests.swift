// TruncatedAnswerTests.swift -- the addresses that stay in an answer too large for UDP, for clients without TCP.

import DNSWire
import MessageCache
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `An answer too large for UDP` {
  private let name = "many.example"
  private let target = "pool.example"

  private func records(_ count: UInt8 = 100) -> [ResourceRecord] {
    [alias(name, target, ttl: 50)] + (0..<count).map { address(target, $0) }
  }

  private func query(_ change: (inout RawQuery) -> Void = { _ in }) -> RawQuery {
    var query = RawQuery { $0.name = RawQuery.name(name) }
    change(&query)
    return query
  }

  @Test func `an answer too large has the addresses that fit, rotated and aged, and is whole over TCP`() throws {
    let scene = try QueryPathScene()
    let records = records()
    try scene.keep(name, records)
    for round in 0..<4 {
      let cut = try scene.reply(query(), now: 7)
      #expect(cut.header.tc)
      // 30 octets of header and question, an alias of 19, and 28 addresses of 16: within 512.
      #expect(cut.answers.count == 29)
      #expect(cut.answers[0].type == .cname && cut.answers[0].ttl == 43)
      #expect(cut.answers[1...].map { Int($0.rdata[3]) } == (0..<28).map { $0 + round })
      #expect(cut.answers[1...].allSatisfy { $0.ttl == 293 && $0.owner == records[0].target })
      // The retry over TCP is the hit, after which the addresses rotate.
      let whole = try scene.reply(query(), .tcp, now: 7)
      #expect(!whole.header.tc && whole.answers.count == 101)
      #expect(Array(whole.answers[..<29]) == cut.answers)
    }
  }

  @Test func `an answer too large has no records for a client that may validate`() throws {
    let scene = try QueryPathScene()
    scene.keep(
      name, dnssecOK: true, try #require(ComposedResponse(.noError, to: DomainName(text: name)!, answers: records())))
    let cut = try scene.reply(query { $0.records = [opt(flags: 0x8000)] })
    #expect(cut.header.tc && cut.answers.isEmpty)
  }

  @Test func `an answer that is too large only because of OPT has the addresses that fit`() throws {
    let scene = try QueryPathScene()
    // 30 octets of header and question, 16 of each address, 11 of OPT.
    for count in UInt8(20)...35 {
      try scene.keep(name, (0..<count).map { address(name, $0) })
      let plain = try scene.reply(query())
      let extended = try scene.reply(query { $0.records = [opt(payload: 512)] })
      #expect(plain.answers.count == min(Int(count), (512 - 30) / 16))
      #expect(extended.answers.count == min(Int(count), (512 - 30 - 11) / 16))
      #expect(plain.header.tc == (plain.answers.count < count))
      #expect(extended.header.tc == (extended.answers.count < count))
    }
  }

  @Test func `truncated stale data has the addresses that fit, and the extended error`() throws {
    let scene = try QueryPathScene()
    var life = EntryLife(lifetime: 10)
    (life.staleFor, life.isServedStale) = (3600, true)
    scene.keep(
      name, life: life, try #require(ComposedResponse(.noError, to: DomainName(text: name)!, answers: records())))
    let cut = try scene.reply(query { $0.records = [opt(payload: 512)] }, now: 20)
    #expect(cut.header.tc)
    #expect(cut.extendedError == .staleAnswer)
    // OPT with the error takes the room of one address.
    #expect(cut.answers.count == 28)
    #expect(cut.answers.allSatisfy { $0.ttl == 30 })
  }

  @Test func `the response to a client beyond its rate has no records`() throws {
    let scene = try QueryPathScene(rateLimit: 1)
    try scene.keep(name, records())
    #expect(try scene.reply(query(), now: 1).answers.count == 29)
    let beyond = try scene.reply(query(), now: 1)
    #expect(beyond.header.tc && beyond.answers.isEmpty)
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `an answer too large does not allocate`() throws {
    let addresses = try (0..<100).map { try #require(IPAddress(text: "192.0.2.\($0)")) }
    let scene = try QueryPathScene(rules: [("pinned.example", .pinned(addresses))])
    try scene.keep(name, records())
    #expect(scene.allocations(for: query().octets) == .clean)
    #expect(scene.allocations(for: query { $0.name = RawQuery.name("pinned.example") }.octets) == .clean)
  }

  @Test func `every answer too large parses, fits and is the beginning of the whole answer`() throws {
    var random = SeededGenerator(seed: testSeed)
    var cut = 0
    for _ in 0..<150 {
      let scene = try QueryPathScene(maxUDPPayload: Int.random(in: 512...4096, using: &random))
      let label = String(repeating: "a", count: Int.random(in: 1...60, using: &random))
      let host = DomainName(text: "\(label).example.com")!
      let isV6 = random.oneIn(2)
      let links = (0..<Int.random(in: 0...12, using: &random)).map { DomainName(text: "link\($0).cdn.example.net")! }
      let owners = [host] + links
      let aliases = zip(owners, links).map {
        ResourceRecord(owner: $0, type: .cname, ttl: 60, rdata: $1.octets)
      }
      let addresses = (0..<Int.random(in: 20...150, using: &random)).map { _ in
        ResourceRecord(owner: owners.last!, type: isV6 ? .aaaa : .a, ttl: 60, rdata: random.octets(isV6 ? 16 : 4))
      }
      let type: UInt16 = isV6 ? 28 : 1
      scene.keep(
        host.description, type, try #require(ComposedResponse(.noError, to: host, answers: aliases + addresses)))
      for _ in 0..<Int.random(in: 0...3, using: &random) { _ = scene.ask(query(host, type).octets, .tcp) }
      let payload = UInt16.random(in: 0...4096, using: &random)
      let hasOPT = random.oneIn(2)
      var asking = query(host, type)
      if hasOPT { asking.records = [opt(payload: payload)] }
      guard case .reply(let octets) = scene.ask(asking.octets) else { throw CancellationError() }
      let message = try Message.parse(octets)
      let limit = hasOPT ? min(max(512, Int(payload)), scene.tables.maxUDPPayload) : 512
      #expect(octets.count <= limit)
      guard message.header.tc else { continue }
      cut += 1
      let whole = try scene.reply(query(host, type), .tcp).answers
      // An answer that is too large only because of OPT has rotated the addresses.
      let beginnings = (0...(hasOPT ? 1 : 0)).map {
        beginning(of: whole, message.answers.count, aliases.count, back: $0)
      }
      #expect(beginnings.contains(message.answers))
      #expect(message.answers.isEmpty || message.answers.last?.type.rawValue == type)
      // One more record would not have fitted.
      #expect(octets.count + (isV6 ? 28 : 16) > limit || message.answers.isEmpty)
    }
    #expect(cut > 60)
  }

  /// The first `count` records of an answer whose addresses are rotated back by `steps`.
  private func beginning(
    of whole: [ResourceRecord], _ count: Int, _ aliases: Int, back steps: Int
  ) -> [ResourceRecord] {
    let addresses = whole[aliases...]
    return Array((whole[..<aliases] + addresses.suffix(steps) + addresses.dropLast(steps)).prefix(count))
  }

  private func query(_ name: DomainName, _ type: UInt16) -> RawQuery {
    RawQuery {
      $0.name = name.octets
      $0.type = type
    }
  }
}

extension ResourceRecord {
  fileprivate var target: DomainName? { DomainName(octets: rdata) }
}
