// QueryCountersTests.swift -- each query counts once, under what became of it.

import DNSWire
import EventLoop
import Glibc
import Listener
import MessageCache
import Routing
import Telemetry
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

extension QueryPathScene {
  /// What its path has counted.
  var totals: QueryTotals { path.counters.totals }
}

extension QueryCounters {
  /// What this thread alone has counted.
  var totals: QueryTotals {
    var totals = QueryTotals()
    add(to: &totals)
    return totals
  }
}

extension QueryTotals {
  /// The fates that have been met, and how often, over both transports.
  var fates: [QueryFate: UInt64] {
    Dictionary(uniqueKeysWithValues: QueryFate.allCases.map { ($0, count($0)) }).filter { $0.value > 0 }
  }
}

@Suite struct `What the query path counts` {
  @Test func `each group of counters has room for all of its cases`() {
    #expect(QueryTally.transportCount == QueryTransport.allCases.count)
    #expect(QueryTransport.allCases.map(\.place) == QueryTransport.allCases.map { Int($0.rawValue) })
    #expect(QueryTally.fateCount == QueryFate.allCases.count)
    #expect(QueryTally.codeCount == CountedCode.allCases.count)
    #expect(QueryTally.typeCount == CountedType.allCases.count)
    #expect(QueryTally.boundCount == LatencyHistogram.bounds.count)
  }

  @Test func `a query counts for the rule that decides, whatever becomes of it`() throws {
    let scene = try QueryPathScene(rules: [("blocked.example", .nxDomain), ("own.example", .route(5))])
    for name in ["blocked.example", "a.blocked.example", "own.example", "www.example.com"] {
      _ = scene.ask(RawQuery { $0.name = RawQuery.name(name) }.octets)
    }
    #expect(scene.totals.rules.prefix(3) == [2, 1, 0])
    #expect(scene.path.lastEnd.rule == RouteFinding.noCounter)
    _ = scene.ask(RawQuery { $0.name = RawQuery.name("own.example") }.octets)
    #expect(scene.path.lastEnd.rule == 1)
  }

  @Test func `the name of a rule keeps its number, and 256 names have one`() {
    var names = RuleNames()
    #expect([names.number(of: "2"), names.number(of: "ads"), names.number(of: "2")] == [0, 1, 0])
    #expect((0..<300).compactMap { names.number(of: "rule \($0)") }.count == 254)
    #expect(names[1] == "ads")
    #expect(names[RouteFinding.noCounter] == nil)
  }

  @Test func `an answer from the cache is a hit of its type, code and transport`() throws {
    let scene = try QueryPathScene()
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    for _ in 0..<3 { _ = scene.ask(RawQuery().octets) }
    for transport in QueryTransport.streams { _ = scene.ask(RawQuery().octets, transport) }
    let totals = scene.totals
    #expect(totals.fates == [.hit: 6])
    #expect(totals.count(.hit, over: .udp) == 3)
    #expect(QueryTransport.streams.map { totals.count(.hit, over: $0) } == [1, 1, 1])
    #expect(totals.count(CountedType.a) == 6)
    #expect(totals.count(CountedCode.noError) == 6)
    #expect(totals.queries == 6)
    #expect(totals.hitRatio == 1)
  }

  @Test func `an answer that has expired is stale`() throws {
    let scene = try QueryPathScene()
    var life = EntryLife(lifetime: 10)
    life.staleFor = 3600
    life.isServedStale = true
    let owner = try #require(DomainName(text: "www.example.com"))
    let response = try #require(
      ComposedResponse(.noError, to: owner, answers: [address("www.example.com", 1)]))
    scene.keep("www.example.com", life: life, response)
    _ = scene.ask(RawQuery().octets, now: 5)
    _ = scene.ask(RawQuery().octets, now: 50)
    #expect(scene.totals.fates == [.hit: 1, .stale: 1])
  }

  @Test func `rules, special names and blocked names are counted separately`() throws {
    let scene = try QueryPathScene(
      rules: [("ads.example", .nxDomain), ("tracker.example", .refused)], hosts: "192.0.2.7 printer\n")
    for name in ["ads.example", "tracker.example", "printer", "localhost"] {
      _ = scene.ask(RawQuery { $0.name = RawQuery.name(name) }.octets)
    }
    _ = scene.ask(RawQuery { $0.type = 255 }.octets)
    let totals = scene.totals
    #expect(totals.fates == [.blocked: 2, .local: 3])
    #expect(totals.count(CountedCode.nxDomain) == 1)
    #expect(totals.count(CountedCode.refused) == 1)
    #expect(totals.count(CountedCode.noError) == 3)
  }

  @Test func `refused queries, broken ones and other messages are counted as such`() throws {
    let scene = try QueryPathScene()
    _ = scene.ask(RawQuery().octets, from: "192.0.2.99")
    _ = scene.ask(RawQuery { $0.qclass = 3 }.octets)
    _ = scene.ask(RawQuery { $0.type = 252 }.octets)
    _ = scene.ask(RawQuery { $0.flags = 0 }.octets)
    _ = scene.ask(RawQuery { $0.flags |= 0x2000 }.octets)
    _ = scene.ask(RawQuery { $0.counts = [2, 0, 0, 0] }.octets)
    _ = scene.ask(RawQuery { $0.records = [opt(version: 9)] }.octets)
    _ = scene.ask(RawQuery { $0.flags |= 0x8000 }.octets)
    _ = scene.ask([1, 2, 3])
    let totals = scene.totals
    #expect(totals.fates == [.refused: 4, .invalid: 3, .dropped: 2])
    #expect(totals.count(CountedCode.notImp) == 1)
    #expect(totals.count(CountedCode.formErr) == 1)
    #expect(totals.count(CountedCode.badVers) == 1)
    #expect(totals.count(CountedCode.refused) == 4)
    #expect(totals.hitRatio == nil)
  }

  @Test func `the counted types are distinguished, the others are one`() throws {
    let scene = try QueryPathScene()
    for type: UInt16 in [1, 28, 28, 65, 12, 16, 15] { _ = scene.ask(RawQuery { $0.type = type }.octets) }
    #expect(CountedType.allCases.map { scene.totals.count($0) } == [1, 2, 1, 1, 2])
  }

  @Test(arguments: [1, 255, 252] as [UInt16])
  func `counting allocates nothing`(_ type: UInt16) throws {
    let scene = try QueryPathScene()
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    let outcome = scene.allocations(for: RawQuery { $0.type = type }.octets)
    #expect(outcome == .clean)
    // The second half was counted in a process of its own.
    #expect(scene.totals.queries == 100)
  }
}

@Suite struct `What a listener counts` {
  @Test func `a listener counts misses, overflows and the durations of the other answers`() throws {
    let scene = try QueryPathScene()
    scene.storedAt = BootInstant.now.nanoseconds
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    let socket = try UDPSocket(binding: #require(SocketAddress(text: "127.0.0.1:0")))
    let listener = try UDPListener(on: socket, responseSize: 1232 + ResponseWriter.overhead)
    let port = UDPPort(
      listener, path: scene.path, queries: ClientQueries(capacity: 2), resolverLoop: try EventLoop())
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    client.send(RawQuery().octets)
    for _ in 0..<3 { client.send(RawQuery { $0.name = RawQuery.name("other.example.com") }.octets) }
    _ = port.serve(waiting: true) {}
    let totals = scene.totals
    #expect(totals.fates == [.hit: 1, .miss: 2, .overflow: 1])
    #expect(totals.count(CountedCode.servFail) == 1)
    #expect(totals.hitRatio == 0.25)
    #expect(scene.path.counters.durations.count == 2)
    #expect(scene.path.counters.durations.sum > 0)
  }
}

@Suite struct `Durations on the hot path` {
  @Test func `delayed queries count by their transport, beside their fate`() {
    let counters = QueryCounters()
    for (transport, count) in zip(QueryTransport.streams, [1, 2, 3]) {
      for _ in 0..<count { counters.tally.count(delayedOver: transport) }
    }
    #expect(QueryTransport.allCases.map { counters.totals.countDelayed(over: $0) } == [0, 1, 2, 3])
    #expect(counters.totals.queries == 0)
    #expect((counters.totals - counters.totals).countDelayed(over: .doh) == 0)
  }

  @Test func `durations on the hot path fall into the histogram's buckets`() {
    let counters = QueryCounters()
    var model = LatencyHistogram()
    for bound in LatencyHistogram.bounds + [0, 1, 7_000_000_000] {
      for nanoseconds in [bound, bound + 1] {
        counters.tally.count(answers: 3, took: nanoseconds)
        for _ in 0..<3 { model.observe(.nanoseconds(nanoseconds)) }
      }
    }
    #expect(counters.durations == model)
  }

  @Test func `a clock that goes back counts as a duration of zero`() {
    let counters = QueryCounters()
    counters.tally.count(answers: 1, took: -5)
    #expect(counters.durations.counts[0] == 1)
    #expect(counters.durations.sum == 0)
  }
}

@Suite struct `Two readings` {
  @Test func `two readings differ by the queries between them`() throws {
    let scene = try QueryPathScene()
    _ = scene.ask([])
    let earlier = scene.totals
    _ = scene.ask(RawQuery { $0.type = 252 }.octets)
    #expect((scene.totals - earlier).fates == [.refused: 1])
    #expect((earlier - scene.totals).fates == [:])
  }
}
