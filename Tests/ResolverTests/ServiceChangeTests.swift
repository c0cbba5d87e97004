// ServiceChangeTests.swift -- a resolver that is given another configuration while clients wait and ask.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A change of the configuration` {
  private let loop = SimulatedLoop()

  private func provider(
    _ label: String, _ address: String, after latency: Duration = .milliseconds(20)
  ) -> ScriptedUpstream {
    ScriptedUpstream(label, on: loop) { question, _ in
      .answer(.addresses(question.name, address), after: latency)
    }
  }

  private func rule(_ text: String, _ number: UInt16) -> RouteRule {
    RouteRule(names: [.subtree(name(text))], action: .route(number))
  }

  private func route(to provider: Int) -> Route {
    let system = [Configuration.LocalServer.system]
    return Route(providers: [provider], localServers: system, fallsBack: true, ttl: ResolverScene.bounds)
  }

  @Test func `a reload leaves questions in flight with their upstreams`() throws {
    let (old, new) = (provider("old", "192.0.2.1", after: .seconds(1)), provider("new", "192.0.2.2"))
    let scene = ResolverScene(on: loop, [old])
    let waiting = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(500))
    let finish = scene.change(to: [new])
    finish()
    // Who asks now does not wait for the old one.
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.2"])
    loop.advance(by: .seconds(1))
    #expect(try scene.reply(waiting).message.addresses == ["192.0.2.1"])
    #expect(try scene.reply(waiting).after == .seconds(1))
    #expect((old.asked.count, new.asked.count) == (1, 1))
    #expect(scene.inFlight == 0)
    #expect(scene.queries.inUse == 0)
    #expect(loop.timers.count == 0)
  }

  @Test func `a reload retains the entries of the standard route with any providers`() throws {
    let (old, new) = (provider("old", "192.0.2.1"), provider("new", "192.0.2.2"))
    let scene = ResolverScene(on: loop, [old])
    _ = try scene.answer("www.example.com")
    scene.change(to: [new], numbers: [1])()
    let hit = scene.ask("www.example.com")
    #expect(try scene.reply(hit).after == .zero)
    #expect(try scene.reply(hit).message.addresses == ["192.0.2.1"])
    #expect(new.asked.isEmpty)
  }

  @Test func `a reload applies to queries that were read before it and handed over after it`() throws {
    let (first, second) = (provider("first", "192.0.2.1"), provider("second", "192.0.2.2"))
    let old = Route.Number.firstRule
    let scene = ResolverScene(on: loop, [first, second], rules: [rule("corp.example", old)]) { [self] in
      $0.routes.append(route(to: 1))
    }
    scene.takesOver = false
    let (ruled, standard) = (scene.ask("a.corp.example"), scene.ask("www.example.com"))
    // The rule was removed, and so was its provider.
    let finish = scene.change(to: [first])
    let late = scene.ask("b.corp.example")
    finish()
    scene.takesOver = true
    loop.advance(by: .seconds(1))
    #expect(try scene.reply(ruled).message.addresses == ["192.0.2.2"])
    #expect(try scene.reply(late).message.addresses == ["192.0.2.2"])
    #expect(try scene.reply(standard).message.addresses == ["192.0.2.1"])
    // Of a rule that is no more nothing is kept.
    #expect(scene.cache.usage.entries == 1)
    #expect(try scene.answer("a.corp.example").addresses == ["192.0.2.1"])
  }

  @Test func `a reload stores answers in flight under the number of their rule`() throws {
    let (first, second) = (provider("first", "192.0.2.1"), provider("second", "192.0.2.2", after: .seconds(1)))
    let (corp, lab) = (Route.Number.firstRule, Route.Number.firstRule + 1)
    let scene = ResolverScene(on: loop, [first, second], rules: [rule("corp.example", corp)]) { [self] in
      $0.routes.append(route(to: 1))
    }
    let waiting = scene.ask("a.corp.example")
    loop.advance(by: .milliseconds(100))
    // Another provider comes before it, and another rule: places change, numbers do not.
    let third = provider("third", "192.0.2.3")
    scene.change(
      to: [third, first, second], numbers: [2, 0, 1], rules: [rule("lab.example", lab), rule("corp.example", corp)]
    ) { [self] in
      $0.routes += [route(to: 2), route(to: 0)]
    }()
    loop.advance(by: .seconds(1))
    #expect(try scene.reply(waiting).message.addresses == ["192.0.2.2"])
    let hit = scene.ask("a.corp.example")
    #expect(try scene.reply(hit).after == .zero)
    #expect(try scene.reply(hit).message.addresses == ["192.0.2.2"])
    #expect(try scene.answer("a.lab.example").addresses == ["192.0.2.3"])
  }

  @Test func `a reload forgets failures`() throws {
    let old = ScriptedUpstream("old", on: loop) { _, _ in .failure() }
    let scene = ResolverScene(on: loop, [old])
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    let waiting = scene.ask("slow.example.com")
    scene.change(to: [provider("new", "192.0.2.2")])()
    // One that fails afterwards says nothing about the new provider.
    loop.advance(by: .milliseconds(30))
    #expect(try scene.reply(waiting).message.responseCode == .servFail)
    for text in ["www.example.com", "slow.example.com"] {
      #expect(try scene.answer(text).addresses == ["192.0.2.2"])
    }
  }

  @Test func `the previous configuration is released when nothing is in flight, a hundred times`() throws {
    let scene = ResolverScene(on: loop, [provider("p", "192.0.2.1", after: .seconds(1))])
    weak var last: ResolverConfiguration?
    for number in 0..<100 {
      scene.ask("n\(number).example.com")
      last = scene.resolver.assumeIsolated { $0.configuration }
      scene.change(to: [provider("p", "192.0.2.1", after: .seconds(1))])()
      #expect(last != nil)
      loop.advance(by: .seconds(2))
      #expect(last == nil)
    }
    #expect(scene.transactions.allSatisfy { $0.replies.count == 1 })
    #expect(loop.timers.count == 0)
  }

  @Test func `a refresh after a reload asks the same upstream, or another one if it was removed`() throws {
    let (first, second) = (provider("first", "192.0.2.1"), provider("second", "192.0.2.2"))
    let scene = ResolverScene(on: loop, [first, second])
    let refresher = RefresherScene(scene)
    _ = try scene.answer("www.example.com")
    try refresher.use("www.example.com", times: 5)
    scene.change(to: [second, first], numbers: [1, 0])()
    loop.advance(by: .seconds(280))
    #expect((first.refreshes.count, second.refreshes.count) == (1, 0))
    try refresher.use("www.example.com", times: 5)
    scene.change(to: [second], numbers: [1])()
    loop.advance(by: .seconds(280))
    #expect((first.refreshes.count, second.refreshes.count) == (1, 1))
  }
}
