// ResolverImmediateTests.swift -- stale data at once, refreshed behind the client's back, and data that never expires.

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

@Suite struct `Stale data at once` {
  @Test func `immediate stale data comes from the hot path, and the refreshed answer next`() throws {
    let stale = StaleScene(.tested(.immediate))
    try stale.keep()
    stale.providerNow(has: "192.0.2.2", after: .milliseconds(300))
    for _ in 0..<5 {
      let number = stale.scene.ask("www.example.com")
      expectStale(try stale.scene.reply(number).message)
      #expect(try stale.scene.reply(number).after == .zero)
      #expect(stale.scene.inFlight == 1)
      stale.loop.advance(by: .milliseconds(50))
    }
    stale.loop.advance(by: .seconds(1))
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
    #expect(stale.provider.count == 2)
    #expect(stale.scene.queries.inUse == 0)
    #expect(stale.scene.inFlight == 0)
  }

  @Test func `immediate stale data causes a refresh every half minute until one succeeds`() throws {
    let stale = StaleScene(.tested(.immediate))
    try stale.keep()
    stale.providerNow { _ in .failure(after: .zero) }
    for second in 0..<90 {
      expectStale(try stale.scene.answer("www.example.com"))
      #expect(stale.provider.count == 2 + second / 30)
      stale.loop.advance(by: .seconds(1))
    }
    stale.providerNow(has: "192.0.2.2")
    expectStale(try stale.scene.answer("www.example.com"))
    stale.loop.advance(by: .seconds(1))
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
    #expect(stale.scene.counters.failures == 0)
  }

  @Test func `the refresh of immediate stale data asks LocalDNS if the provider fails`() throws {
    let stale = StaleScene(.tested(.immediate), hasLocal: true)
    try stale.keep()
    stale.providerNow { _ in .failure() }
    expectStale(try stale.reply().message)
    expectFresh(try stale.scene.answer("www.example.com"), ["198.51.100.1"])
  }

  @Test func `immediate stale data is never negative`() throws {
    let stale = StaleScene(.tested(.immediate))
    for code in [ResponseCode.nxDomain, .noError] {
      stale.providerNow { _ in .answer(.negative(code, zone: name("example.com"))) }
      _ = try stale.scene.answer("\(code).example.com")
      stale.loop.advance(by: .seconds(31))
      stale.providerNow(has: "192.0.2.2")
      expectFresh(try stale.scene.answer("\(code).example.com"), ["192.0.2.2"])
    }
  }

  @Test func `immediate stale data is no older than stale_max_age`() throws {
    let stale = StaleScene(.tested(.immediate, maxAge: 100))
    try stale.keep(thenWait: 159)
    stale.providerNow { _ in .failure() }
    expectStale(try stale.scene.answer("www.example.com"))
    stale.loop.advance(by: .seconds(1))
    #expect(try stale.scene.answer("www.example.com").responseCode == .servFail)
  }

  @Test func `immediate stale data is refreshed for its own DO, CD and subnet`() throws {
    let loop = SimulatedLoop()
    let provider = ScriptedUpstream(on: loop) { question, _ in
      var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.1", ttl: 60)
      answer.scopePrefixLength = 24
      return .answer(answer)
    }
    provider.traits.clientSubnet = .fromClient
    let scene = ResolverScene(on: loop, [provider]) { $0.setStale(.tested(.immediate)) }
    var question = ClientQuestion(name: "www.example.com")
    question.dnssecOK = true
    question.checkingDisabled = true
    question.subnet = IPPrefix(text: "203.0.7.0/24")
    _ = try scene.answer(question)
    loop.advance(by: .seconds(61))
    expectStale(try scene.answer(question))
    loop.advance(by: .seconds(1))
    expectFresh(try scene.answer(question), ["192.0.2.1"])
    #expect(provider.asked.map(\.question) == [provider.asked[0].question, provider.asked[0].question])
  }
}

@Suite struct `An immutable entry` {
  private let immutable = StalePolicy.tested(.off, isImmutable: true)

  @Test func `an immutable entry is served forever, without a refresh and without EDE`() throws {
    let stale = StaleScene(immutable)
    let first = try stale.scene.answer("www.example.com")
    #expect(first.answers.map(\.ttl) == [60])
    stale.loop.advance(by: .seconds(45))
    #expect(try stale.scene.answer("www.example.com").answers.map(\.ttl) == [15])
    stale.providerNow(has: "192.0.2.2")
    for days in [1, 1, 30, 365] {
      let message = try stale.scene.answer("www.example.com")
      expectFresh(message, ["192.0.2.1"])
      #expect(message.answers[0].ttl <= 30)
      stale.loop.advance(by: .seconds(86_400 * days))
    }
    #expect(stale.provider.count == 1)
    #expect(stale.scene.counters.stale == 0)
  }

  @Test func `an immutable entry is served on every network`() throws {
    let stale = StaleScene(immutable)
    try stale.keep()
    stale.scene.cache.beginEpoch()
    expectFresh(try stale.reply().message, ["192.0.2.1"])
    #expect(stale.provider.count == 1)
  }

  @Test func `an immutable negative answer expires as usual`() throws {
    let alias = HTTPDNSAnswer(
      responseCode: .noError, answers: [.alias(name("www.example.com"), name("web.example.net"), ttl: 60)],
      isNegative: true)
    let negatives: [HTTPDNSAnswer] = [
      .negative(.nxDomain, zone: name("example.com")), .negative(.noError, zone: name("example.com")), alias,
    ]
    for (number, answer) in negatives.enumerated() {
      let stale = StaleScene(immutable)
      stale.providerNow { _ in .answer(answer) }
      try stale.keep(thenWait: 31)
      stale.providerNow(has: "192.0.2.2")
      expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
      #expect(stale.provider.count == 2, "\(number)")
    }
  }

  @Test func `immutability depends on the route`() throws {
    let loop = SimulatedLoop()
    var address = "192.0.2.1"
    let provider = ScriptedUpstream(on: loop) { question, _ in .answer(.addresses(question.name, address, ttl: 60)) }
    let scene = ResolverScene(
      on: loop, [provider],
      rules: [.init(names: [.below(name("fixed.example"))], action: .route(Route.Number.firstRule))]
    ) {
      var route = $0.routes[0]
      route.stale = .tested(.off, isImmutable: true)
      $0.routes.append(route)
    }
    for asked in ["a.fixed.example", "a.example"] { _ = try scene.answer(asked) }
    loop.advance(by: .seconds(61))
    address = "192.0.2.2"
    expectFresh(try scene.answer("a.fixed.example"), ["192.0.2.1"])
    expectFresh(try scene.answer("a.example"), ["192.0.2.2"])
  }
}
