// InspectionTests.swift -- what an operator sees of a name, refreshes, and reports as bad.

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
@testable import Ranking
@testable import Resolver
@testable import Upstreams

@Suite struct InspectionTests {
  let loop = SimulatedLoop()

  private func content(_ scene: ResolverScene, _ text: String) -> NameContent {
    loop.run { await scene.resolver.console { await $0.content(of: name(text)) } }
  }

  private func refresh(
    _ scene: ResolverScene, _ text: String, _ types: [RecordType] = [], onlyThese: Bool = false
  ) -> RefreshSummary {
    loop.run { await scene.resolver.refresh(name(text), types: types.map { ($0, 0) }, onlyThese: onlyThese) }
  }

  private func bad(_ scene: ResolverScene, _ address: String, _ text: String) -> BadAddressOutcome {
    loop.run { await scene.resolver.console { await $0.reportBad(IPAddress(text: address)!, of: name(text)) } }
  }

  private func addresses(_ scene: ResolverScene, times: Int, _ type: RecordType = .a) throws -> [[String]] {
    try (0..<times).map { _ in try scene.answer("www.example.com", type).addresses }
  }

  @Test func `an entry is shown with its remaining time, source and hits`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", "192.0.2.2", ttl: 100))
    }
    let scene = ResolverScene(on: loop, [provider]) { $0.routes[0].stale = .tested(.onFailure, maxAge: 1000) }
    _ = try scene.answer("www.example.com")
    loop.advance(by: .seconds(30))
    for _ in 0..<3 { _ = try scene.answer("WWW.example.com") }
    let seen = content(scene, "www.example.com")
    try #require(seen.entries.count == 1)
    let entry = seen.entries[0]
    #expect(entry.source == "first" && entry.upstreams == ["first", "localdns"] && entry.hits == 3)
    #expect(entry.answers.map(\.ttl) == [70, 70] && entry.authorities.isEmpty)
    #expect(abs((entry.age - .seconds(30)).nanoseconds) < 100_000_000)
    #expect(abs((entry.freshFor - .seconds(70)).nanoseconds) < 100_000_000)
    #expect(entry.usefulFor.map { abs(($0 - .seconds(1070)).nanoseconds) < 100_000_000 } == true)
    #expect(entry.question.type == .a && entry.question.isHere && entry.question.subnet == nil)
    loop.advance(by: .seconds(100))
    let stale = try #require(content(scene, "www.example.com").entries.first)
    #expect(stale.freshFor < .zero && stale.answers.map(\.ttl) == [0, 0])
    loop.advance(by: .seconds(2000))
    #expect(content(scene, "www.example.com").entries.isEmpty)
  }

  @Test func `the whole cache is shown in a few figures, and its busiest entries`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      question.name == name("none.example")
        ? .answer(.negative(.nxDomain, zone: name("example")))
        : .answer(.addresses(question.name, "192.0.2.1", ttl: question.name == name("short.example") ? 10 : 1000))
    }
    let scene = ResolverScene(on: loop, [provider]) { $0.routes[0].stale = .tested(.onFailure, maxAge: 1000) }
    for text in ["short.example", "none.example"] { _ = try scene.answer(text) }
    for number in 0..<20 {
      for _ in 0...number { _ = try scene.answer("n\(number).example") }
    }
    loop.advance(by: .seconds(20))
    let seen = loop.run { await scene.resolver.console { await $0.overview(busiest: 3) } }
    #expect(seen.fresh == 21 && seen.stale == 1 && seen.negative == 1 && seen.failures == 0)
    #expect(seen.hits == (0..<20).reduce(0, +) && seen.statistics.entries == 22)
    #expect(seen.busiest.map(\.question.name) == [name("n19.example"), name("n18.example"), name("n17.example")])
    #expect(seen.busiest.map(\.hits) == [19, 18, 17] && seen.busiest[0].source == "first")
    #expect(loop.run { await scene.resolver.console { await $0.overview(busiest: 0) } }.busiest.isEmpty)
    #expect(loop.run { await scene.resolver.console { await $0.overview(busiest: 100) } }.busiest.count == 22)
  }

  @Test func `entries of every type, NXDOMAIN above the name, and failures are shown`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      switch question.type {
      case .a: .answer(.addresses(question.name, "192.0.2.1"))
      case .aaaa: .answer(.negative(.noError, zone: name("example.com")))
      case .txt: .answer(.negative(.nxDomain, zone: name("example.com")))
      default: .failure()
      }
    }
    let scene = ResolverScene(on: loop, [provider])
    for type in [RecordType.a, .aaaa] { _ = try scene.answer("a.b.example.com", type) }
    _ = try scene.answer("a.b.example.com", .mx)
    _ = try scene.answer("b.example.com", .txt)
    let seen = content(scene, "a.b.example.com")
    #expect(
      seen.entries.map(\.question.name) == [name("b.example.com"), name("a.b.example.com"), name("a.b.example.com")])
    #expect(seen.entries.map(\.question.type) == [RecordType(0), .a, .aaaa])
    #expect(seen.entries.map(\.responseCode) == [.nxDomain, .noError, .noError])
    #expect(seen.entries[2].authorities.map(\.type) == [.soa])
    #expect(seen.failures.map(\.question.type) == [.mx] && seen.failures[0].waits > .zero)
    #expect(content(scene, "c.example.com").entries.isEmpty)
  }

  @Test(arguments: [true, false])
  func `an entry in the middle of its refresh is shown as such, on the keep list or in use`(
    isOnKeepList: Bool
  )
    throws
  {
    let provider = ScriptedUpstream(on: loop) { question, number in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .milliseconds(number == 0 ? 0 : 1500))
    }
    let scene = ResolverScene(on: loop, [provider])
    let refreshing = RefresherScene(scene, keep: isOnKeepList ? ["www.example.com"] : [])
    _ = try scene.answer("www.example.com")
    if !isOnKeepList { try refreshing.use("www.example.com", times: 10) }
    func plan() throws -> RefreshPlan { try #require(content(scene, "www.example.com").entries.first).refresh }
    func time(_ plan: RefreshPlan) -> Duration? {
      switch plan {
      case .keepList(let time): isOnKeepList ? time : nil
      case .hot(let time): isOnKeepList ? nil : time
      case .none, .inFlight, .ifHit: nil
      }
    }
    let wait = try #require(time(try plan()))
    loop.advance(by: wait + .seconds(1))
    #expect(provider.count == 2)
    #expect(try plan() == .inFlight)
    loop.advance(by: .seconds(4))
    #expect(try plan() != .inFlight)
  }

  @Test func `entries of client subnets are listed up to a limit, and the others counted`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.1")
      answer.scopePrefixLength = 24
      return .answer(answer)
    }
    provider.traits.clientSubnet = .fromClient
    let scene = ResolverScene(on: loop, [provider])
    for number in 0..<300 {
      var question = ClientQuestion(name: "www.example.com")
      question.subnet = IPPrefix(text: "10.\(number / 256).\(number % 256).0/24")
      _ = try scene.answer(question)
    }
    let seen = content(scene, "www.example.com")
    #expect(seen.entries.count == 256 && seen.more == 44)
    #expect(Set(seen.entries.compactMap { $0.question.subnet?.description }).count == 256)
    let outcome = refresh(scene, "www.example.com")
    #expect(outcome.reports.count == 64 && outcome.more == 236)
    #expect(provider.count == 364)
  }

  @Test func `a reported address is last for ten minutes, also in the next answers and for waiting clients`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", "192.0.2.2", "192.0.2.3", ttl: 100))
    }
    let scene = ResolverScene(on: loop, [provider]) { $0.routes[0].stale = .tested(.immediate, maxAge: 1000) }
    _ = try scene.answer("www.example.com")
    #expect(bad(scene, "192.0.2.2", "www.example.com") == BadAddressOutcome(moved: 1))
    #expect(bad(scene, "192.0.2.2", "www.example.com") == BadAddressOutcome(already: 1))
    #expect(bad(scene, "192.0.2.9", "www.example.com") == BadAddressOutcome())
    #expect(bad(scene, "192.0.2.2", "example.com") == BadAddressOutcome())
    #expect(try addresses(scene, times: 6).allSatisfy { $0.last == "192.0.2.2" && $0.count == 3 })
    let kept = try scene.resolver.assumeIsolated { resolver in
      let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
      let route = try #require(resolver.configuration.route(0))
      let asked = resolver.store.question(question, resolver.configuration, route)
      return resolver.store.freshAnswer(to: asked, now: loop.now)
    }
    #expect(
      kept?.response.message(to: Question(name: name("www.example.com"), type: .a))?.addresses.last == "192.0.2.2")
    loop.advance(by: .seconds(150))
    // Stale data is given at once, and the next answer behind it.
    #expect(try addresses(scene, times: 1)[0].last == "192.0.2.2")
    loop.advance(by: .seconds(1))
    #expect(try addresses(scene, times: 6).allSatisfy { $0.last == "192.0.2.2" && $0.count == 3 })
    loop.advance(by: .seconds(500))
    _ = try addresses(scene, times: 1)
    loop.advance(by: .seconds(1))
    #expect(Set(try addresses(scene, times: 6).map { $0.last! }).count == 3)
  }

  @Test func `an only address stays, and so does what is not an answer to the name`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("www.example.com")
    #expect(bad(scene, "192.0.2.1", "www.example.com") == BadAddressOutcome(alone: 1))
    #expect(try addresses(scene, times: 2) == [["192.0.2.1"], ["192.0.2.1"]])
  }

  @Test func `a refresh on demand fetches the next answer at once, and the cached one is served meanwhile`() throws {
    let provider = ScriptedUpstream(on: loop) { question, count in
      .answer(.addresses(question.name, "192.0.2.\(count + 1)", ttl: 100), after: .milliseconds(500))
    }
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("www.example.com")
    var question = ClientQuestion(name: "www.example.com")
    question.dnssecOK = true
    _ = try scene.answer(question)
    let summary: RefreshSummary = loop.run { [loop] in
      loop.schedule(after: .milliseconds(100)) { scene.ask("www.example.com") }
      return await scene.resolver.refresh(name("www.example.com"), types: [], onlyThese: false)
    }
    #expect(scene.transactions.last?.replies.first?.message.addresses == ["192.0.2.1"])
    #expect(summary.reports.map(\.type) == [.a, .a] && summary.reports.map(\.dnssecOK).contains(true))
    #expect(summary.reports.allSatisfy { $0.answer.failure == nil && $0.time == .milliseconds(500) })
    #expect(provider.count == 4)
    #expect(try scene.answer("www.example.com").addresses != ["192.0.2.1"])
  }

  @Test func `a refresh on demand that fails changes nothing, and later queries are asked as before`() throws {
    let provider = ScriptedUpstream(on: loop) { question, count in
      count == 0 ? .answer(.addresses(question.name, "192.0.2.1", ttl: 100)) : .failure()
    }
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.66")) }
    let scene = ResolverScene(on: loop, [provider], local: local)
    _ = try scene.answer("www.example.com")
    let summary = refresh(scene, "www.example.com")
    #expect(summary.reports.map(\.answer.failure) == ["scripted"])
    #expect(local.asked.isEmpty, "a provider's fresh answer must not give way to LocalDNS's")
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    loop.advance(by: .seconds(1))
    _ = refresh(scene, "www.example.com")
    #expect(provider.count == 3)
  }

  @Test func `refresh fetches the given types, cached or not, and only them`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("www.example.com", .a)
    _ = try scene.answer("www.example.com", .mx)
    #expect(refresh(scene, "www.example.com", [.a, .txt], onlyThese: true).reports.map(\.type) == [.a, .txt])
    #expect(Set(refresh(scene, "www.example.com").reports.map(\.type)).isSuperset(of: [.a, .mx]))
    #expect(refresh(scene, "other.example.com").reports.isEmpty)
  }

  @Test func `entries of another network are shown and not refreshed`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let scene = ResolverScene(on: loop, [provider]) { $0.routes[0].belongsToNetwork = true }
    scene.network.change(to: 7)
    _ = try scene.answer("www.example.com")
    scene.network.change(to: 8)
    let entry = try #require(content(scene, "www.example.com").entries.first)
    #expect(!entry.question.isHere && entry.question.network == 7)
    let summary = refresh(scene, "www.example.com")
    #expect(summary.reports.isEmpty && summary.elsewhere == 1)
  }
}
