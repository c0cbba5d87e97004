// NameLedgerTests.swift -- every hit and every transfer of a busy name is counted once for any fate of its entries.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import MessageCache
import TestSupport
import Testing

@testable import BusyNames
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct NameLedgerTests {
  let loop = SimulatedLoop()

  private func scene(_ settings: (inout ResolverSettings) -> Void = { _ in }) -> ResolverScene {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      question.name.text.hasPrefix("no")
        ? .answer(.negative(.nxDomain, zone: name("example.com")))
        : .answer(.addresses(question.name, "192.0.2.1", ttl: 100))
    }
    return ResolverScene(on: loop, [provider], settings)
  }

  private func reports(_ scene: ResolverScene) -> [NameReport] { loop.run { await scene.resolver.nameReports() } }

  private func hits(_ scene: ResolverScene, _ text: String, _ type: RecordType = .a) -> UInt64? {
    reports(scene).first { $0.name == name(text) && $0.type == type }?.counts.cacheDnsNum
  }

  @Test func `a thousand hits are a thousand, across answers that take each other's place and a flush`() throws {
    let scene = scene()
    _ = try scene.answer("www.example.com")
    for round in 1...4 {
      for _ in 0..<250 { _ = try scene.answer("www.example.com") }
      #expect(hits(scene, "www.example.com") == UInt64(round) * 250)
      // Asked for twice, nothing is counted twice.
      #expect(hits(scene, "www.example.com") == UInt64(round) * 250)
      if round == 1 {
        _ = loop.run { await scene.resolver.flush(.everything) }
      } else {
        loop.advance(by: .seconds(200))
      }
      _ = try scene.answer("www.example.com")
    }
    #expect(hits(scene, "www.example.com") == 1000)
  }

  @Test func `hits inherited from the previous answer are counted once`() throws {
    let scene = scene()
    _ = try scene.answer("www.example.com")
    for round in 1...5 {
      for _ in 0..<10 { _ = try scene.answer("www.example.com") }
      _ = loop.run { await scene.resolver.refresh(name("www.example.com"), types: [], onlyThese: false) }
      #expect(hits(scene, "www.example.com") == UInt64(round) * 10)
    }
    _ = loop.run { await scene.resolver.flush(.everything) }
    #expect(hits(scene, "www.example.com") == 50)
  }

  @Test func `NXDOMAIN and other types have counts of their own`() throws {
    let scene = scene()
    for _ in 0..<3 { for type in [RecordType.a, .aaaa] { _ = try scene.answer("nowhere.example.com", type) } }
    for _ in 0..<2 { _ = try scene.answer("www.example.com", .aaaa) }
    #expect(hits(scene, "nowhere.example.com", RecordType(0)) == 5)
    #expect(hits(scene, "www.example.com", .aaaa) == 1)
    #expect(hits(scene, "www.example.com", .a) == nil)
    #expect(reports(scene).first?.name == name("nowhere.example.com"), "the busiest comes first")
  }

  @Test func `an entry removed during a survey is counted once`() throws {
    let scene = scene()
    for number in 0..<3000 {
      scene.ask("n\(number).example.com")
      if number % 300 == 299 { loop.advance(by: .seconds(1)) }
    }
    for _ in 0..<100 { for number in [7, 1500, 2999] { _ = try scene.answer("n\(number).example.com") } }
    let cache = scene.cache
    let flushed = Flushed()
    let seen: [NameReport] = loop.run { [loop] in
      // In the middle of the reading, when some of it has been looked at, everything goes.
      loop.schedule(after: .zero) {
        flushed.count = cache.usage.entries
        cache.removeAll()
      }
      return await scene.resolver.nameReports()
    }
    #expect(flushed.count > 2900)
    for number in [7, 1500, 2999] {
      #expect(seen.first { $0.name == name("n\(number).example.com") }?.counts.cacheDnsNum == 100)
      #expect(hits(scene, "n\(number).example.com") == 100)
    }
  }

  private final class Flushed: @unchecked Sendable {
    var count = 0
  }

  @Test func `a busy name stays, with all of its hits, while thousands are asked for once`() throws {
    let scene = scene()
    _ = try scene.answer("www.example.com")
    for _ in 0..<200 { _ = try scene.answer("www.example.com") }
    for number in 0..<5000 {
      scene.ask("n\(number).example.com")
      if number % 300 == 299 { loop.advance(by: .seconds(1)) }
    }
    loop.advance(by: .seconds(1))
    let all = reports(scene)
    #expect(all.count == NameLedger.most)
    #expect(all.first?.name == name("www.example.com") && all.first?.counts.cacheDnsNum == 200)
  }

  @Test func `each reason of a provider has its counter`() throws {
    let transport = ScriptedTransport(on: loop) { _ in (.failure(HTTPFailure(.timeout, "t")), .milliseconds(10)) }
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first", hasAccount: true, requestsPerSecond: 1000),
      dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: [ProviderServer("server", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }], loop: loop)
    let scene = ResolverScene(on: loop, [provider])
    let outcomes: [(HTTPResult, Duration)] = [
      (.failure(HTTPFailure(.timeout, "t", wasSent: true)), .milliseconds(10)),
      (.failure(HTTPFailure(.badHTTP, "r")), .milliseconds(10)),
      (.response(HTTPResponse(status: 400)), .milliseconds(20)),
      (.response(HTTPResponse(status: 404)), .milliseconds(40)),
      (.response(HTTPResponse(status: 429)), .milliseconds(60)),
    ]
    for outcome in outcomes {
      transport.script = { _ in outcome }
      _ = loop.run { await scene.resolver.resolve(question("www.example.com"), route: 0, fresh: true) }
      loop.advance(by: .seconds(100))
    }
    // It is not asked now.
    provider.health.use([])
    _ = loop.run { await scene.resolver.resolve(question("www.example.com"), route: 0, fresh: true) }
    let counts = try #require(reports(scene).first).counts
    #expect(counts.timeoutErro >= 1 && counts.noResponseErro == 1 && counts.urlParameterErro == 1)
    #expect(counts.urlPathErro == 1 && counts.noPermissionErro == 1 && counts.localErro == 1)
    #expect(counts.successNum == 0 && counts.requestPDnsNum == 4 + counts.timeoutErro)
    #expect(counts.maxRtt == 60_000_000 && counts.avgRtt == 40_000_000)
    #expect(scene.resolver.assumeIsolated { $0.names.totals } == counts)
  }

  private func question(_ text: String) -> HTTPDNSQuestion { HTTPDNSQuestion(name: name(text), type: .a) }

  @Test func `LocalDNS in a provider's place is counted, with its failures`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure() }
    let local = ScriptedLocalDNS(on: loop) { question, count in
      count == 0 ? .answer(.addresses(question.name, "192.0.2.9", ttl: 1)) : .failure()
    }
    let scene = ResolverScene(on: loop, [provider], local: local)
    _ = try scene.answer("www.example.com")
    loop.advance(by: .seconds(100))
    _ = try scene.answer("www.example.com")
    let counts = try #require(reports(scene).first).counts
    #expect(counts.gobackLocaldnsNum == 2 && counts.localErro == 1)
  }
}
