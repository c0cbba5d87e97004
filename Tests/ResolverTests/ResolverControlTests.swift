// ResolverControlTests.swift -- flushes by the operator, and the report of the providers.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import MessageCache
import Telemetry
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverControlTests {
  let loop = SimulatedLoop()

  private func flush(_ scene: ResolverScene, _ names: NameSelection = .everything) -> FlushCounts {
    loop.run { await scene.resolver.flush(names) }
  }

  @Test func `a flush forgets fresh, stale and immutable answers`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 100))
    }
    let scene = ResolverScene(on: loop, [provider]) {
      $0.routes[0].stale = .tested(.off, isImmutable: true)
    }
    _ = try scene.answer("www.example.com")
    loop.advance(by: .seconds(1000))
    _ = try scene.answer("www.example.com")
    #expect(provider.asked.count == 1)
    #expect(flush(scene, NameSelection([name("other.example.com")], andBelow: true)).entries == 0)
    #expect(flush(scene, NameSelection([name("example.com")], andBelow: true)).entries == 1)
    _ = try scene.answer("www.example.com")
    #expect(provider.asked.count == 2)
  }

  @Test func `a flush forgets failures, of the names that are meant`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure() }
    let scene = ResolverScene(on: loop, [provider])
    for text in ["a.example", "b.example"] { _ = try scene.answer(text) }
    #expect(provider.asked.count == 2)
    let counts = flush(scene, NameSelection([name("a.example")], andBelow: false))
    #expect(counts.failures == 1 && counts.entries == 0)
    for text in ["a.example", "b.example"] { _ = try scene.answer(text) }
    #expect(provider.asked.map(\.question.name.text) == ["a.example.", "b.example.", "a.example."])
    #expect(flush(scene).failures == 2)
  }

  @Test func `a large flush lets queries through in between`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 3600))
    }
    let scene = ResolverScene(on: loop, [provider])
    for number in 0..<4000 {
      scene.ask(ClientQuestion(name: "n\(number).example.com"))
      if number % 500 == 499 { loop.advance(by: .seconds(1)) }
    }
    let before = scene.cache.usage.entries
    #expect(before > 3500)
    let seen = Seen()
    let counts: FlushCounts = loop.run { [loop] in
      loop.schedule(after: .zero) { seen.entries = scene.cache.usage.entries }
      return await scene.resolver.flush(.everything)
    }
    // Some were gone and some were there when the loop did something else.
    #expect(0 < seen.entries && seen.entries < before)
    #expect(counts.entries == before && scene.cache.usage.entries == 0)
  }

  @Test func `the report of a provider says why it is not used, and until when`() {
    let transport = ScriptedTransport(on: loop) { _ in
      (.failure(HTTPFailure(.calm, "calm", wasSent: true)), .milliseconds(10))
    }
    transport.handshakes = { _ in (HTTPFailure(.refused, "refused"), .zero) }
    let settings = Configuration.Provider.tested(
      name: "first", hasAccount: true, attemptsBeforeSwitch: 1, unitsPerDay: 3)
    let provider = HTTPDNSProvider(
      settings, dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: [ProviderServer("server", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }], loop: loop)
    func ask() {
      _ = loop.run { [loop] in
        await provider.ask(
          HTTPDNSQuestion(name: name("www.example.com"), type: .a), deadline: loop.now + .seconds(4),
          isLastResort: false)
      }
    }
    var expected = ProviderReport(name: "first")
    (expected.server, expected.unitsPerDay) = ("server", 3)
    #expect(provider.report == expected)
    ask()
    expected.counters.transfers = 1
    expected.counters.failures.count(.noResponse(.calm))
    expected.state = .pausing("it asks for fewer requests at a time", until: loop.wallTime + 1)
    expected.counters.demotions.count(.aside)
    expected.lastFailure = "server: calm: calm"
    #expect(provider.report == expected)
    loop.advance(by: .seconds(1))
    transport.script = { _ in (.refused, .milliseconds(10)) }
    ask()
    // Its connection was refused: nothing was sent.
    expected.counters.failures.count(.noResponse(.refused))
    expected.server = nil
    expected.state = .unreachable(since: loop.wallTime, "server: refused: refused")
    expected.advice = "nothing listens there, or a firewall refuses; check servers"
    expected.nextAttempt = .seconds(1)
    expected.counters.demotions.count(.down)
    expected.lastFailure = "server: refused: refused"
    #expect(provider.report == expected)
    loop.advance(by: .milliseconds(400))
    #expect(provider.report.lastFailureAge == .milliseconds(400) && provider.report.nextAttempt == .milliseconds(600))
    provider.health.use([])
    #expect(provider.report.server == nil)
    provider.limits.pay(3)
    #expect(provider.report.unitsToday == 3)
    let day = loop.wallTime / 86_400
    loop.advance(by: .seconds(86_400))
    #expect(provider.report.unitsToday == 0)
    #expect(loop.wallTime / 86_400 == day + 1)
  }

  @Test func `the reports stand in the order of the configuration`() {
    let script: ScriptedUpstream.Script = { _, _ in .failure() }
    let scene = ResolverScene(
      on: loop, [ScriptedUpstream("b", on: loop, script), ScriptedUpstream("a", on: loop, script)])
    #expect(scene.resolver.assumeIsolated { $0.providerReports() }.map(\.name) == ["b", "a"])
  }
}

private final class Seen: @unchecked Sendable {
  var entries = 0
}
