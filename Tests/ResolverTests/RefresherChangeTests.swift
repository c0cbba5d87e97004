// RefresherChangeTests.swift -- other settings for a refresher that is at work.

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

@Suite struct `A refresher with other settings` {
  private let loop = SimulatedLoop()
  private let provider: ScriptedUpstream

  init() {
    provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .zero)
    }
  }

  private func asked(_ text: String) -> RoutedQuestion {
    RoutedQuestion(question: HTTPDNSQuestion(name: name(text), type: .a), route: 0)
  }

  private var settings: Configuration { RefresherScene.settings }

  @Test func `a reload fetches new names of the keep list and continues with the others`() throws {
    let kept = RefresherScene(ResolverScene(on: loop, [provider]), keep: ["a.example"], preload: ["p.example"])
    loop.advance(by: .seconds(50))
    #expect(provider.asked.count == 2)
    kept.refresher.use(
      settings, keep: [asked("a.example"), asked("b.example")], preload: [asked("p.example"), asked("q.example")])
    loop.advance(by: .zero)
    #expect(provider.asked.dropFirst(2).map(\.question.name) == [name("b.example"), name("q.example")])
    #expect(kept.log.last == "2 of 2 names and types resolved after the reload in 0 ms")
    for _ in 0..<500 {
      loop.advance(by: .seconds(1))
      try kept.use("a.example")
      try kept.use("b.example")
    }
    #expect(provider.asked.count == 4)
  }

  @Test func `a reload drops names that left the keep list`() throws {
    let kept = RefresherScene(ResolverScene(on: loop, [provider]), keep: ["a.example", "b.example"])
    loop.advance(by: .seconds(10))
    kept.refresher.use(settings, keep: [asked("b.example")], preload: [])
    loop.advance(by: .seconds(1000))
    #expect(Set(provider.refreshes.flatMap(\.questions).map(\.name)) == [name("b.example")])
  }

  @Test func `a reload reschedules hot names`() throws {
    let scene = RefresherScene(ResolverScene(on: loop, [provider]))
    _ = try scene.scene.answer("www.example.com")
    try scene.use("www.example.com", times: 5)
    var later = settings
    later.refresh.at = 0.9
    scene.refresher.use(later, keep: [], preload: [])
    for _ in 0..<300 {
      loop.advance(by: .seconds(1))
      try scene.use("www.example.com")
    }
    #expect(provider.asked.count == 1)
    #expect(provider.refreshes.count >= 3)
  }

  @Test func `a reload retains what was spent of an unchanged budget`() throws {
    let scene = RefresherScene(ResolverScene(on: loop, [provider])) { $0.refresh.budgetPerDay = 2 }
    provider.traits.refreshPrice = .oneUnit
    func spend() throws {
      for text in ["a.example", "b.example"] {
        _ = try scene.scene.answer(text)
        try scene.use(text, times: 5)
      }
      loop.advance(by: .seconds(99))
    }
    try spend()
    #expect(provider.refreshes.count == 2)
    var same = settings
    same.refresh.budgetPerDay = 2
    scene.refresher.use(same, keep: [], preload: [])
    loop.advance(by: .seconds(200))
    try spend()
    #expect(provider.refreshes.count == 2)
    same.refresh.budgetPerDay = 3
    scene.refresher.use(same, keep: [], preload: [])
    loop.advance(by: .seconds(200))
    try spend()
    #expect(provider.refreshes.count > 2)
  }
}
