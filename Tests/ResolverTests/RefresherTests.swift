// RefresherTests.swift -- names in use are fetched before they expire: which, when, from which upstream, at what cost.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import Refresh
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// A resolver that keeps fresh what is in use.
final class RefresherScene {
  let scene: ResolverScene
  let refresher: Refresher
  let loop: SimulatedLoop
  private(set) var notes: [String] = []
  private let begin: BootInstant

  /// The default settings, but for the budget of transfers that are not billed.
  static let settings: Configuration = {
    var configuration = Configuration()
    configuration.refresh.freePerMinute = 60
    return configuration
  }()

  init(
    _ scene: ResolverScene, keep: [String] = [], preload: [String] = [], types: [RecordType] = [.a],
    _ configure: (inout Configuration) -> Void = { _ in }
  ) {
    var settings = RefresherScene.settings
    configure(&settings)
    self.scene = scene
    loop = scene.loop
    begin = loop.now
    func routed(_ names: [String]) -> [RoutedQuestion] {
      names.flatMap { text in
        types.map { RoutedQuestion(question: HTTPDNSQuestion(name: name(text), type: $0), route: 0) }
      }
    }
    let box = Box()
    refresher = Refresher(
      settings, keep: routed(keep), preload: routed(preload), resolver: scene.resolver, cache: scene.cache, loop: loop
    ) { box.lines.append($0) }
    noteBox = box
    refresher.begin()
    refresher.start()
    loop.advance(by: .zero)
  }

  private final class Box { var lines: [String] = [] }
  private let noteBox: Box
  /// What was logged.
  var log: [String] { noteBox.lines }

  /// Seconds since the beginning.
  func seconds(_ instant: BootInstant) -> Double { Double((instant - begin).nanoseconds) / 1e9 }

  /// When background transfers were made.
  func refreshes(_ upstream: ScriptedUpstream) -> [Double] { upstream.refreshes.map { seconds($0.at) } }

  /// Uses a name, which must be at hand.
  func use(_ name: String, _ type: RecordType = .a, times: Int = 1, _ location: SourceLocation = #_sourceLocation)
    throws
  {
    for _ in 0..<times {
      #expect(try scene.reply(scene.ask(name, type)).after == .zero, sourceLocation: location)
    }
  }
}

@Suite struct RefresherTests {
  let loop = SimulatedLoop()

  private func provider(ttl: UInt32 = 100, after latency: Duration = .zero, mostNames: Int = 0) -> ScriptedUpstream {
    let upstream = ScriptedUpstream(on: loop) { question, _ in
      .answer(
        .addresses(question.name, question.type == .a ? "192.0.2.1" : "2001:db8::1", ttl: ttl), after: latency)
    }
    upstream.traits.mostNames = mostNames
    return upstream
  }

  @Test func `a keep list name is fetched at start and at 75 % of its TTL`() throws {
    let provider = provider()
    let kept = RefresherScene(ResolverScene(on: loop, [provider]), keep: ["www.example.com"])
    for _ in 0..<1000 {
      loop.advance(by: .seconds(1))
      try kept.use("www.example.com")
    }
    #expect(provider.asked.count == 1)
    let times = [0] + kept.refreshes(provider)
    for (last, next) in zip(times, times.dropFirst()) { #expect((67.5...82.5).contains(next - last)) }
    #expect((13...15).contains(times.count))
    #expect(loop.timers.count == 1)
    #expect(kept.log == ["1 of 1 names and types resolved at start in 0 ms"])
  }

  @Test func `hot names are fetched early, the others expire`() throws {
    let provider = provider()
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    for name in ["hot.example", "warm.example"] { _ = try scene.scene.answer(name) }
    try scene.use("hot.example", times: 5)
    try scene.use("warm.example", times: 4)
    loop.advance(by: .seconds(90))
    #expect(provider.refreshes.map(\.questions) == [[HTTPDNSQuestion(name: name("hot.example"), type: .a)]])
    loop.advance(by: .seconds(11))
    try scene.use("hot.example")
    #expect(try scene.scene.answer("warm.example").addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 3)
  }

  @Test func `a name expires after three refreshes without a hit`() throws {
    let provider = provider()
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 5)
    loop.advance(by: .seconds(1000))
    #expect(provider.refreshes.count == 3)
    #expect(scene.refresher.scheduled == 0)
    #expect(loop.timers.count == 0)
  }

  @Test func `one hit in a lifetime keeps a hot name hot`() throws {
    let provider = provider()
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 5)
    for _ in 0..<20 {
      loop.advance(by: .seconds(65))
      try scene.use("www.example.com")
    }
    #expect(provider.asked.count == 1)
    #expect(provider.refreshes.count > 10)
  }

  @Test func `hot_hits = 0 disables refreshing of hot names`() throws {
    let provider = provider()
    let scene = RefresherScene(ResolverScene(on: loop, [provider])) { $0.refresh.hotHits = 0 }
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 1000)
    loop.advance(by: .seconds(100))
    #expect(provider.refreshes.isEmpty)
  }

  @Test func `a failed refresh leaves the entry and is retried before it expires`() throws {
    var failures = 0
    let provider = ScriptedUpstream(on: loop) { question, number in
      guard (1...2).contains(number) else {
        return .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .zero)
      }
      failures += 1
      return .failure(after: .zero)
    }
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 5)
    for _ in 0..<110 {
      loop.advance(by: .seconds(1))
      try scene.use("www.example.com")
    }
    #expect(failures == 2)
    #expect(provider.asked.count == 1)
    #expect(provider.refreshes.count == 3)
    #expect(scene.scene.counters.failures == 0)
  }

  @Test func `refreshes beyond the budget are postponed`() throws {
    let provider = provider(ttl: 60)
    let scene = RefresherScene(ResolverScene(on: loop, [provider])) { $0.refresh.freePerMinute = 7 }
    let names = (0..<20).map { "host\($0).example" }
    for name in names { _ = try scene.scene.answer(name) }
    for _ in 0..<600 {
      for name in names { scene.scene.ask(name) }
      loop.advance(by: .seconds(1))
    }
    let times = scene.refreshes(provider)
    #expect(times.count > 50)
    for time in times { #expect(times.count { (time...(time + 60)).contains($0) } <= 7) }
  }

  @Test func `a failing provider gets no background refreshes`() throws {
    let provider = provider()
    let scene = RefresherScene(ResolverScene(on: loop, [provider]), keep: ["kept.example"])
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 5)
    provider.isFit = false
    loop.advance(by: .seconds(99))
    #expect(provider.refreshes.isEmpty)
    provider.isFit = true
    loop.advance(by: .seconds(300))
    #expect(provider.refreshes.map { $0.questions[0].name }.contains(name("kept.example")))
  }

  @Test func `names that the provider does not list are refreshed from LocalDNS, and spoil no transfer`() throws {
    let provider = provider(mostNames: 5)
    provider.unlisted = [name("unlisted.example")]
    provider.script = { question, _ in
      provider.unlisted.contains(question.name)
        ? .answer(HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: true), after: .zero)
        : .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .zero)
    }
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.9", ttl: 100), after: .zero)
    }
    let scene = RefresherScene(
      ResolverScene(on: loop, [provider], local: local), keep: ["listed.example", "unlisted.example"])
    loop.advance(by: .seconds(1000))
    #expect(provider.refreshes.count >= 11 && provider.refreshes.allSatisfy { $0.questions.count == 1 })
    #expect(local.asked.count >= 11)
    try scene.use("unlisted.example")
  }

  @Test func `a name that LocalDNS answered travels alone, until the provider answers it`() throws {
    let provider = provider(mostNames: 5)
    let good = provider.script
    provider.unlisted = [name("unlisted.example")]
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.9", ttl: 100), after: .zero)
    }
    let isListed = TestFlag()
    provider.script = { question, number in
      question.name == name("unlisted.example") && !isListed.isOn ? .failure(after: .zero) : good(question, number)
    }
    let names = (0..<4).map { "n\($0).example" }
    let scene = RefresherScene(ResolverScene(on: loop, [provider], local: local), keep: names + ["unlisted.example"])
    provider.unlisted = []
    func together() -> [Int] {
      provider.refreshes.filter { $0.questions.contains { $0.name == name("unlisted.example") } }.map(\.questions.count)
    }
    loop.advance(by: .seconds(2000))
    #expect(together().count > 5 && together().allSatisfy { $0 == 1 })
    isListed.isOn = true
    // Jitter moves it to and fro between the others' times, until it falls due with them.
    for _ in 0..<100 where together().allSatisfy({ $0 == 1 }) { loop.advance(by: .seconds(2000)) }
    #expect(together().contains { $0 > 1 })
    try scene.use("unlisted.example")
  }

  @Test func `both families and several names share a transfer if the dialect can`() throws {
    let provider = provider(mostNames: 5)
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    let names = (0..<7).map { "host\($0).example" }
    for name in names {
      for type in [RecordType.a, .aaaa] {
        _ = try scene.scene.answer(name, type)
        try scene.use(name, type, times: 5)
      }
    }
    loop.advance(by: .seconds(99))
    #expect(provider.refreshes.map(\.questions.count) == [10, 4])
    #expect(Set(provider.refreshes.flatMap(\.questions)).count == 14)
  }

  @Test(arguments: [60, 2]) func `each name of a refused transfer is asked for alone once, within the budget`(
    budget: Int
  ) throws {
    let provider = provider(mostNames: 5)
    provider.refusedAmongOthers = [name("b.example")]
    let names = ["a.example", "b.example", "c.example"]
    let scene = RefresherScene(ResolverScene(on: loop, [provider]), keep: names, types: [.a, .aaaa]) {
      $0.refresh.freePerMinute = budget
    }
    #expect(provider.refreshes.map(\.questions.count) == [6] + [2, 2, 2].prefix(budget))
    let alone = provider.refreshes.dropFirst().map { Set($0.questions.map(\.name)) }
    #expect(alone == names.prefix(budget).map { [name($0)] })
    // What the budget does not pay for is asked for as for a client: these are the first answers.
    #expect(provider.asked.count == (budget == 2 ? 2 : 0))
    for name in names { for type in [RecordType.a, .aaaa] { try scene.use(name, type) } }
  }

  @Test func `after a refused transfer no name is asked for alone, nor paid for, if the provider is no longer fit`()
    throws
  {
    let provider = provider(mostNames: 5)
    let good = provider.script
    provider.script = { question, number in
      provider.isFit = number != 0
      return good(question, number)
    }
    provider.refusedAmongOthers = [name("b.example")]
    let scene = RefresherScene(ResolverScene(on: loop, [provider]), keep: ["a.example", "b.example"])
    #expect(provider.refreshes.map(\.questions.count) == [2])
    // As for a client.
    #expect(provider.asked.count == 2 && scene.refresher.counters.transfers == 0)
  }

  @Test func `where each transfer has both families, names that need one or both share it, and each answer is used`()
    throws
  {
    let provider = provider(mostNames: 5)
    provider.traits.families = .both
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    let wanted: [(String, RecordType)] = [
      ("one.example", .a), ("two.example", .aaaa), ("three.example", .a), ("three.example", .aaaa),
    ]
    for (name, type) in wanted {
      _ = try scene.scene.answer(name, type)
      try scene.use(name, type, times: 5)
    }
    provider.along = { question in
      guard question.name == name("one.example") else { return [] }
      let other = HTTPDNSQuestion(name: question.name, type: .aaaa)
      return [(other, .addresses(question.name, "2001:db8::7", ttl: 100))]
    }
    loop.advance(by: .seconds(99))
    #expect(provider.refreshes.map(\.questions.count) == [4])
    try scene.use("one.example", .aaaa)
  }

  @Test func `without batches both families still travel together`() throws {
    let provider = provider(mostNames: 5)
    let scene = RefresherScene(ResolverScene(on: loop, [provider])) { $0.refresh.batch = false }
    for name in ["one.example", "two.example"] {
      for type in [RecordType.a, .aaaa] {
        _ = try scene.scene.answer(name, type)
        try scene.use(name, type, times: 5)
      }
    }
    loop.advance(by: .seconds(99))
    #expect(provider.refreshes.map(\.questions.count) == [2, 2])
  }

  @Test func `a client that asks during a refresh waits for the same transfer`() throws {
    let provider = provider(ttl: 20, after: .milliseconds(1900))
    let scene = RefresherScene(ResolverScene(on: loop, [provider]), keep: ["www.example.com"])
    let first = scene.scene.ask("www.example.com")
    loop.advance(by: .seconds(2))
    #expect(try scene.scene.reply(first).after == .milliseconds(1900))
    #expect(provider.asked.count + provider.refreshes.count == 1)
  }

  @Test func `preloaded names are asked for once at start and again on another network, hot ones too`() throws {
    let provider = provider(ttl: 3600)
    let scene = RefresherScene(ResolverScene(on: loop, [provider]), preload: ["a.example", "b.example"])
    #expect(provider.asked.count == 2)
    #expect(scene.log == ["2 of 2 names and types resolved at start in 0 ms"])
    _ = try scene.scene.answer("hot.example")
    _ = try scene.scene.answer("cold.example")
    try scene.use("hot.example", times: 5)
    scene.refresher.networkHasChanged()
    loop.advance(by: .zero)
    #expect(
      provider.refreshes.flatMap(\.questions).map(\.name) == ["a.example", "b.example", "hot.example"].map { name($0) })
    #expect(scene.log.last == "3 of 3 names and types resolved for another network in 0 ms")
  }
}
