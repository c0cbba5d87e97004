// RefresherCostTests.swift -- what refreshing must not waste, and what must not make a name in use wait.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Refresh
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// A provider that gives both families to who asks for AAAA, as those do that can.
private final class PairingUpstream: TestUpstream, @unchecked Sendable {
  private let inner: ScriptedUpstream

  init(_ inner: ScriptedUpstream) { self.inner = inner }

  var name: String { inner.name }
  var traits: UpstreamTraits {
    var traits = UpstreamTraits(timeout: inner.timeout)
    traits.mostNames = 1
    return traits
  }

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    let result = await inner.ask(question, for: asking, deadline: deadline, isLastResort: isLastResort)
    guard question.type == .aaaa else { return result }
    return result.map {
      var answer = $0
      var other = question
      other.type = .a
      answer.others = [(other, .addresses(question.name, "192.0.2.1", ttl: 100))]
      return answer
    }
  }

  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    await inner.refresh(questions, deadline: deadline)
  }
}

@Suite struct `What refreshing costs` {
  private let loop = SimulatedLoop()

  private func provider(_ text: String = "first", ttl: UInt32) -> ScriptedUpstream {
    ScriptedUpstream(text, on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: ttl), after: .milliseconds(50))
    }
  }

  @Test func `a keep list name that is NXDOMAIN is refetched when that is due`() {
    let provider = ScriptedUpstream(on: loop) { _, _ in
      .answer(.negative(.nxDomain, zone: name("example"), ttl: 900, minimum: 900), after: .zero)
    }
    let scene = RefresherScene(ResolverScene(on: loop, [provider]), keep: ["typo.example"])
    loop.advance(by: .seconds(600))
    #expect((20...30).contains(scene.refreshes(provider).count))
  }

  @Test(arguments: [0, 5]) func `a name that is preloaded and hot is asked for once on another network`(mostNames: Int)
    throws
  {
    let provider = provider(ttl: 3000)
    provider.traits.mostNames = mostNames
    let names = (0..<10).map { "p\($0).example" }
    let scene = RefresherScene(ResolverScene(on: loop, [provider]), preload: names)
    loop.advance(by: .seconds(5))
    for name in names { try scene.use(name, times: 5) }
    let before = (provider.asked.count, provider.refreshes.count, scene.refresher.counters.transfers)
    scene.refresher.networkHasChanged()
    loop.advance(by: .seconds(10))
    #expect(provider.asked.count == before.0)
    #expect(provider.refreshes.dropFirst(before.1).flatMap(\.questions).count == 10)
    #expect(scene.refresher.counters.transfers - before.2 == (mostNames > 0 ? 2 : 10))
    #expect(scene.log.last == "10 of 10 names and types resolved for another network in \(mostNames > 0 ? 50 : 100) ms")
  }

  @Test(arguments: [false, true]) func `hot names come first on another network`(isApart: Bool) throws {
    let provider = provider(ttl: 3000)
    let scene = RefresherScene(ResolverScene(on: loop, [provider]) { $0.routes[0].belongsToNetwork = isApart })
    scene.scene.network.change(to: 7)
    _ = try scene.scene.answer("hot.example")
    _ = try scene.scene.answer("cold.example")
    try scene.use("hot.example", times: 9)
    scene.scene.network.change(to: 8)
    scene.scene.cache.beginEpoch()
    scene.refresher.networkHasChanged()
    loop.advance(by: .seconds(1))
    #expect(provider.refreshes.flatMap(\.questions).map(\.name) == [name("hot.example")])
    try scene.use("hot.example")
    #expect(provider.count == 3)
    // And it stays hot there, with one hit.
    loop.advance(by: .seconds(3000))
    try scene.use("hot.example")
  }

  @Test func `names that were hot before a sleep are fetched first after it`() throws {
    let provider = provider(ttl: 300)
    let scene = RefresherScene(
      ResolverScene(on: loop, [provider]), keep: ["kept.example"], preload: ["pre.example"])
    loop.advance(by: .seconds(1))
    _ = try scene.scene.answer("hot.example")
    _ = try scene.scene.answer("cold.example")
    try scene.use("hot.example", times: 5)
    loop.sleep(through: .seconds(3600))
    scene.refresher.hasSlept()
    // It may take a while until the network is there.
    loop.advance(by: .seconds(5))
    let before = provider.refreshes.flatMap(\.questions).map(\.name)
    scene.refresher.networkHasChanged()
    loop.advance(by: .seconds(1))
    let names = (before + provider.refreshes.dropFirst(before.count).flatMap(\.questions).map(\.name)).map(\.text)
    #expect(Set(names) == ["kept.example.", "pre.example.", "hot.example."])
    try scene.use("hot.example")
  }

  @Test(arguments: [false, true]) func `an answer that came with another one does not reduce the heat`(isBoth: Bool)
    throws
  {
    let inner = ScriptedUpstream(on: loop) { question, _ in
      question.type == .a
        ? .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .milliseconds(50))
        : .answer(.negative(.noError, zone: name("example"), ttl: 30, minimum: 30), after: .milliseconds(50))
    }
    let scene = RefresherScene(ResolverScene(on: loop, [PairingUpstream(inner)]))
    _ = try scene.scene.answer("www.example")
    try scene.use("www.example", times: 6)
    for _ in 0..<30 {
      loop.advance(by: .seconds(110))
      let four = scene.scene.ask("www.example", .a)
      if isBoth { scene.scene.ask("www.example", .aaaa) }
      loop.advance(by: .milliseconds(100))
      #expect(try scene.scene.reply(four).after == .zero)
    }
  }

  @Test func `a name queried in the last quarter of its TTL is hot`() throws {
    let provider = provider(ttl: 100)
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    for name in ["late.example", "cold.example"] {
      _ = try scene.scene.answer(name)
      try scene.use(name, times: 4)
    }
    loop.advance(by: .seconds(84))
    try scene.use("late.example")
    loop.advance(by: .seconds(18))
    #expect(provider.refreshes.flatMap(\.questions).map(\.name) == [name("late.example")])
    try scene.use("late.example")
  }

  @Test func `the budget counts transfers, also if every provider fails`() throws {
    var works = true
    let providers = ["one", "two", "three"].map { text in
      ScriptedUpstream(text, on: loop) { question, _ in
        works
          ? .answer(.addresses(question.name, "192.0.2.1", ttl: 3000), after: .zero) : .failure(after: .milliseconds(5))
      }
    }
    let scene = RefresherScene(ResolverScene(on: loop, providers)) { $0.refresh.freePerMinute = 7 }
    let names = (0..<20).map { "host\($0).example" }
    for name in names {
      _ = try scene.scene.answer(name)
      try scene.use(name, times: 5)
    }
    works = false
    let before = providers.reduce(0) { $0 + $1.count }
    scene.scene.cache.beginEpoch()
    for name in names { try scene.use(name, times: 2) }
    scene.refresher.networkHasChanged()
    loop.advance(by: .seconds(5))
    let asked = providers.reduce(0) { $0 + $1.count } - before
    #expect((1...7).contains(asked))
    #expect(UInt64(asked) == scene.refresher.counters.transfers)
  }

  @Test func `a budget that is spent has a line a minute`() throws {
    let provider = provider(ttl: 60)
    let scene = RefresherScene(ResolverScene(on: loop, [provider])) { $0.refresh.freePerMinute = 1 }
    let names = (0..<20).map { "host\($0).example" }
    for _ in 0..<590 {
      for name in names { scene.scene.ask(name) }
      loop.advance(by: .seconds(1))
    }
    #expect((9...10).contains(scene.log.count))
    #expect(scene.log.first?.hasPrefix("refresh budget used up") == true)
  }

  @Test func `refreshes use at most half of the places in flight`() throws {
    let provider = ScriptedUpstream(on: loop) { question, number in
      number < 40 ? .answer(.addresses(question.name, "192.0.2.1", ttl: 20), after: .zero) : .silence
    }
    let scene = RefresherScene(ResolverScene(on: loop, [provider]) { $0.listen.maxInFlight = 20 })
    let names = (0..<40).map { "host\($0).example" }
    for name in names {
      _ = try scene.scene.answer(name)
      try scene.use(name, times: 5)
    }
    for _ in 0..<80 {
      loop.advance(by: .milliseconds(250))
      #expect(scene.scene.inFlight <= 10)
    }
  }
}
