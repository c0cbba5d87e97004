// ResolverCacheTests.swift -- what is kept, for how long, and what takes whose place: behaviour over hours of virtual time.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverCacheTests {
  let loop = SimulatedLoop()
  let zone = name("example.com")

  /// A provider that gives the answers of `records`, and NXDOMAIN of `example.com` for everything else.
  private func provider(_ records: [String: HTTPDNSAnswer]) -> ScriptedUpstream {
    ScriptedUpstream(on: loop) { [zone] question, _ in
      .answer(records["\(question.name) \(question.type)"] ?? .negative(.nxDomain, zone: zone, minimum: 20))
    }
  }

  @Test func `an answer ages by whole seconds and is fetched again when it is over`() throws {
    let provider = provider(["www.example.com. A": .addresses(name("www.example.com"), "192.0.2.1", ttl: 100)])
    let scene = ResolverScene(on: loop, [provider])
    var last = try scene.answer("www.example.com").answers[0].ttl
    #expect(last == 100)
    for _ in 0..<99 {
      loop.advance(by: .seconds(1))
      let ttl = try scene.answer("www.example.com").answers[0].ttl
      #expect(ttl == last - 1)
      last = ttl
    }
    #expect(provider.asked.count == 1)
    loop.advance(by: .seconds(1))
    #expect(try scene.answer("www.example.com").answers[0].ttl == 100)
    #expect(provider.asked.count == 2)
  }

  @Test func `a negative answer carries its ageing SOA record, and is cached for its minimum`() throws {
    let scene = ResolverScene(on: loop, [provider([:])])
    for (elapsed, ttl) in [(0, 20), (7, 13), (12, 1)] as [(Int, UInt32)] {
      loop.advance(by: .seconds(elapsed))
      let message = try scene.answer("gone.example.com")
      #expect(message.responseCode == .nxDomain)
      #expect(message.answers.isEmpty)
      #expect(message.authorities.map(\.type) == [.soa])
      #expect(message.authorities[0].owner == zone)
      #expect(message.authorities[0].ttl == ttl)
    }
    #expect(scene.counters.fetches == 1)
    loop.advance(by: .seconds(1))
    _ = try scene.answer("gone.example.com")
    #expect(scene.counters.fetches == 2)
  }

  @Test func `a negative answer without SOA record gets one, and is cached for half a minute`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .answer(.negative(.noError)) }
    let scene = ResolverScene(on: loop, [provider])
    let message = try scene.answer("www.example.com", .aaaa)
    #expect(message.responseCode == .noError)
    #expect(message.authorities.map(\.owner) == [name("www.example.com")])
    #expect(message.authorities.map(\.ttl) == [30])
    loop.advance(by: .milliseconds(29900))
    _ = try scene.answer("www.example.com", .aaaa)
    #expect(provider.asked.count == 1)
    loop.advance(by: .seconds(1))
    _ = try scene.answer("www.example.com", .aaaa)
    #expect(provider.asked.count == 2)
  }

  @Test func `NXDOMAIN holds for every type of the name`() throws {
    let provider = provider([:])
    let scene = ResolverScene(on: loop, [provider])
    for type in [RecordType.a, .aaaa, .mx, .https, RecordType(999)] {
      #expect(try scene.answer("gone.example.com", type).responseCode == .nxDomain)
    }
    #expect(provider.asked.count == 1)
  }

  @Test func `NODATA holds for its type alone`() throws {
    let www = name("www.example.com")
    let provider = provider([
      "www.example.com. A": .addresses(www, "192.0.2.1"), "www.example.com. AAAA": .negative(.noError, zone: zone),
    ])
    let scene = ResolverScene(on: loop, [provider])
    #expect(try scene.answer("www.example.com", .aaaa).answers.isEmpty)
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(try scene.answer("www.example.com", .aaaa).responseCode == .noError)
    #expect(provider.asked.count == 2)
  }

  @Test func `NXDOMAIN covers the names below, with the SOA record's TTL that is left`() throws {
    let provider = provider([:])
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("gone.example.com")
    loop.advance(by: .seconds(5))
    for below in ["a.gone.example.com", "a.b.c.gone.example.com"] {
      let message = try scene.answer(below, .aaaa)
      #expect(message.responseCode == .nxDomain)
      #expect(message.authorities.map(\.owner) == [zone])
      #expect(message.authorities.map(\.ttl) == [15])
    }
    #expect(provider.asked.count == 1)
    _ = try scene.answer("gone2.example.com")
    #expect(provider.asked.count == 2)
    loop.advance(by: .seconds(15))
    _ = try scene.answer("a.gone.example.com")
    #expect(provider.asked.count == 3)
  }

  @Test func `a validated NXDOMAIN is validated for the names below, too`() throws {
    for trustsAD in [false, true] {
      var nxdomain = HTTPDNSAnswer.negative(.nxDomain, zone: zone)
      nxdomain.isAuthenticated = true
      let provider = ScriptedUpstream(on: loop) { [nxdomain] _, _ in .answer(nxdomain) }
      provider.traits.trustsAD = trustsAD
      let scene = ResolverScene(on: loop, [provider])
      for name in ["gone.example.com", "below.gone.example.com"] {
        #expect(try scene.answer(ClientQuestion(name: name, dnssecOK: true)).header.ad == trustsAD, "\(name)")
      }
      #expect(provider.asked.count == 1)
    }
  }

  @Test func `NXDOMAIN does not cover names below if nxdomain_cut is off, nor on another route`() throws {
    let provider = provider([:])
    let off = ResolverScene(on: loop, [provider]) { $0.cache.nxdomainCut = false }
    _ = try off.answer("gone.example.com")
    _ = try off.answer("a.gone.example.com")
    #expect(provider.asked.count == 2)
    let scene = ResolverScene(
      on: loop, [provider],
      rules: [.init(names: [.below(name("gone.example.com"))], action: .route(Route.Number.firstRule))]
    ) { $0.routes.append($0.routes[0]) }
    _ = try scene.answer("gone.example.com")
    _ = try scene.answer("a.gone.example.com")
    #expect(provider.asked.count == 4)
    // Nor for a query that asks for more: its negative answer may have other records.
    var withProofs = ClientQuestion(name: "gone.example.com", dnssecOK: true)
    _ = try scene.answer(withProofs)
    withProofs.checkingDisabled = true
    _ = try scene.answer(withProofs)
    #expect(provider.asked.count == 6)
  }

  @Test func `NXDOMAIN at the end of an alias does not apply to the alias`() throws {
    let www = name("www.example.com")
    let chain = HTTPDNSAnswer(
      responseCode: .nxDomain, answers: [.alias(www, name("gone.example.net"), ttl: 300)],
      authorities: [.soa(name("example.net"), ttl: 900, minimum: 900)], isNegative: true)
    let provider = provider([
      "www.example.com. A": chain, "a.www.example.com. A": .addresses(name("a.www.example.com"), "192.0.2.1"),
    ])
    let scene = ResolverScene(on: loop, [provider])
    let message = try scene.answer("www.example.com")
    #expect(message.responseCode == .nxDomain)
    #expect(message.answers.map(\.type) == [.cname])
    #expect(message.authorities.map(\.owner) == [name("example.net")])
    #expect(try scene.answer("a.www.example.com").addresses == ["192.0.2.1"])
    _ = try scene.answer("www.example.com", .aaaa)
    #expect(provider.asked.count == 3)
  }

  @Test(arguments: [(RecordType.a, RecordType.aaaa), (.aaaa, .a)])
  func `NXDOMAIN for one family is NODATA if addresses of the other are cached`(
    kept: RecordType, missing: RecordType
  ) throws {
    let address = kept == .a ? "192.0.2.1" : "2001:db8::1"
    let provider = provider(["www.example.com. \(kept)": .addresses(name("www.example.com"), address)])
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("www.example.com", kept)
    let message = try scene.answer("www.example.com", missing)
    #expect(message.responseCode == .noError)
    #expect(message.answers.isEmpty)
    #expect(message.authorities.map(\.type) == [.soa])
    #expect(try scene.answer("www.example.com", kept).addresses == [address])
    #expect(provider.asked.count == 2)
    // Of another type it may be said.
    #expect(try scene.answer("www.example.com", .mx).responseCode == .nxDomain)
  }

  @Test func `cached addresses of another route do not affect NXDOMAIN`() throws {
    let provider = provider(["www.example.com. A": .addresses(name("www.example.com"), "192.0.2.1")])
    let scene = ResolverScene(on: loop, [provider]) { $0.routes.append($0.routes[0]) }
    _ = try scene.answer("www.example.com")
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .aaaa)
    let answer = loop.run { [resolver = scene.resolver] in
      await resolver.resolve(question, route: Route.Number.firstRule, fresh: true)
    }
    #expect(answer.response.responseCode == .nxDomain)
  }

  @Test func `a positive answer takes the place of a negative one`() throws {
    let www = name("www.example.com")
    let provider = ScriptedUpstream(on: loop) { [zone] question, index in
      index == 0 ? .answer(.negative(.nxDomain, zone: zone)) : .answer(.addresses(question.name, "192.0.2.1"))
    }
    let scene = ResolverScene(on: loop, [provider])
    #expect(try scene.answer("www.example.com").responseCode == .nxDomain)
    let question = HTTPDNSQuestion(name: www, type: .a)
    _ = loop.run { [resolver = scene.resolver] in await resolver.resolve(question, route: 0, fresh: true) }
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    // NXDOMAIN is gone for the other types, too.
    #expect(try scene.answer("www.example.com", .mx).responseCode == .noError)
    #expect(provider.asked.count == 3)
  }

  @Test func `NXDOMAIN replaces a cached answer`() throws {
    let provider = ScriptedUpstream(on: loop) { [zone] question, index in
      index == 0 ? .answer(.addresses(question.name, "192.0.2.1")) : .answer(.negative(.nxDomain, zone: zone))
    }
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("www.example.com")
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
    _ = loop.run { [resolver = scene.resolver] in await resolver.resolve(question, route: 0, fresh: true) }
    #expect(try scene.answer("www.example.com").responseCode == .nxDomain)
    #expect(provider.asked.count == 2)
  }

  @Test func `without a cache nothing is stored, and equal questions still share a request`() throws {
    let provider = provider(["www.example.com. A": .addresses(name("www.example.com"), "192.0.2.1")])
    let scene = ResolverScene(on: loop, [provider]) { $0.cache.isEnabled = false }
    scene.ask("www.example.com", client: 1)
    scene.ask("www.example.com", client: 2)
    loop.advance(by: .seconds(1))
    #expect(provider.asked.count == 1)
    _ = try scene.answer("www.example.com")
    #expect(provider.asked.count == 2)
    #expect(scene.cache.usage.entries == 0)
  }

  @Test func `an answer too long for UDP is cached whole and sent truncated`() throws {
    let www = name("www.example.com")
    let texts = (1...120).map { "192.0.2.\($0)" }
    let answer = HTTPDNSAnswer(
      responseCode: .noError,
      answers: texts.map { ResourceRecord(owner: www, type: .a, ttl: 300, rdata: IPAddress(text: $0)!.octets) })
    let provider = provider(["www.example.com. A": answer])
    let scene = ResolverScene(on: loop, [provider])
    for _ in 0..<2 {
      let message = try scene.answer("www.example.com")
      #expect(message.header.tc)
      #expect(message.answers == Array(answer.answers.prefix(message.answers.count)) && message.answers.count > 20)
      #expect(message.edns != nil)
    }
    #expect(provider.asked.count == 1)
    let resolved = loop.run { [resolver = scene.resolver] in
      await resolver.resolve(HTTPDNSQuestion(name: www, type: .a), route: 0, fresh: false)
    }
    #expect(resolved.response.answers == 120)
    #expect(resolved.source == .cache)
  }
}
