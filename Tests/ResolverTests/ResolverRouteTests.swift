// ResolverRouteTests.swift -- who is asked about what: unserved types, empty answers, names of the network, portals.

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

@Suite struct ResolverRouteTests {
  let loop = SimulatedLoop()

  private func provider(
    _ label: String, unserved: Set<RecordType> = [], _ script: @escaping ScriptedUpstream.Script
  ) -> ScriptedUpstream {
    let upstream = ScriptedUpstream(label, on: loop, script)
    upstream.unserved = unserved
    return upstream
  }

  private func answering(_ text: String, ttl: UInt32 = 300) -> ScriptedUpstream.Script {
    { question, _ in .answer(.addresses(question.name, text, ttl: ttl)) }
  }

  @Test func `a type that a provider cannot serve goes to the next one`() throws {
    let first = provider("first", unserved: [.https]) { _, _ in .failure() }
    let second = provider("second") { question, _ in
      .answer(
        HTTPDNSAnswer(
          responseCode: .noError,
          answers: [ResourceRecord(owner: question.name, type: .https, ttl: 300, rdata: [0, 1, 0])]))
    }
    let scene = ResolverScene(on: loop, [first, second])
    #expect(try scene.answer("www.example.com", .https).answers.map(\.type) == [.https])
    #expect(first.asked.isEmpty)
    #expect(scene.toldFailures.isEmpty)
  }

  @Test func `a name of the hosts file is never NXDOMAIN, and its data comes through`() throws {
    let hosts = Route.Number.firstRule
    let provider = provider("first") { question, _ in
      question.type == .txt
        ? .answer(
          HTTPDNSAnswer(
            responseCode: .noError,
            answers: [ResourceRecord(owner: question.name, type: .txt, ttl: 300, rdata: [1, 97])]))
        : .answer(.negative(.nxDomain, zone: name("example")))
    }
    let scene = ResolverScene(
      on: loop, [provider], rules: [RouteRule(names: [.exact(name("box.example"))], action: .route(hosts))]
    ) { settings in
      var route = settings.routes[0]
      route.hostsNamesOf = 0
      settings.routes.append(route)
    }
    // The zone above does not exist for the provider, which covers the names below on the usual route.
    #expect(try scene.answer("example", .mx).responseCode == .nxDomain)
    #expect(try scene.answer("other.example", .mx).responseCode == .nxDomain)
    for _ in 0..<2 {
      let answer = try scene.answer("box.example", .mx)
      #expect(answer.responseCode == .noError)
      #expect(answer.answers.isEmpty)
      #expect(answer.authorities.map(\.type) == [.soa])
      #expect(answer.authorities.allSatisfy { $0.ttl <= 30 })
      #expect(try scene.answer("box.example", .txt).answers.count == 1)
    }
    // Each was asked once, and is cached by its type.
    #expect(provider.asked.count { $0.question.name == name("box.example") } == 2)
  }

  @Test func `a type that no provider serves goes to LocalDNS at once`() throws {
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(HTTPDNSAnswer(responseCode: .noError, answers: [.alias(question.name, name("a.example"), ttl: 300)]))
    }
    let scene = ResolverScene(on: loop, [provider("first", unserved: [.cname], answering("192.0.2.1"))], local: local)
    let number = scene.ask("www.example.com", .cname)
    loop.advance(by: .seconds(1))
    #expect(try scene.reply(number).message.answers.map(\.ttl) == [60])
    #expect(try scene.reply(number).after == .milliseconds(20))
  }

  @Test(arguments: [RecordType.https, .svcb])
  func `SVCB and HTTPS are not asked of the network's resolver`(type: RecordType) throws {
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(
        HTTPDNSAnswer(
          responseCode: .noError,
          answers: [ResourceRecord(owner: question.name, type: type, ttl: 300, rdata: [0, 0, 1, 97, 0])]))
    }
    let first = provider("first", unserved: [type], answering("192.0.2.1"))
    let message = try ResolverScene(on: loop, [first], local: local).answer("www.example.com", type)
    #expect(message.responseCode == .noError && message.answers.isEmpty && message.extendedError == .notSupported)
    #expect(local.asked.isEmpty)
  }

  @Test(arguments: [true, false])
  func `a type that no upstream serves is NODATA with the reason`(hasLocal: Bool) throws {
    let local = ScriptedLocalDNS(on: loop) { _, _ in .failure() }
    local.isThere = hasLocal
    let first = provider("first", unserved: [.txt], answering("192.0.2.1"))
    let message = try ResolverScene(on: loop, [first], local: local).answer("www.example.com", .txt)
    #expect(message.responseCode == .noError)
    #expect(message.answers.isEmpty)
    #expect(message.authorities.map(\.type) == [.soa])
    #expect(message.extendedError == .notSupported)
    #expect(local.asked.count == (hasLocal ? 1 : 0))
  }

  @Test func `unreadable data is SERVFAIL with the last reason if LocalDNS fails as well`() throws {
    let slow = provider("slow") { _, _ in .failure(.notSupported, .nextUpstream, after: .milliseconds(1500)) }
    for latency in [100, 1200] {
      let local = ScriptedLocalDNS(on: loop) { _, _ in .failure(after: .milliseconds(latency)) }
      let message = try ResolverScene(on: loop, [slow], local: local).answer("www.example.com", .https)
      #expect(message.responseCode == .servFail)
      #expect(message.extendedError == (latency == 100 ? .notSupported : .networkError))
    }
  }

  @Test func `an empty answer that may mean anything sends the question on`() throws {
    var empty = HTTPDNSAnswer.negative(.noError)
    empty.isEmptyAmbiguous = true
    let first = provider("first") { [empty] _, _ in .answer(empty) }
    let second = provider("second", answering("192.0.2.2"))
    #expect(try ResolverScene(on: loop, [first, second]).answer("www.example.com").addresses == ["192.0.2.2"])
    let local = ScriptedLocalDNS(on: loop, answering("198.51.100.1"))
    #expect(try ResolverScene(on: loop, [first], local: local).answer("www.example.com").addresses == ["198.51.100.1"])
    let alone = try ResolverScene(on: loop, [first]).answer("www.example.com")
    #expect(alone.responseCode == .noError)
    #expect(alone.answers.isEmpty)
    let failing = provider("second") { _, _ in .failure() }
    #expect(try ResolverScene(on: loop, [first, failing]).answer("www.example.com").responseCode == .noError)
  }

  @Test(arguments: [100, 1200])
  func `an empty answer is served if LocalDNS beside the provider fails`(latency: Int) throws {
    var empty = HTTPDNSAnswer.negative(.noError)
    empty.isEmptyAmbiguous = true
    let slow = provider("slow") { [empty] _, _ in .answer(empty, after: .milliseconds(1500)) }
    let local = ScriptedLocalDNS(on: loop) { _, _ in .failure(after: .milliseconds(latency)) }
    let message = try ResolverScene(on: loop, [slow], local: local).answer("www.example.com")
    #expect(message.responseCode == .noError)
    #expect(local.asked.count == 1)
  }

  /// LocalDNS is asked after a second, and answers after the provider or before it.
  @Test(arguments: [900, 100])
  func `an empty answer gives way to LocalDNS's, asked beside the provider`(latency: Int) throws {
    var empty = HTTPDNSAnswer.negative(.noError)
    empty.isEmptyAmbiguous = true
    let slow = provider("slow") { [empty] _, _ in .answer(empty, after: .milliseconds(1200)) }
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "198.51.100.1"), after: .milliseconds(latency))
    }
    let scene = ResolverScene(on: loop, [slow], local: local)
    #expect(try scene.answer("www.example.com").addresses == ["198.51.100.1"])
  }

  @Test(arguments: ["printer", "host.home.arpa", "db.internal", "1.1.168.192.in-addr.arpa"])
  func `names of the network never go to a provider`(text: String) throws {
    let provider = provider("first", answering("192.0.2.1"))
    let local = ScriptedLocalDNS(on: loop, answering("192.168.1.7"))
    let scene = ResolverScene(on: loop, [provider], local: local) {
      $0.rebindFilter = RebindFilter(allowed: [])
    }
    #expect(try scene.answer(text).addresses == ["192.168.1.7"])
    #expect(try scene.answer(text).answers[0].ttl > 60)
    #expect(local.asked.count == 1)
    local.isThere = false
    loop.advance(by: .seconds(3600))
    let message = try scene.answer(text)
    #expect(message.responseCode == .nxDomain)
    #expect(message.authorities.map(\.type) == [.soa])
    local.isThere = true
    local.script = { _, _ in .failure() }
    loop.advance(by: .seconds(60))
    #expect(try scene.answer(text).responseCode == .servFail)
    #expect(provider.asked.isEmpty)
  }

  @Test func `names of the network are NXDOMAIN without LocalDNS`() throws {
    let provider = provider("first", answering("192.0.2.1"))
    let scene = ResolverScene(on: loop, [provider])
    #expect(try scene.answer("printer").responseCode == .nxDomain)
    #expect(try scene.answer("db.internal", .aaaa).responseCode == .nxDomain)
    #expect(provider.asked.isEmpty)
    // And everything else works.
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(try scene.answer("com", .ds).responseCode == .noError)
  }

  @Test func `a portal's probe name is asked of LocalDNS, and its answer lasts ten seconds at most`() throws {
    let provider = provider("first", answering("192.0.2.1"))
    let local = ScriptedLocalDNS(on: loop, answering("192.168.1.1"))
    let scene = ResolverScene(on: loop, [provider], local: local)
    #expect(try scene.answer("captive.apple.com").answers.map(\.ttl) == [10])
    loop.advance(by: .seconds(10))
    _ = try scene.answer("captive.apple.com")
    #expect(local.asked.count == 2)
    #expect(provider.asked.isEmpty)
  }

  @Test(arguments: ["192.168.1.1", nil]) func `a router's page is the network's, or the provider's`(own: String?) throws
  {
    let provider = provider("first", answering("192.0.2.1"))
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      own.map { .answer(.addresses(question.name, $0, ttl: 300)) } ?? .answer(.negative(.nxDomain))
    }
    let scene = ResolverScene(on: loop, [provider], local: local)
    let answer = try scene.answer("fritz.box")
    #expect(answer.addresses == [own ?? "192.0.2.1"])
    #expect(answer.answers.map(\.ttl) == [own == nil ? 300 : 60])
    #expect(local.asked.count == 1)
    #expect(provider.asked.count == (own == nil ? 1 : 0))
  }

  @Test func `a router's page is the provider's if the network's resolver does not answer`() throws {
    let local = ScriptedLocalDNS(on: loop) { _, _ in .failure() }
    let scene = ResolverScene(on: loop, [provider("first", answering("192.0.2.1"))], local: local)
    #expect(try scene.answer("www.fritz.box").addresses == ["192.0.2.1"])
  }

  @Test func `a route without fallback does not ask LocalDNS, however slow its provider is`() throws {
    let local = ScriptedLocalDNS(on: loop, answering("198.51.100.1"))
    let scene = ResolverScene(on: loop, [provider("first") { _, _ in .silence }], local: local) {
      $0.routes[0].fallsBack = false
    }
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    #expect(local.asked.isEmpty)
  }

  @Test func `the bounds on TTLs are those of the rule`() throws {
    let rules: [RouteRule] = [
      .init(names: [.subtree(name("long.example"))], action: .route(Route.Number.firstRule)),
      .init(names: [.subtree(name("short.example"))], action: .route(Route.Number.firstRule + 1)),
    ]
    let scene = ResolverScene(on: loop, [provider("first", answering("192.0.2.1", ttl: 500))], rules: rules) {
      settings in
      var long = settings.routes[0]
      long.ttl.lowest = 900
      var short = settings.routes[0]
      short.ttl.highest = 30
      settings.routes += [long, short]
    }
    #expect(try scene.answer("www.long.example").answers.map(\.ttl) == [900])
    #expect(try scene.answer("www.short.example").answers.map(\.ttl) == [30])
    #expect(try scene.answer("www.example.com").answers.map(\.ttl) == [500])
  }

  @Test func `a private address of a public name is filtered, unless a rule routes the name`() throws {
    let rules: [RouteRule] = [.init(names: [.subtree(name("corp.example"))], action: .route(Route.Number.firstRule))]
    let provider = provider("first", answering("192.168.1.1"))
    let local = ScriptedLocalDNS(on: loop, answering("10.1.1.1"))
    let scene = ResolverScene(on: loop, [provider], local: local, rules: rules) { settings in
      settings.rebindFilter = RebindFilter(allowed: [.subtree(name("allowed.example"))])
      var route = settings.routes[0]
      route.providers = []
      route.filtersPrivate = false
      settings.routes.append(route)
    }
    let filtered = try scene.answer("www.example.com")
    #expect(filtered.responseCode == .noError)
    #expect(filtered.answers.isEmpty)
    #expect(filtered.extendedError == .filtered)
    #expect(try scene.answer("www.allowed.example").addresses == ["192.168.1.1"])
    #expect(try scene.answer("www.corp.example").addresses == ["10.1.1.1"])
  }

  @Test func `AD is passed on for a provider that is trusted, to a client that asks for it`() throws {
    var validated = HTTPDNSAnswer.addresses(name("www.example.com"), "192.0.2.1")
    validated.isAuthenticated = true
    for isTrusted in [true, false] {
      let first = provider("first") { [validated] _, _ in .answer(validated) }
      first.traits.trustsAD = isTrusted
      let scene = ResolverScene(on: loop, [first])
      let cold = ClientQuestion(name: "www.example.com", wantsAD: true)
      #expect(try scene.answer(cold).header.ad == isTrusted)
      #expect(try scene.answer(cold).header.ad == isTrusted)
      #expect(try !scene.answer("www.example.com").header.ad)
      let local = ScriptedLocalDNS(on: loop) { [validated] _, _ in .answer(validated) }
      first.script = { _, _ in .failure() }
      #expect(try !ResolverScene(on: loop, [first], local: local).answer(cold).header.ad)
    }
  }
}
