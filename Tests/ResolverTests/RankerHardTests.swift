// RankerHardTests.swift -- ranking where networks change, tables are full, and answers come that are not stored.

import Configuration
import DNSWire
import EventLoop
import FairShares
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Ranking
@testable import Resolver
@testable import Upstreams

private let (good, slow, dead) = ("192.0.2.1", "192.0.2.2", "192.0.2.3")

@Suite struct `Ranking in hard cases` {
  private let loop = SimulatedLoop()
  private let provider: ScriptedUpstream
  private let local: ScriptedLocalDNS
  private let scene: ResolverScene
  private var prober: ScriptedProber { scene.prober }

  init() {
    provider = ScriptedUpstream(on: loop) { question, _ in
      var answer = HTTPDNSAnswer.addresses(question.name, dead, slow, good, ttl: 600)
      if question.clientSubnet != nil { answer.scopePrefixLength = 0 }
      return .answer(answer, after: .milliseconds(20))
    }
    local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.168.1.5", "192.168.1.6", ttl: 600))
    }
    scene = ResolverScene(on: loop, [provider], local: local)
    scene.prober.milliseconds = { address, _ in [good: 20, slow: 80][address.description] }
  }

  private func use(_ change: (inout RankingSettings) -> Void = { $0.section.probe = [.tcp(port: 443)] }) {
    var settings = RankingSettings()
    change(&settings)
    scene.resolver.assumeIsolated { $0.useRanking(settings) }
  }

  private func addresses(_ text: String = "www.example.com", client: UInt16 = 1) throws -> [String] {
    try scene.answer(ClientQuestion(name: text, client: client)).addresses
  }

  private func ask(_ text: String = "www.example.com", for seconds: Int) throws {
    for _ in 0..<seconds {
      _ = try addresses(text)
      loop.advance(by: .seconds(1))
    }
  }

  private func reportBad(_ address: String, _ text: String = "www.example.com") -> BadAddressOutcome {
    loop.run { await scene.resolver.console { await $0.reportBad(IPAddress(text: address)!, of: name(text)) } }
  }

  private var ranker: Ranker {
    nonisolated(unsafe) var ranker: Ranker?
    scene.resolver.assumeIsolated { ranker = $0.ranker }
    return ranker!
  }

  // MARK: Networks

  @Test func `the network turns out to be another one while addresses are measured`() throws {
    use()
    try ask(for: 8)
    #expect(try addresses() == [good, slow, dead])
    prober.milliseconds = { address, _ in [dead: 5, good: 500][address.description] }
    // The link is up again, and a moment later the router is known.
    scene.resolver.assumeIsolated { $0.networkHasChanged() }
    loop.advance(by: .milliseconds(1_002))
    #expect(prober.inFlight > 0)
    scene.network.change(to: 9)
    scene.resolver.assumeIsolated { $0.networkIsAnother() }
    try ask(for: 9)
    #expect(try addresses().first == dead)
  }

  @Test func `a probe that ends on another network holds up neither its answer nor others`() throws {
    use { ($0.section.probe, $0.section.interval) = ([.tcp(port: 443)], .seconds(20)) }
    try ask(for: 3)
    #expect(prober.inFlight > 0)
    scene.network.change(to: 9)
    try ask(for: 40)
    try ask("other.example", for: 5)
    #expect(try addresses().first == good)
    #expect(try addresses("other.example").first == good)
  }

  @Test func `addresses of another network's resolver are not measured here`() throws {
    use { $0.section.domains = [.subtree(name("lan")): [.tcp(port: 22)]] }
    _ = try addresses("nas.lan")
    loop.advance(by: .seconds(5))
    #expect(prober.sent.contains { $0.address.description == "192.168.1.5" })
    let count = prober.sent.count
    scene.network.change(to: 9)
    scene.resolver.assumeIsolated { $0.networkHasChanged() }
    loop.advance(by: .seconds(300))
    #expect(prober.sent.count == count)
  }

  // MARK: Answers

  @Test func `an answer that is not stored changes nothing`() throws {
    use { ($0.section.probe, $0.section.answers) = ([.tcp(port: 443)], 1) }
    try ask(for: 8)
    #expect(try addresses() == [good])
    let hash = try #require(ranker.entries.keys.first)
    let stranger = HTTPDNSAnswer.addresses(name("www.example.com"), "198.18.0.1", "198.18.0.2", ttl: 600)
    var response = try #require(
      ComposedResponse(.noError, to: name("www.example.com"), answers: stranger.answers, authorities: []))
    _ = ranker.arrange(&response, to: name("www.example.com"), hash: hash, isPlain: true)
    #expect(ranker.entries[hash]?.all?.count == 3)
    ranker.rearrange(hash, name("www.example.com"), isIPv6: false)
    #expect(try addresses() == [good])
  }

  @Test func `an answer that comes in with a single address forgets those that were not shown`() throws {
    use { ($0.section.probe, $0.section.answers) = ([.tcp(port: 443)], 1) }
    try ask(for: 8)
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.9", ttl: 600)) }
    _ = loop.run { await scene.resolver.refresh(name("www.example.com"), types: [(.a, 0)], onlyThese: false) }
    #expect(try addresses() == ["192.0.2.9"])
    prober.milliseconds = { _, _ in nil }
    try ask(for: 30)
    #expect(try addresses() == ["192.0.2.9"])
  }

  @Test func `a new name shows the best of the addresses that are known, and the others are not lost`() throws {
    use { ($0.section.probe, $0.section.answers, $0.section.interval) = ([.tcp(port: 443)], 1, .seconds(60)) }
    try ask(for: 8)
    #expect(try addresses("other.example") == [good])
    prober.milliseconds = { address, _ in address.description == slow ? 80 : nil }
    try ask("other.example", for: 90)
    #expect(try addresses("other.example") == [slow])
  }

  @Test func `switched off, every answer shows all of its addresses again`() throws {
    use { ($0.section.probe, $0.section.answers) = ([.tcp(port: 443)], 1) }
    try ask(for: 8)
    #expect(try addresses() == [good])
    use { _ in }
    #expect(try addresses().count == 3)
    #expect(provider.count == 1)
  }

  @Test func `an answer that is valid for every subnet is measured`() throws {
    provider.traits.clientSubnet = .fromClient
    let scene = ResolverScene(on: loop, [provider])
    scene.prober.milliseconds = prober.milliseconds
    var settings = RankingSettings()
    settings.section.probe = [.tcp(port: 443)]
    scene.resolver.assumeIsolated { $0.useRanking(settings) }
    func ask() throws -> [String] {
      try scene.answer(ClientQuestion(name: "www.example.com", subnet: IPPrefix(text: "203.0.7.0/24")!)).addresses
    }
    for _ in 0..<9 {
      _ = try ask()
      loop.advance(by: .seconds(1))
    }
    #expect(try ask() == [good, slow, dead])
  }

  @Test func `an answer that never expires is measured on`() throws {
    provider.script = { question, _ in .answer(.addresses(question.name, dead, slow, good, ttl: 60)) }
    let scene = ResolverScene(on: loop, [provider]) { settings in
      for index in settings.routes.indices {
        settings.routes[index].stale.mode = .immediate
        settings.routes[index].stale.isImmutable = true
      }
    }
    scene.prober.milliseconds = prober.milliseconds
    var settings = RankingSettings()
    (settings.section.probe, settings.section.interval) = ([.icmp], .seconds(60))
    scene.resolver.assumeIsolated { $0.useRanking(settings) }
    for _ in 0..<300 {
      _ = try scene.answer("www.example.com")
      loop.advance(by: .seconds(1))
    }
    #expect(scene.prober.sent.contains { $0.at + .seconds(70) > loop.now })
  }

  // MARK: Kinds

  @Test func `the second kind gets two samples as well`() throws {
    var lost = 1
    prober.milliseconds = { address, kind in
      guard kind == .icmp else { return nil }
      if address.description == good, lost > 0 {
        lost -= 1
        return nil
      }
      return [good: 20, slow: 80][address.description]
    }
    use { $0.section.probe = [.tcp(port: 443), .icmp] }
    try ask(for: 12)
    #expect(lost == 0)
    #expect(try addresses().first == good)
  }

  @Test func `where connections say nothing the other kinds are tried soon`() throws {
    prober.milliseconds = { address, kind in kind == .icmp ? [good: 20, slow: 80][address.description] : 1 }
    use { $0.section.probe = [.tcp(port: 443), .icmp] }
    try ask(for: 20)
    #expect(try addresses() == [good, slow, dead])
  }

  @Test func `what the kernel refused is tried again by a reload`() throws {
    use { $0.section.probe = [.icmp] }
    (prober.isPingRefused, prober.problem) = (true, "refused")
    try ask(for: 8)
    #expect(prober.prepared == [.icmp] && prober.sent.isEmpty)
    prober.isPingRefused = false
    use { $0.section.probe = [.icmp] }
    #expect(prober.problem == nil)
    try ask(for: 8)
    #expect(try addresses() == [good, slow, dead])
  }

  @Test func `names that a reload adds are measured although their answers are cached`() throws {
    use { $0.section.domains = [.subtree(name("example.org")): [.icmp]] }
    try ask(for: 3)
    use { $0.section.domains = [.subtree(name("example.com")): [.icmp]] }
    loop.advance(by: .seconds(5))
    #expect(try addresses() == [good, slow, dead])
    #expect(provider.count == 1)
  }

  @Test func `a kept name is measured in every interval, used or not`() throws {
    use { ($0.section.probe, $0.section.interval) = ([.icmp], .seconds(60)) }
    _ = try addresses()
    ranker.stored(
      name("www.example.com"), .a, hash: try #require(ranker.entries.keys.first), isKept: true)
    try ask(for: 4)
    let count = prober.sent.count
    loop.advance(by: .seconds(250))
    #expect(prober.sent.count >= count + 3 * 4)
  }

  // MARK: Limits

  /// Answers `nN.x.example` with two addresses of its own, which all answer.
  private func many() -> ResolverScene {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      let number = Int(question.name.text.dropFirst().prefix { $0.isNumber }) ?? 0
      let prefix = "203.\(number >> 8 & 127).\(number & 255)"
      return .answer(.addresses(question.name, "\(prefix).1", "\(prefix).2", ttl: 3600))
    }
    let scene = ResolverScene(on: loop, [provider], slots: 64)
    scene.prober.milliseconds = { _, _ in 10 }
    return scene
  }

  @Test func `a used name is measured although a thousand others wait`() throws {
    let scene = many()
    var settings = RankingSettings()
    (settings.section.probe, settings.section.probesPerMinute) = ([.icmp], 20)
    scene.resolver.assumeIsolated { $0.useRanking(settings) }
    for number in 0..<1500 {
      for _ in 0..<2 { _ = try scene.answer(ClientQuestion(name: "n\(number).x\(number).example", client: 1)) }
    }
    loop.advance(by: .seconds(20))
    for _ in 0..<50 { _ = try scene.answer(ClientQuestion(name: "n3000.y.example", client: 2)) }
    loop.advance(by: .seconds(75))
    #expect(scene.prober.sent.contains { $0.address.octets.starts(with: [203, 11, 184]) })
  }

  @Test func `one client's names leave room for those of others`() throws {
    use { $0.section.probe = [.icmp] }
    let response = HTTPDNSAnswer.addresses(name("n.example"), good, slow, ttl: 600)
    let composed = try #require(
      ComposedResponse(.noError, to: name("n.example"), answers: response.answers, authorities: []))
    let cache = MessageCache(CacheBounds(maxOctets: 64 << 20, maxEntries: 20_000))
    let many = Ranker(
      ranker.settings, of: cache, CurrentNetwork(of: cache), prober: prober, on: loop
    ) { _ in }
    func store(_ number: Int, client: UInt64) {
      let name = name("n\(number).d\(number).example")
      let hash = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: CacheKey.longest) { buffer in
        _ = buffer.update(fromContentsOf: name.octets)
        let scope = CacheScope(type: 1, dnssecOK: false, checkingDisabled: false, route: 0, network: 0)
        let key = cache.key(
          in: buffer.baseAddress!, nameLength: name.octets.count, scope, subnet: QueryClientSubnet())
        cache.insert(key, composed, now: loop.now.nanoseconds, lifetime: 600)
        return key.hash
      }
      many.stored(name, .a, hash: hash, isKept: false, for: ClientKey(value: client))
    }
    for number in 0..<8_000 { store(number, client: 7) }
    #expect(many.entries.count == 7_500)
    store(8_000, client: 8)
    #expect(many.entries.count == 7_501)
    many.close()
  }

  // MARK: Reports

  @Test func `a report counts for an address that the answer does not show`() throws {
    use { ($0.section.probe, $0.section.answers) = ([.tcp(port: 443)], 1) }
    try ask(for: 8)
    #expect(try addresses() == [good])
    #expect(reportBad(good) == BadAddressOutcome(moved: 1))
    #expect(try addresses() == [slow])
    #expect(reportBad(dead).moved == 0)
  }

  @Test func `the last address that works is not moved, and the person is told`() throws {
    use()
    try ask(for: 8)
    #expect(reportBad(slow).alone == 0)
    #expect(reportBad(good) == BadAddressOutcome(alone: 1))
    #expect(try addresses().first == good)
  }

  @Test func `reports of successes leave nothing behind`() throws {
    for number in 0..<50 {
      _ = try addresses("n\(number).example")
      let batch = ReportBatch([
        AddressReport(
          name: name("n\(number).example"), address: IPAddress(text: good)!, result: .works(milliseconds: 1))
      ])
      #expect(scene.resolver.assumeIsolated { $0.take(batch) } == .taken(counted: 1, unknown: 0))
    }
    #expect(ranker.reported.isEmpty)
  }
}
