// ConfinedAnswerTests.swift -- the network's resolver speaks of the names that were asked, and of its own.

import DNSWire
import EventLoop
import HTTPDNS
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `An alias that the network's resolver gives` {
  let loop = SimulatedLoop()
  let bank = name("www.bank.example")

  /// LocalDNS that says of each name that it is an alias of each next one, and of the last that it has an address, or none.
  private func local(_ targets: DomainName..., code: ResponseCode? = nil) -> ScriptedLocalDNS {
    ScriptedLocalDNS(on: loop) { question, _ in
      var owner = question.name
      var links: [ResourceRecord] = []
      for (number, target) in targets.enumerated() {
        links.append(.alias(owner, target, ttl: UInt32(100 + number)))
        owner = target
      }
      var answer = HTTPDNSAnswer.addresses(owner, "10.6.6.6")
      if let code { answer = .negative(code, zone: owner) }
      answer.answers = links + answer.answers
      return .answer(answer)
    }
  }

  private func denier() -> ScriptedUpstream {
    ScriptedUpstream(on: loop) { _, _ in .answer(.negative(.nxDomain, zone: name("example"))) }
  }

  private func owners(_ message: Message) -> [String] {
    (message.answers + message.authorities).map { "\($0.owner) \($0.type)" }
  }

  @Test(arguments: ["wpad", "wpad.lan", "web.corp.example", "connectivity-check.ubuntu.com", "a.rule.example"])
  func `the network's alias to a public name brings no address of it`(asked: String) throws {
    let rules = [RouteRule(names: [.subtree(name("rule.example"))], action: .route(Route.Number.firstRule))]
    let scene = ResolverScene(
      on: loop, [denier()], local: local(bank), rules: rules, searchDomains: ["corp.example"]
    ) { settings in settings.routes.append(settings.routes[1]) }
    let message = try scene.answer(asked)
    #expect(owners(message) == ["\(asked). A"])
    #expect(message.addresses == ["10.6.6.6"])
    #expect(message.answers[0].ttl <= 100)
    // Nor from the cache.
    #expect(owners(try scene.answer(asked)) == ["\(asked). A"])
  }

  @Test(arguments: [ResponseCode.nxDomain, .noError])
  func `the network's alias to a public name does not make that name NXDOMAIN`(code: ResponseCode) throws {
    let scene = ResolverScene(on: loop, [denier()], local: local(bank, code: code))
    let message = try scene.answer("wpad")
    #expect(message.responseCode == .noError)
    #expect(owners(message) == ["wpad. SOA"])
  }

  @Test func `the network's alias stays whole while it leads to names of the network`() throws {
    let scene = ResolverScene(on: loop, [denier()], local: local(name("a.lan"), name("b.home.arpa"), bank))
    #expect(owners(try scene.answer("nas")) == ["nas. CNAME", "a.lan. CNAME", "b.home.arpa. A"])
    let inside = ResolverScene(on: loop, [denier()], local: local(name("a.lan"), code: .nxDomain))
    let message = try inside.answer("nas")
    #expect(message.responseCode == .nxDomain)
    #expect(owners(message) == ["nas. CNAME", "a.lan. SOA"])
  }

  @Test func `the network's alias stays whole within a rule that is for some clients`() throws {
    let rule = RouteRule(
      names: [.subtree(name("rule.example"))], clients: [IPPrefix(text: "10.0.0.0/8")!],
      action: .route(Route.Number.firstRule))
    let scene = ResolverScene(on: loop, [denier()], local: local(name("b.rule.example"), bank), rules: [rule]) {
      $0.routes.append($0.routes[1])
    }
    #expect(owners(try scene.answer("a.rule.example")) == ["a.rule.example. CNAME", "b.rule.example. A"])
  }

  @Test func `below a search domain the network answers only for names that are NXDOMAIN at the providers`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(
        question.name == name("web.corp.example") ? .negative(.nxDomain) : .addresses(question.name, "192.0.2.1"))
    }
    let scene = ResolverScene(
      on: loop, [provider], local: local(name("www.corp.example")), searchDomains: ["corp.example"])
    #expect(owners(try scene.answer("web.corp.example")) == ["web.corp.example. A"])
    #expect(try scene.answer("www.corp.example").addresses == ["192.0.2.1"])
  }

  @Test func `LocalDNS's alias in a provider's place is unchanged`() throws {
    let failing = ScriptedUpstream(on: loop) { _, _ in .failure() }
    let scene = ResolverScene(on: loop, [failing], local: local(bank))
    #expect(owners(try scene.answer("www.example.com")) == ["www.example.com. CNAME", "www.bank.example. A"])
  }

  @Test func `a query for CNAME gets the network's alias`() throws {
    let alias = ResourceRecord.alias(name("wpad"), bank, ttl: 60)
    let local = ScriptedLocalDNS(on: loop) { _, _ in
      .answer(HTTPDNSAnswer(responseCode: .noError, answers: [alias]))
    }
    let scene = ResolverScene(on: loop, [], local: local)
    let question = HTTPDNSQuestion(name: name("wpad"), type: .cname)
    let answer = loop.run { [resolver = scene.resolver] in
      await resolver.resolve(question, route: Route.Number.network, fresh: true)
    }
    #expect(answer.response.message(to: Question(name: name("wpad"), type: .cname))?.answers == [alias])
  }

  @Test func `a confined alias loses the signatures of its target, and every DNAME`() {
    func signature(_ owner: DomainName, _ type: RecordType) -> ResourceRecord {
      ResourceRecord(
        owner: owner, type: .rrsig, ttl: 300, rdata: [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 8, 2])
    }
    let (asked, own) = (name("a.lan"), name("b.lan"))
    let redirection = ResourceRecord(owner: name("lan"), type: .dname, ttl: 300, rdata: own.octets)
    var answer = HTTPDNSAnswer(responseCode: .noError, isAuthenticated: true)
    answer.answers =
      [redirection, signature(name("lan"), .dname), .alias(asked, own, ttl: 60), signature(asked, .cname)]
      + [.alias(own, bank, ttl: 50), signature(own, .cname), signature(bank, .a)]
      + HTTPDNSAnswer.addresses(bank, "10.6.6.6", "10.6.6.7").answers
    let confined = answer.confined(to: HTTPDNSQuestion(name: asked, type: .a, dnssecOK: true)) { $0 == own }
    #expect(!confined.isAuthenticated)
    #expect(
      confined.answers == [.alias(asked, own, ttl: 60), signature(asked, .cname)]
        + HTTPDNSAnswer.addresses(own, "10.6.6.6", "10.6.6.7", ttl: 50).answers)
  }
}
