// ResolverDistrustTests.swift -- a network's answers end when they should, and its NXDOMAIN does not cover names below.

import Configuration
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

@Suite struct `The network's word` {
  let loop = SimulatedLoop()

  /// LocalDNS that answers NXDOMAIN for the names of `hidden` and has addresses for all others.
  private func local(hiding hidden: String...) -> ScriptedLocalDNS {
    let names = hidden.map { name($0) }
    return ScriptedLocalDNS(on: loop) { question, _ in
      .answer(
        names.contains(question.name) ? .negative(.nxDomain, zone: .root) : .addresses(question.name, "10.0.0.1"))
    }
  }

  private func denier() -> ScriptedUpstream {
    ScriptedUpstream(on: loop) { _, _ in .answer(.negative(.nxDomain, zone: name("example"))) }
  }

  @Test func `NXDOMAIN for internal does not cover web.internal`() throws {
    let local = local(hiding: "internal", "a.internal", "10.in-addr.arpa", "lan")
    let scene = ResolverScene(on: loop, [denier()], local: local)
    for above in ["internal", "a.internal", "lan", "10.in-addr.arpa"] {
      #expect(try scene.answer(above).responseCode == .nxDomain)
      #expect(try scene.answer("web.\(above)").addresses == ["10.0.0.1"])
    }
  }

  @Test func `NXDOMAIN from a rule's resolvers or from LocalDNS does not cover names below`() throws {
    let local = local(hiding: "corp.example", "gone.example.com")
    let failing = ScriptedUpstream(on: loop) { _, _ in .failure() }
    let rules = [RouteRule(names: [.subtree(name("corp.example"))], action: .route(Route.Number.firstRule))]
    let scene = ResolverScene(on: loop, [failing], local: local, rules: rules) { settings in
      var route = settings.routes[0]
      route.providers = []
      settings.routes.append(route)
    }
    for above in ["corp.example", "gone.example.com"] {
      #expect(try scene.answer(above).responseCode == .nxDomain)
      #expect(try scene.answer("a.\(above)").addresses == ["10.0.0.1"])
    }
  }

  @Test func `a provider's NXDOMAIN for a top-level domain does not cover names below`() throws {
    let provider = denier()
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("com", .mx)
    _ = try scene.answer("www.com")
    #expect(provider.asked.count == 2)
  }

  @Test(arguments: [RecordType.a, .aaaa])
  func `NXDOMAIN does not cover names below a name with cached addresses`(kept: RecordType) throws {
    let www = name("www.gone.example.com")
    let provider = ScriptedUpstream(on: loop) { question, _ in
      guard question.name == www else { return .answer(.negative(.nxDomain, zone: name("example.com"))) }
      return .answer(
        question.type == kept ? .addresses(www, kept == .a ? "192.0.2.1" : "2001:db8::1") : .negative(.noError))
    }
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("www.gone.example.com", kept)
    #expect(try scene.answer("gone.example.com").responseCode == .nxDomain)
    #expect(try scene.answer("www.gone.example.com", kept == .a ? .aaaa : .a).responseCode == .noError)
  }

  @Test func `NXDOMAIN does not cover names below an empty non-terminal`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(
        question.name == name("ent.example.com")
          ? .negative(.nxDomain, zone: name("example.com")) : .addresses(question.name, "192.0.2.1", ttl: 10))
    }
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("a.ent.example.com")
    _ = try scene.answer("ent.example.com")
    #expect(try scene.answer("b.c.ent.example.com").addresses == ["192.0.2.1"])
    // Also when that has expired.
    loop.advance(by: .seconds(600))
    _ = try scene.answer("ent.example.com")
    #expect(try scene.answer("d.ent.example.com").addresses == ["192.0.2.1"])
  }

  /// A provider that denies `ent.example.com`, and says of all other names what `answer` does.
  private func forgetful(_ answer: @escaping (DomainName) -> HTTPDNSAnswer) -> ScriptedUpstream {
    ScriptedUpstream(on: loop) { question, _ in
      .answer(
        question.name == name("ent.example.com")
          ? .negative(.nxDomain, zone: name("example.com")) : answer(question.name))
    }
  }

  @Test func `NXDOMAIN does not cover names below if one has NODATA, an alias or a subnet's answer`() throws {
    let target = name("gone.example.net")
    let alias: (DomainName) -> HTTPDNSAnswer = {
      var answer = HTTPDNSAnswer.negative(.nxDomain, zone: name("example.net"))
      answer.answers = [.alias($0, target, ttl: 10)]
      return answer
    }
    var scoped = HTTPDNSAnswer.addresses(name("a.ent.example.com"), "192.0.2.1", ttl: 10)
    scoped.scopePrefixLength = 24
    let answers = [{ _ in .negative(.noError, zone: name("example.com")) }, alias, { _ in scoped }]
    for answer in answers {
      let provider = forgetful(answer)
      provider.traits.clientSubnet = .fromClient
      let scene = ResolverScene(on: loop, [provider])
      var first = ClientQuestion(name: "a.ent.example.com")
      first.subnet = IPPrefix(text: "203.0.7.0/24")
      _ = try scene.answer(first)
      _ = try scene.answer("ent.example.com")
      provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.2")) }
      #expect(try scene.answer("b.ent.example.com").addresses == ["192.0.2.2"])
    }
  }

  @Test func `NXDOMAIN does not cover names below if the cache file had one`() throws {
    let provider = forgetful { .addresses($0, "192.0.2.1", ttl: 10) }
    let before = ResolverScene(on: loop, [provider]) { $0.setStale(.tested(.onFailure)) }
    _ = try before.answer("a.ent.example.com")
    loop.advance(by: .seconds(60))
    let scene = ResolverScene(on: loop, [provider])
    before.cache.forEachRecord(now: loop.now.nanoseconds) { record in
      scene.cache.restore(record, route: 0, now: loop.now.nanoseconds) == .stored
    }
    #expect(scene.cache.usage.entries == 1)
    loop.run { [resolver = scene.resolver] in await resolver.console { await $0.learnNames() } }
    _ = try scene.answer("ent.example.com")
    #expect(try scene.answer("b.ent.example.com").addresses == ["192.0.2.1"])
  }

  @Test func `NXDOMAIN does not cover names below while the cache file is loading`() throws {
    let provider = forgetful { .addresses($0, "192.0.2.1", ttl: 10) }
    let scene = ResolverScene(on: loop, [provider])
    scene.resolver.assumeIsolated { $0.expectNames() }
    _ = try scene.answer("ent.example.com")
    #expect(try scene.answer("b.ent.example.com").addresses == ["192.0.2.1"])
    // What came meanwhile counts as well.
    loop.run { [resolver = scene.resolver] in await resolver.console { await $0.learnNames() } }
    #expect(try scene.answer("c.ent.example.com").addresses == ["192.0.2.1"])
  }

  @Test func `NXDOMAIN covers names below unless the table of known names is full`() {
    var table = NamesBelow()
    let scope = CacheScope(type: 1, dnssecOK: false, checkingDisabled: false, route: 0, network: 0)
    let quiet = name("quiet.example")
    #expect(!table.hasNames(below: quiet, scope, now: loop.now))
    for number in 0..<50_000 { table.note(name("www.n\(number).example"), scope, until: loop.now) }
    for number in 0..<50_000 {
      #expect(table.hasNames(below: name("n\(number).example"), scope, now: loop.now))
    }
    #expect(!table.hasNames(below: quiet, scope, now: loop.now + .seconds(3602)))
  }

  @Test(arguments: [Configuration.Stale.onFailure, .immediate])
  func `LocalDNS's answer in a provider's place ends with its TTL`(mode: Configuration.Stale) throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure() }
    let local = local()
    let scene = ResolverScene(on: loop, [provider], local: local) {
      $0.setStale(.tested(mode, isImmutable: mode == .immediate))
    }
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
    loop.advance(by: .seconds(61))
    local.script = { _, _ in .failure() }
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    // The provider is well again: what the network said is not given first.
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    loop.advance(by: .seconds(600))
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
  }

  @Test func `LocalDNS's answer becomes stale data on a route to LocalDNS`() throws {
    let local = local()
    let scene = ResolverScene(on: loop, [denier()], local: local) { $0.setStale(.tested(.onFailure)) }
    _ = try scene.answer("nas.lan")
    loop.advance(by: .seconds(301))
    local.script = { _, _ in .failure() }
    #expect(try scene.answer("nas.lan").addresses == ["10.0.0.1"])
  }
}
