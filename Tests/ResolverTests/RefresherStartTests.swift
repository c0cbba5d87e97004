// RefresherStartTests.swift -- what is known at the start is not asked for, and what is hot stays hot.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Refresh
import Synchronization
import TestSupport
import Testing

@testable import Persistence
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `With a cache from a file` {
  private let loop = SimulatedLoop()
  private let provider: ScriptedUpstream
  private let scene: ResolverScene

  init() {
    provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .zero)
    }
    scene = ResolverScene(on: loop, [provider])
  }

  /// Has an entry, as a file may: asked for `age` seconds ago, with those hits.
  private func load(_ text: String, age: Int, hits: Int, source: EntrySource = .provider(0)) throws -> LoadedEntry {
    _ = try scene.answer(text)
    for _ in 0..<hits { _ = try scene.answer(text) }
    loop.advance(by: .seconds(age))
    var life = EntryLife(lifetime: 100)
    life.source = source.number
    let key = scene.key(text)
    let state = try #require(scene.cache.state(hash: key))
    return LoadedEntry(hash: key, storedAt: state.storedAt, life: life, isNXDOMAIN: false)
  }

  private func refresher(keep: [String] = []) -> Refresher {
    let asked = keep.map { RoutedQuestion(question: HTTPDNSQuestion(name: name($0), type: .a), route: 0) }
    return Refresher(
      RefresherScene.settings, keep: asked, preload: [], resolver: scene.resolver, cache: scene.cache, loop: loop,
      note: { _ in })
  }

  @Test func `after a flush only names are fetched whose entries are gone, and a line a minute says so`() throws {
    _ = try scene.answer("stays.example")
    let notes = Mutex<[String]>([])
    let refresher = Refresher(
      RefresherScene.settings, keep: [], preload: [], resolver: scene.resolver, cache: scene.cache, loop: loop,
      note: { text in notes.withLock { $0.append(text) } })
    func flushed(_ texts: String...) {
      refresher.mayHaveBeenFlushed(
        texts.map { RoutedQuestion(question: HTTPDNSQuestion(name: name($0), type: .a), route: 0) })
      loop.advance(by: .seconds(1))
    }
    flushed("stays.example", "gone.example")
    #expect(provider.refreshes.flatMap(\.questions).map(\.name) == [name("gone.example")])
    flushed("second.example")
    #expect(notes.withLock { $0 } == ["1 of 1 names and types resolved after a flush in 0 ms"])
    loop.advance(by: .seconds(60))
    flushed("third.example")
    let expected = ["gone", "second", "third"].map { name("\($0).example") }
    #expect(provider.refreshes.flatMap(\.questions).map(\.name) == expected)
    #expect(notes.withLock(\.count) == 2)
  }

  @Test func `loaded hot names are fetched when due, the others expire`() throws {
    let entries = [try load("hot.example", age: 0, hits: 5), try load("cold.example", age: 50, hits: 4)]
    let refresher = refresher()
    refresher.begin()
    refresher.schedule(entries)
    refresher.start()
    loop.advance(by: .seconds(49))
    #expect(provider.refreshes.flatMap(\.questions).map(\.name) == [name("hot.example")])
    #expect(provider.asked.count == 2)
    #expect((17.0...33.0).contains(Double((provider.refreshes[0].at - loop.now).nanoseconds) / 1e9 + 49))
  }

  @Test func `a hot name whose time came while the machine was off is fetched at once`() throws {
    let entry = try load("hot.example", age: 95, hits: 5)
    let refresher = refresher()
    refresher.begin()
    refresher.schedule([entry])
    loop.advance(by: .zero)
    #expect(provider.refreshes.count == 1)
  }

  @Test func `a fresh name of the keep list is not fetched at start, but when due`() throws {
    let entry = try load("www.example.com", age: 10, hits: 0)
    let refresher = refresher(keep: ["www.example.com", "other.example"])
    refresher.begin()
    refresher.schedule([entry])
    refresher.start()
    loop.advance(by: .zero)
    #expect(provider.asked.map(\.question.name) == [name("www.example.com"), name("other.example")])
    loop.advance(by: .seconds(73))
    #expect(provider.refreshes.flatMap(\.questions).map(\.name).contains(name("www.example.com")))
  }

  @Test func `a name that a client has asked for while others were fetched at start is not fetched again`() throws {
    let slow = ScriptedUpstream(on: loop) { question, _ in
      let delay = question.name == name("last.example") ? Duration.zero : .seconds(3)
      return .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: delay)
    }
    let scene = ResolverScene(on: loop, [slow])
    // Eight are fetched at a time.
    let keep = (0..<8).map { "n\($0).example" } + ["last.example"]
    let refresher = Refresher(
      RefresherScene.settings,
      keep: keep.map { RoutedQuestion(question: HTTPDNSQuestion(name: name($0), type: .a), route: 0) }, preload: [],
      resolver: scene.resolver, cache: scene.cache, loop: loop, note: { _ in })
    refresher.begin()
    refresher.start()
    loop.advance(by: .seconds(1))
    #expect(slow.asked.count == 8)
    _ = try scene.answer("last.example")
    loop.advance(by: .seconds(5))
    #expect(slow.asked.count { $0.question.name == name("last.example") } == 1)
  }

  @Test func `keep list names are fetched on each network if answers belong to one`() throws {
    let scene = ResolverScene(on: loop, [provider]) { $0.routes[0].belongsToNetwork = true }
    scene.network.change(to: 7)
    let asked = RoutedQuestion(question: HTTPDNSQuestion(name: name("www.example.com"), type: .a), route: 0)
    let refresher = Refresher(
      RefresherScene.settings, keep: [asked], preload: [], resolver: scene.resolver, cache: scene.cache, loop: loop,
      note: { _ in })
    refresher.begin()
    refresher.start()
    loop.advance(by: .seconds(200))
    let atHome = provider.refreshes.count
    #expect((2...3).contains(atHome))
    scene.network.change(to: 8)
    refresher.networkHasChanged()
    for _ in 0..<200 {
      loop.advance(by: .seconds(1))
      #expect(try scene.reply(scene.ask("www.example.com")).after == .zero)
    }
    #expect((atHome + 2...atHome + 3).contains(provider.refreshes.count))
    #expect(refresher.scheduled <= 2)
  }

  @Test func `hot names stay hot on another network`() throws {
    let hot = RefresherScene(scene)
    _ = try scene.answer("hot.example")
    try hot.use("hot.example", times: 5)
    hot.refresher.networkHasChanged()
    loop.advance(by: .zero)
    try hot.use("hot.example")
    let asked = provider.asked.count
    for _ in 0..<100 {
      loop.advance(by: .seconds(5))
      try hot.use("hot.example")
    }
    #expect(provider.asked.count == asked)
  }
}

extension ResolverScene {
  /// The hash under which the cache has the answer to a question of type A.
  fileprivate func key(_ text: String) -> UInt64 {
    resolver.assumeIsolated {
      $0.keyedHash(of: RoutedQuestion(question: HTTPDNSQuestion(name: name(text), type: .a), route: 0))
    }
  }
}
