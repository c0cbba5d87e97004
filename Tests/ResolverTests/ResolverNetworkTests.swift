// ResolverNetworkTests.swift -- another network: each entry is refreshed once, and some belong to the network.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `On another network` {
  @Test func `each entry calls for one refresh at its next use, and is given at once`() throws {
    let stale = StaleScene()
    for asked in ["a.example", "b.example", "c.example"] { _ = try stale.scene.answer(asked) }
    stale.providerNow(has: "192.0.2.2")
    stale.scene.cache.beginEpoch()
    for asked in ["a.example", "b.example"] {
      let number = stale.scene.ask(asked)
      expectFresh(try stale.scene.reply(number).message, ["192.0.2.1"])
      #expect(try stale.scene.reply(number).after == .zero)
    }
    stale.loop.advance(by: .seconds(1))
    #expect(stale.provider.refreshes.flatMap(\.questions).map(\.name.text) == ["a.example.", "b.example."])
    #expect(stale.provider.count == 5)
    for _ in 0..<5 { expectFresh(try stale.scene.answer("a.example"), ["192.0.2.2"]) }
    stale.loop.advance(by: .seconds(1))
    #expect(stale.provider.count == 5)
    #expect(stale.scene.queries.inUse == 0)
  }

  @Test func `a second query during a refresh causes no other refresh`() throws {
    let stale = StaleScene()
    try stale.keep(thenWait: 1)
    stale.providerNow { _ in .silence }
    stale.scene.cache.beginEpoch()
    for _ in 0..<50 {
      expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.1"])
      stale.loop.advance(by: .milliseconds(100))
    }
    #expect(stale.provider.count == 2)
  }

  @Test(arguments: [ScriptedStep.silence, .failure()])
  func `a refresh that fails leaves the provider's entry, and LocalDNS is not asked`(step: ScriptedStep) throws {
    let zone = name("example.com")
    for isNXDOMAIN in [false, true] {
      let stale = StaleScene(hasLocal: true)
      if isNXDOMAIN { stale.providerNow { _ in .answer(.negative(.nxDomain, zone: zone)) } }
      try stale.keep(thenWait: 10)
      stale.providerNow { _ in step }
      stale.scene.cache.beginEpoch()
      for _ in 0..<2 {
        let message = try stale.reply().message
        #expect(message.responseCode == (isNXDOMAIN ? .nxDomain : .noError))
        #expect(message.addresses == (isNXDOMAIN ? [] : ["192.0.2.1"]))
        #expect(message.extendedError == nil)
      }
      #expect(stale.provider.count == 2)
      #expect(stale.local.asked.isEmpty)
      #expect(stale.scene.counters.failures == 0)
    }
  }

  @Test func `a client with another subnet does not use up an entry's refresh`() throws {
    let loop = SimulatedLoop()
    let provider = ScriptedUpstream(on: loop) { question, _ in
      var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.1")
      if question.clientSubnet != nil { answer.scopePrefixLength = 24 }
      return .answer(answer)
    }
    provider.traits.clientSubnet = .fromClient
    let scene = ResolverScene(on: loop, [provider])
    var withSubnet = ClientQuestion(name: "www.example.com")
    withSubnet.subnet = IPPrefix(text: "203.0.7.0/24")
    _ = try scene.answer("www.example.com")
    scene.cache.beginEpoch()
    _ = try scene.answer(withSubnet)
    #expect(provider.count == 2)
    _ = try scene.answer("www.example.com")
    loop.advance(by: .seconds(1))
    #expect(provider.count == 3)
    #expect(provider.refreshes.flatMap(\.questions).map(\.clientSubnet) == [nil])
  }

  @Test func `portal answers are valid on their network only`() throws {
    let loop = SimulatedLoop()
    var address = "10.0.0.1"
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, address)) }
    let scene = ResolverScene(on: loop, [], local: local)
    let probe = "connectivity-check.ubuntu.com"
    scene.network.change(to: 1)
    let first = try scene.answer(probe)
    #expect(first.addresses == ["10.0.0.1"])
    #expect(first.answers[0].ttl <= 10)
    scene.network.change(to: 2)
    address = "10.9.9.9"
    #expect(try scene.answer(probe).addresses == ["10.9.9.9"])
    scene.network.change(to: 1)
    #expect(try scene.answer(probe).addresses == ["10.0.0.1"])
    #expect(local.asked.count == 2)
    loop.advance(by: .seconds(11))
    #expect(try scene.answer(probe).addresses == ["10.9.9.9"])
  }

  @Test(arguments: [true, false]) func `per_network separates entries, stale ones too`(isApart: Bool) throws {
    let stale = StaleScene { $0.routes[0].belongsToNetwork = isApart }
    stale.scene.network.change(to: 1)
    _ = try stale.scene.answer("www.example.com")
    stale.scene.network.change(to: 2)
    stale.providerNow(has: "192.0.2.2")
    expectFresh(try stale.scene.answer("www.example.com"), [isApart ? "192.0.2.2" : "192.0.2.1"])
    stale.scene.network.change(to: 1)
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.1"])
    #expect(stale.provider.count == (isApart ? 2 : 1))
    stale.loop.advance(by: .seconds(61))
    stale.providerNow { _ in .failure() }
    expectStale(try stale.scene.answer("www.example.com"), ["192.0.2.1"])
    stale.scene.network.change(to: 3)
    let elsewhere = try stale.scene.answer("www.example.com")
    #expect(elsewhere.responseCode == (isApart ? .servFail : .noError))
  }

  @Test func `an answer to a question of the old network is cached for that network`() throws {
    let stale = StaleScene { $0.routes[0].belongsToNetwork = true }
    stale.providerNow(has: "192.0.2.1", after: .seconds(1))
    stale.scene.network.change(to: 1)
    stale.scene.ask("www.example.com")
    stale.scene.network.change(to: 2)
    stale.loop.advance(by: .seconds(2))
    stale.providerNow(has: "192.0.2.2")
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
    stale.scene.network.change(to: 1)
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.1"])
  }

  @Test func `an answer that was asked for on the old network is refreshed at its next use`() throws {
    let stale = StaleScene()
    stale.providerNow { question in .answer(.addresses(question.name, "192.0.2.1", ttl: 60), after: .seconds(1)) }
    let number = stale.scene.ask("www.example.com")
    stale.scene.cache.beginEpoch()
    stale.loop.advance(by: .seconds(1))
    expectFresh(try stale.scene.reply(number).message, ["192.0.2.1"])
    stale.providerNow(has: "192.0.2.2")
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.1"])
    stale.loop.advance(by: .seconds(1))
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
    #expect(stale.provider.count == 2)
  }
}
