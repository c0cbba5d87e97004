// ResolverJoinTests.swift -- clients whose question is being refreshed: they wait no longer than any other client.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Refresh
@testable import Resolver
@testable import Upstreams

@Suite struct `A client who joins a refresh` {
  /// A scene whose name is being refreshed since `ahead`, and has expired since.
  private func refreshing(
    _ stale: StaleScene, ahead: Duration, _ step: @escaping (HTTPDNSQuestion) -> ScriptedStep
  ) throws {
    try stale.keep(thenWait: 61)
    stale.provider.servers = 3
    stale.providerNow(step)
    let question = RefreshedQuestion(
      asked: RoutedQuestion(question: HTTPDNSQuestion(name: stale.www, type: .a), route: 0), hash: 0, heat: .inactive)
    Task(executorPreference: stale.loop) { [resolver = stale.scene.resolver] in
      _ = await resolver.refresh([question], from: .provider(0))
    }
    stale.loop.advance(by: ahead)
    #expect(stale.provider.count == 2)
    #expect(stale.scene.inFlight == 1)
  }

  @Test func `a client that joins a refresh gets its answer without another attempt`() throws {
    let stale = StaleScene()
    try refreshing(stale, ahead: .milliseconds(500)) { .answer(.addresses($0.name, "192.0.2.2"), after: .seconds(1)) }
    let reply = try stale.reply()
    expectFresh(reply.message, ["192.0.2.2"])
    #expect(reply.after == .milliseconds(500))
    #expect(stale.provider.count == 2)
    #expect(stale.scene.inFlight == 0)
  }

  @Test func `a client that joins a refresh gets LocalDNS's answer at its usual time`() throws {
    let stale = StaleScene(.tested(.off), hasLocal: true)
    stale.provider.ignoresDeadline = true
    try refreshing(stale, ahead: .milliseconds(700)) { _ in .silence }
    let begin = stale.loop.now
    let reply = try stale.reply()
    expectFresh(reply.message, ["198.51.100.1"])
    #expect(stale.local.asked.map { $0.at - begin } == [.seconds(1)])
    #expect(reply.after == .seconds(2))
  }

  @Test func `a client that joins a refresh gets stale data after its own stale_wait`() throws {
    let stale = StaleScene()
    try refreshing(stale, ahead: .milliseconds(700)) { _ in .silence }
    let reply = try stale.reply()
    expectStale(reply.message)
    #expect(reply.after == .milliseconds(1800))
  }

  @Test func `a client that joins a refresh waits 4.4 s at most`() throws {
    let stale = StaleScene(.tested(.off))
    stale.provider.traits.timeout = .seconds(30)
    try refreshing(stale, ahead: .seconds(3)) { _ in .silence }
    let first = stale.scene.ask("www.example.com", client: 1)
    stale.loop.advance(by: .milliseconds(900))
    let second = stale.scene.ask("www.example.com", client: 2)
    stale.loop.advance(by: .seconds(10))
    #expect(try stale.scene.reply(first).after == .milliseconds(4400))
    #expect(try stale.scene.reply(first).message.responseCode == .servFail)
    #expect(try stale.scene.reply(second).after == .milliseconds(3500))
  }

  @Test func `a client that joins a failing refresh gets an ordinary attempt`() throws {
    let stale = StaleScene(.tested(.off), hasLocal: true)
    try refreshing(stale, ahead: .milliseconds(300)) { _ in .failure(after: .milliseconds(400)) }
    stale.providerNow(has: "192.0.2.2")
    let reply = try stale.reply()
    expectFresh(reply.message, ["192.0.2.2"])
    #expect(reply.after == .milliseconds(120))
    #expect(stale.provider.count == 3)
    #expect(stale.local.asked.isEmpty)
    #expect(stale.scene.inFlight == 0)
    #expect(stale.scene.queries.inUse == 0)
  }

  @Test func `a client that joins a refresh without any answer gets a remembered failure`() throws {
    let stale = StaleScene(.tested(.off))
    try refreshing(stale, ahead: .milliseconds(300)) { _ in .failure(after: .milliseconds(400)) }
    let reply = try stale.reply()
    #expect(reply.message.extendedError == .networkError)
    #expect(reply.after == .milliseconds(500))
    #expect(stale.scene.counters.failures == 1)
  }

  @Test func `a refresh that fails without clients is not remembered as a failure`() throws {
    let stale = StaleScene(.tested(.off))
    try refreshing(stale, ahead: .milliseconds(300)) { _ in .failure(after: .milliseconds(400)) }
    stale.loop.advance(by: .seconds(1))
    #expect(stale.scene.inFlight == 0)
    #expect(stale.scene.counters.failures == 0)
    stale.providerNow(has: "192.0.2.2")
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
  }
}
