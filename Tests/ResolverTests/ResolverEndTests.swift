// ResolverEndTests.swift -- shutdown: waiting clients get what is available, and nothing is remembered.

import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `At the end of the program` {
  @Test func `at shutdown all waiting clients get SERVFAIL`() throws {
    let loop = SimulatedLoop()
    let provider = ScriptedUpstream("first", on: loop) { _, _ in .silence }
    let scene = ResolverScene(on: loop, [provider])
    let numbers = ["a.example.com", "a.example.com", "b.example.com"].enumerated().map { client, name in
      scene.ask(name, client: UInt16(client + 1))
    }
    loop.advance(by: .milliseconds(100))
    scene.resolver.assumeIsolated { $0.giveUp() }
    for number in numbers {
      let reply = try scene.reply(number)
      #expect(reply.message.responseCode == .servFail)
      #expect(reply.message.extendedError == .notReady)
      #expect(reply.after == .milliseconds(100))
    }
    #expect(scene.queries.inUse == 0)
    loop.advance(by: .seconds(10))
    // One reply each.
    for number in numbers { _ = try scene.reply(number) }
  }

  @Test func `a held answer is given`() throws {
    let loop = SimulatedLoop()
    let provider = ScriptedUpstream("first", on: loop) { _, _ in .silence }
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "198.51.100.1")) }
    let scene = ResolverScene(on: loop, [provider], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(1_200))
    scene.resolver.assumeIsolated { $0.giveUp() }
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["198.51.100.1"])
    #expect(reply.after == .milliseconds(1_200))
  }

  @Test func `at shutdown waiting clients get stale data, which does not outlive it`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.providerNow { _ in .silence }
    let number = stale.scene.ask("www.example.com")
    stale.loop.advance(by: .milliseconds(100))
    stale.scene.resolver.assumeIsolated { $0.giveUp() }
    expectStale(try stale.scene.reply(number).message)
    // A saved cache would have it: the next process asks at once.
    stale.providerNow { .answer(.addresses($0.name, "192.0.2.2", ttl: 60)) }
    #expect(try stale.reply().message.addresses == ["192.0.2.2"])
  }
}
