// ResolverDistrustTests.swift -- a network's word ends when it should, and its denials deny nothing below them.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Routing
import TestSupport
import Testing

@testable import Forwarder

@Suite struct `The network's word` {
  let loop = SimulatedLoop()

  /// LocalDNS that denies the names of `denied` and has addresses for all others.
  private func local(denying denied: String...) -> ScriptedLocalDNS {
    let names = denied.map { name($0) }
    return ScriptedLocalDNS(on: loop) { question, _ in
      .answer(
        names.contains(question.name) ? .negative(.nxDomain, zone: .root) : .addresses(question.name, "10.0.0.1"))
    }
  }

  private func denier() -> ScriptedUpstream {
    ScriptedUpstream(on: loop) { _, _ in .answer(.negative(.nxDomain, zone: name("example"))) }
  }

  @Test func `one query for internal does not deny web.internal`() throws {
    let local = local(denying: "internal", "a.internal", "10.in-addr.arpa", "lan")
    let scene = ResolverScene(on: loop, [denier()], local: local)
    for above in ["internal", "a.internal", "lan", "10.in-addr.arpa"] {
      #expect(try scene.answer(above).responseCode == .nxDomain)
      #expect(try scene.answer("web.\(above)").addresses == ["10.0.0.1"])
    }
  }

  @Test func `a denial by a rule's resolvers, or by LocalDNS in a provider's place, denies nothing below`() throws {
    let local = local(denying: "corp.example", "gone.example.com")
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

  @Test func `a provider's denial of a top level domain denies nothing below`() throws {
    let provider = denier()
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("com", .mx)
    _ = try scene.answer("www.com")
    #expect(provider.asked.count == 2)
  }

  @Test(arguments: [RecordType.a, .aaaa])
  func `nor where the name itself is kept with addresses`(kept: RecordType) throws {
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

  @Test func `nor where something else below it is known: the name is an empty one between`() throws {
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

  @Test(arguments: [StalePolicy.Mode.onFailure, .immediate])
  func `ends with its TTL when it came in a provider's place`(mode: StalePolicy.Mode) throws {
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

  @Test func `is stale data like any other where LocalDNS is whom to ask`() throws {
    let local = local()
    let scene = ResolverScene(on: loop, [denier()], local: local) { $0.setStale(.tested(.onFailure)) }
    _ = try scene.answer("nas.lan")
    loop.advance(by: .seconds(301))
    local.script = { _, _ in .failure() }
    #expect(try scene.answer("nas.lan").addresses == ["10.0.0.1"])
  }
}
