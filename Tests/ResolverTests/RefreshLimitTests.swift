// RefreshLimitTests.swift -- what simulated lives have shown once: batches with gaps, another network, a machine that slept.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct RefreshLimitTests {
  private let loop = SimulatedLoop()

  private func fairPlan(_ dialect: LifeDialect) -> LifePlan {
    var plan = LifePlan(seed: testSeed, span: 0, rate: 1)
    plan.dialect = dialect
    (plan.servers, plan.isSlow, plan.isDual, plan.hasOutages, plan.hasRemovals) = (1, false, true, false, false)
    return plan
  }

  @Test(arguments: [LifeDialect.emas, .tencent, .baidu])
  func `a family in flight does not keep its batch from being asked`(_ dialect: LifeDialect) throws {
    let plan = fairPlan(dialect)
    let service = LifeService(plan, LifeZone(plan), LifeWeather(plan), on: loop)
    nonisolated(unsafe) let provider = LifeProvider(plan, service, on: loop)
    let asked = [("host0", RecordType.a), ("host0", .aaaa), ("host1", .a)].map {
      HTTPDNSQuestion(name: name("\($0.0).example"), type: $0.1)
    }
    let result = loop.run { [loop] in await provider.refresh(asked, deadline: loop.now + .seconds(4)) }
    let answers = try result.get()
    #expect(asked.allSatisfy { (try? answers[$0]?.get().answer.answers.isEmpty) == false })
    #expect(service.transfers == 1)
  }

  @Test func `a response that was on its way while the machine slept does not count`() {
    let plan = fairPlan(.json)
    let service = LifeService(plan, LifeZone(plan), LifeWeather(plan), on: loop)
    nonisolated(unsafe) let provider = LifeProvider(plan, service, on: loop)
    let question = HTTPDNSQuestion(name: name("host0.example"), type: .a)
    loop.schedule(after: .milliseconds(1)) { [loop] in loop.sleep(through: .seconds(3600)) }
    let result = loop.run { [loop] in
      await provider.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: true)
    }
    guard case .failure(let failure) = result else {
      Issue.record("an answer that is an hour old")
      return
    }
    #expect(failure.reason.contains("slept"))
  }

  @Test func `another network costs one attempt for stale data, and the half minute begins again`() throws {
    let provider = ScriptedUpstream(on: loop) { question, number in
      number == 0 ? .answer(.addresses(question.name, "192.0.2.1", ttl: 5)) : .failure()
    }
    let scene = ResolverScene(on: loop, [provider]) {
      $0.routes[0].stale.mode = .onFailure
      $0.routes[0].stale.maxAge = 3600
    }
    func ask(after seconds: Int) throws -> Duration {
      loop.advance(by: .seconds(seconds))
      let number = scene.ask("www.example.com")
      loop.advance(by: .milliseconds(100))
      return try scene.reply(number).after
    }
    #expect(try ask(after: 0) == .milliseconds(20))
    #expect(try ask(after: 6) == .milliseconds(20))
    scene.cache.beginEpoch()
    #expect(try ask(after: 20) == .zero)
    #expect(provider.count == 3)
    for _ in 0..<4 { #expect(try ask(after: 7) == .zero) }
    #expect(provider.count == 3)
    #expect(try ask(after: 7) == .milliseconds(20))
  }

  @Test func `fresh answers are refreshed on another network within the budget only`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 3000), after: .zero)
    }
    let scene = RefresherScene(ResolverScene(on: loop, [provider])) { $0.refresh.freePerMinute = 7 }
    let names = (0..<20).map { "host\($0).example" }
    for name in names { _ = try scene.scene.answer(name) }
    scene.scene.cache.beginEpoch()
    for name in names { try scene.use(name, times: 2) }
    loop.advance(by: .zero)
    #expect(provider.count == 27)
    #expect(scene.refresher.counters.overBudget == 13)
  }

  @Test func `a refresh that finds its question in flight is tried again if that fails`() throws {
    let provider = ScriptedUpstream(on: loop) { question, number in
      number == 1 ? .silence : .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .zero)
    }
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 5)
    // Just before it is due, whenever that is, another network asks without success.
    let due = try #require(loop.timers.earliest)
    loop.advance(by: due - loop.now - .milliseconds(500))
    scene.scene.cache.beginEpoch()
    try scene.use("www.example.com")
    loop.advance(by: .seconds(25))
    #expect(provider.asked.count == 1)
    #expect(provider.refreshes.count == 2)
  }

  @Test func `an answer that arrived while its refresh was gathered is not fetched again`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 1000), after: .seconds(1))
    }
    provider.traits.mostNames = 5
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 5)
    let due = try #require(loop.timers.earliest)
    loop.advance(by: due - loop.now - .milliseconds(500))
    scene.refresher.networkHasChanged()
    loop.advance(by: .seconds(200))
    #expect(provider.asked.count + provider.refreshes.count == 2)
  }
}
