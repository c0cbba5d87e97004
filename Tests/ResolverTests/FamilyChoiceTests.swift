// FamilyChoiceTests.swift -- AAAA answers that are withheld while IPv6 is worse, on the simulated loop.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Ranking
@testable import Resolver
@testable import Upstreams

private let (ipv4, ipv6, otherIPv6) = ("93.184.216.1", "2606:2800::1", "2606:2800::2")

@Suite struct `A family that is worse` {
  private let loop = SimulatedLoop()
  private let provider: ScriptedUpstream
  private let scene: ResolverScene

  init() {
    provider = ScriptedUpstream(on: loop) { question, _ in
      let answer: HTTPDNSAnswer =
        question.type == .a
        ? .addresses(question.name, ipv4, ttl: 600) : .addresses(question.name, ipv6, otherIPv6, ttl: 600)
      return .answer(answer, after: .milliseconds(20))
    }
    scene = ResolverScene(on: loop, [provider])
    isSlow(by: 60)
    use()
  }

  private func use(_ families: Duration? = .milliseconds(50)) {
    var settings = RankingSettings()
    settings.section.probe = [.tcp(port: 443)]
    settings.section.families = families == nil ? .both : .faster
    if let families { settings.section.familyThreshold = families }
    scene.resolver.assumeIsolated { $0.useRanking(settings) }
  }

  /// IPv6 takes that many milliseconds longer than IPv4; nil for no answer at all.
  private func isSlow(by milliseconds: Double?) {
    scene.prober.milliseconds = { address, _ in
      if address.description.hasPrefix("198.51.100.") || address.description.hasPrefix("2001:db8:") { return nil }
      return address.isIPv6 ? milliseconds.map { 20 + $0 } : 20
    }
  }

  private func ask(_ type: RecordType) throws -> Message { try scene.answer("www.example.com", type) }

  private func askBoth(for seconds: Int) throws {
    for _ in 0..<seconds {
      #expect(try ask(.a).answers.count == 1)
      _ = try ask(.aaaa)
      loop.advance(by: .seconds(1))
    }
  }

  private var isWithheld: Bool {
    get throws { try ask(.aaaa).answers.isEmpty }
  }

  @Test func `its addresses are withheld once both are measured`() throws {
    #expect(try ask(.aaaa).answers.count == 2)
    try askBoth(for: 6)
    let message = try ask(.aaaa)
    #expect(message.responseCode == .noError && message.answers.isEmpty)
    #expect(message.extendedError == .filtered)
    let soa = try #require(message.authorities.first)
    #expect(soa.type == .soa && soa.owner == name("www.example.com") && soa.ttl <= 60)
    #expect(try ask(.a).answers.count == 1)
    #expect(provider.count == 2)
    let content = loop.run { await scene.resolver.console { await $0.content(of: name("www.example.com")) } }
    let entry = try #require(content.entries.first { $0.question.type == .aaaa })
    #expect(Set(entry.addresses.map(\.address.description)) == [ipv6, otherIPv6])
  }

  @Test func `names in use are compared from the reload on that asks for it`() throws {
    use(nil)
    try askBoth(for: 10)
    #expect(try !isWithheld)
    use()
    try askBoth(for: 10)
    #expect(try isWithheld)
  }

  @Test func `below the threshold both are given`() throws {
    isSlow(by: 49)
    try askBoth(for: 60)
    #expect(try !isWithheld)
  }

  @Test func `addresses that fail twice are withheld, and one failure is not enough`() throws {
    isSlow(by: nil)
    try askBoth(for: 5)
    #expect(try !isWithheld)
    try askBoth(for: 15)
    #expect(try isWithheld)
  }

  @Test func `nothing is withheld for a family without a measurement`() throws {
    for _ in 0..<30 {
      #expect(try ask(.aaaa).answers.count == 2)
      loop.advance(by: .seconds(1))
    }
  }

  @Test func `another verdict gives the addresses back without a transfer`() throws {
    try askBoth(for: 10)
    #expect(try isWithheld)
    isSlow(by: 0)
    // Weight 1/4: four rounds bring 60 ms below half of the threshold.
    var rounds = 0
    while try isWithheld, rounds < 6 {
      try askBoth(for: 600)
      rounds += 1
    }
    #expect(rounds == 4)
    #expect(try ask(.aaaa).answers.count == 2)
    // No more than the answers' own lives need.
    #expect(provider.count <= 2 * (rounds + 2))
  }

  @Test func `a new answer is withheld at once`() throws {
    try askBoth(for: 10)
    #expect(try isWithheld)
    for _ in 0..<700 {
      try askBoth(for: 1)
      #expect(try isWithheld)
    }
    #expect(provider.count >= 4)
  }

  @Test func `another network begins with both`() throws {
    try askBoth(for: 10)
    #expect(try isWithheld)
    scene.network.change(to: 9)
    scene.resolver.assumeIsolated { $0.networkHasChanged() }
    #expect(try ask(.aaaa).answers.count == 2)
    try askBoth(for: 10)
    #expect(try isWithheld)
  }

  @Test func `both are given as soon as the settings say so`() throws {
    try askBoth(for: 10)
    #expect(try isWithheld)
    use(nil)
    #expect(try ask(.aaaa).answers.count == 2)
  }

  @Test func `a client that validates gets the addresses`() throws {
    for _ in 0..<20 {
      _ = try ask(.a)
      var question = ClientQuestion(name: "www.example.com", type: .aaaa)
      question.dnssecOK = true
      #expect(try scene.answer(question).answers.count == 2)
      loop.advance(by: .seconds(1))
    }
  }
}
