// ResolverReplacementTests.swift -- a fresh answer of any kind replaces stale data at once.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A fresh answer` {
  private let zone = name("example.com")

  private func denying(_ type: RecordType, minimum: UInt32 = 20) -> (HTTPDNSQuestion) -> ScriptedStep {
    { [zone] question in
      question.type == type ? .answer(.negative(.nxDomain, zone: zone, minimum: minimum)) : .failure()
    }
  }

  @Test func `a fresh NXDOMAIN replaces stale addresses of both families`() throws {
    let stale = StaleScene()
    try stale.keep(.aaaa, thenWait: 0)
    try stale.keep()
    stale.providerNow(denying(.a))
    for type in [RecordType.a, .aaaa] {
      let message = try stale.scene.answer("www.example.com", type)
      #expect(message.responseCode == .nxDomain)
      #expect(message.extendedError == nil)
    }
    #expect(stale.provider.count == 3)
  }

  @Test(arguments: [Configuration.Stale.onFailure, .immediate])
  func `an expired NXDOMAIN does not bring stale addresses back`(mode: Configuration.Stale) throws {
    let stale = StaleScene(.tested(mode))
    try stale.keep(.aaaa)
    stale.providerNow(denying(.a))
    _ = try stale.scene.answer("www.example.com", .a)
    stale.loop.advance(by: .seconds(21))
    stale.providerNow { _ in .failure() }
    for _ in 0..<2 {
      let message = try stale.scene.answer("www.example.com", .aaaa)
      #expect(message.responseCode == .nxDomain)
      #expect(message.extendedError == .staleNXDomain)
    }
    // Once for the expired NXDOMAIN; the second time the listener served it.
    #expect(stale.provider.count == 3)
  }

  @Test func `a fresh NXDOMAIN is served to clients that wait for stale addresses`() throws {
    let stale = StaleScene()
    try stale.keep(.aaaa)
    stale.providerNow { [zone] question in
      question.type == .a ? .answer(.negative(.nxDomain, zone: zone, minimum: 20)) : .silence
    }
    let waiting = stale.scene.ask("www.example.com", .aaaa)
    stale.loop.advance(by: .seconds(1))
    _ = try stale.scene.answer("www.example.com", .a)
    stale.loop.advance(by: .seconds(10))
    let reply = try stale.scene.reply(waiting)
    #expect(reply.message.responseCode == .nxDomain)
    #expect(reply.message.extendedError == nil)
    #expect(reply.message.authorities.map(\.ttl) == [20])
  }

  @Test func `a fresh NODATA replaces stale addresses permanently`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.providerNow { [zone] _ in .answer(.negative(.noError, zone: zone, minimum: 20)) }
    #expect(try stale.scene.answer("www.example.com").extendedError == nil)
    stale.loop.advance(by: .seconds(21))
    stale.providerNow { _ in .failure() }
    let message = try stale.scene.answer("www.example.com")
    #expect(message.responseCode == .noError)
    #expect(message.answers.isEmpty)
    #expect(message.extendedError == .staleAnswer)
  }

  @Test(arguments: [Configuration.Stale.onFailure, .immediate])
  func `a fresh answer that is not cached removes the stale data`(mode: Configuration.Stale) throws {
    let steps: [ScriptedStep] = [
      .answer(.addresses(name("www.example.com"), "192.0.2.2", ttl: 0)),
      .answer(.negative(.nxDomain, zone: zone, minimum: 0)),
      .answer(.negative(.noError, zone: zone, minimum: 0)),
    ]
    for step in steps {
      let stale = StaleScene(.tested(mode))
      try stale.keep()
      stale.providerNow { _ in step }
      _ = try stale.reply()
      stale.providerNow { _ in .failure() }
      #expect(try stale.scene.answer("www.example.com").responseCode == .servFail)
      #expect(stale.provider.count == 3)
    }
  }

  @Test func `fresh addresses replace a stale NXDOMAIN`() throws {
    let stale = StaleScene()
    stale.providerNow(denying(.a))
    try stale.keep(thenWait: 21)
    stale.providerNow(has: "192.0.2.2")
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
    stale.loop.advance(by: .seconds(61))
    stale.providerNow { _ in .failure() }
    expectStale(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
  }

  @Test func `a fresh address replaces stale data while other clients wait`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.providerNow(has: "192.0.2.2", after: .milliseconds(1799))
    let reply = try stale.reply()
    expectFresh(reply.message, ["192.0.2.2"])
    #expect(reply.after == .milliseconds(1799))
  }
}
