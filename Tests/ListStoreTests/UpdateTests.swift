// UpdateTests.swift -- updates on request, builds and their pauses, and names in all.

import EventLoop
import TestSupport
import Testing

@testable import ListStore

@Suite struct `An update` {
  private let scene = Scene()

  private func start(_ answers: ScriptedFetcher.Answer...) {
    scene.fetcher.answers[url] = answers
    scene.use(.url())
    scene.store.start()
    scene.loop.advance(by: .seconds(10))
  }

  private func update(_ name: String?) -> [ListUpdate] { scene.loop.run { await self.scene.store.update(name) } }

  @Test func `an update returns when the list is in use`() {
    start(.text("a.example"), .text("a.example\nb.example"))
    let updates = update("office")
    #expect(updates.map(\.result) == [.changed(names: 2)] && scene.report().names == 2)
    // Without the second for other changes.
    #expect(scene.loop.now - scene.start < .seconds(13))
  }

  @Test func `an update says that nothing has changed, or why it failed`() {
    start(.text("a.example"), .unchanged, .fault(.failed("timeout")), .text("<html>"))
    #expect(update(nil).map(\.result) == [.unchanged])
    #expect(update("office").map(\.result) == [.fault(.failed("timeout"))])
    #expect(update("office").map(\.result) == [.fault(.refused(.markup))])
    #expect(update("no such list").isEmpty)
  }

  @Test func `an update joins the fetch in flight`() {
    scene.fetcher.answers[url] = [.text("a.example")]
    scene.use(.url())
    scene.store.start()
    scene.loop.advance(by: .seconds(1))
    #expect(update("office").map(\.result) == [.changed(names: 1)])
    #expect(scene.fetcher.requests.count == 1)
  }

  @Test func `an update of a file reads it again`() {
    let path = scene.folder.write("a.example", to: "china.txt")
    scene.use(ListSource(.file(path)))
    scene.store.start()
    scene.loop.advance(by: .seconds(1))
    scene.folder.write("a.example\nb.example", to: "china.txt")
    #expect(update(path).map(\.result) == [.changed(names: 2)])
    #expect(update(path).map(\.result) == [.unchanged])
    scene.folder.remove("china.txt")
    #expect(update(path).map(\.result) == [.fault(.unreadable(2))])
  }

  @Test func `stop ends an update`() {
    start(.text("a.example"), .nothing)
    scene.loop.schedule(after: .seconds(20)) { [scene] in scene.store.stop() }
    #expect(update("office").map(\.result) == [.fault(.cancelled)])
  }
}

@Suite struct `Builds` {
  private let scene = Scene()

  private func start(_ count: Int) -> [String] {
    let others = (0..<count).map { "https://lists.example/\($0)" }
    let sources = others.map { ListSource.url($0, name: nil, interval: .seconds(600)) }
    for other in others {
      scene.fetcher.answers[other] = (0..<50).map { .text("\($0).example\n\(other.suffix(1)).test") }
    }
    scene.fetcher.time = .milliseconds(100)
    scene.store.use(sources, scene.shelf.load(sources))
    scene.store.start()
    return others
  }

  @Test func `the changes of a second are one build`() {
    _ = start(5)
    scene.loop.advance(by: .seconds(10))
    #expect(scene.buildTimes == [1.1])
    #expect(scene.store.reports.map(\.names) == [2, 2, 2, 2, 2])
  }

  @Test func `the pause between two builds is twenty times what the last one took`() {
    scene.buildTime = .seconds(30)
    _ = start(2)
    scene.loop.advance(by: .seconds(3600))
    let times = scene.buildTimes
    #expect(times.count > 3, "\(times)")
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 > 629.9 }, "\(times)")
    #expect(times.allSatisfy { $0 < 3600 })
  }

  @Test func `a text that comes during a build is built next`() {
    scene.buildTime = .seconds(1)
    _ = start(1)
    scene.loop.advance(by: .milliseconds(1500))
    #expect(scene.builds.count == 1)
    let update = scene.loop.run { [scene] in await scene.store.update() }
    #expect(update.map(\.result) == [.changed(names: 2)] && scene.builds.count == 2)
    #expect(scene.table[.url("https://lists.example/0")]?.first == "1.example")
  }

  @Test func `a build that failed is tried again after ten seconds, also for a caller that waits`() {
    scene.failure = .failed("no hosts file")
    _ = start(1)
    func update() -> [ListUpdate.Result] { scene.loop.run { [scene] in await scene.store.update() }.map(\.result) }
    #expect(update() == [.fault(.failed("no hosts file"))])
    scene.loop.advance(by: .seconds(5))
    #expect(update() == [.fault(.failed("no hosts file"))])
    #expect(scene.buildTimes == [0.1, 10.11])
    scene.failure = nil
    scene.loop.advance(by: .seconds(11))
    #expect(scene.buildTimes == [0.1, 10.11, 20.12] && scene.report().names == 2)
    #expect(update() == [.changed(names: 2)] && scene.builds.count == 4)
  }

  @Test func `a list whose names stay in the table cannot be read, and another one waits for it`() {
    let others = start(2)
    scene.loop.advance(by: .seconds(2))
    let place = ListSource.Place.url(others[0])
    scene.failure = .failed("it waits")
    scene.unread = [place: .changing]
    scene.fetcher.answers[others[0]] = [.unchanged, .text("z.example")]
    let results = scene.loop.run { [scene] in await scene.store.update(others[1]) }.map(\.result)
    #expect(results == [.fault(.failed("it waits"))])
    #expect(scene.store.texts[place] == nil && scene.report(0).names == 2)
    scene.loop.advance(by: .milliseconds(500))
    #expect(scene.store.texts[place].map(lines(of:)) == nil)
    (scene.failure, scene.unread) = (nil, [:])
    scene.loop.advance(by: .seconds(70))
    #expect(scene.table[place] == ["z.example"] && scene.table[.url(others[1])]?.first == "1.example")
  }

  @Test func `all lists together have a largest number of names`() {
    let scene = Scene(mostNames: 4_000)
    let text = String(repeating: "a.b\n", count: 1_500)
    for index in 0..<3 { scene.fetcher.answers["https://lists.example/\(index)"] = [.text(text)] }
    let sources = (0..<3).map { ListSource.url("https://lists.example/\($0)", name: nil) }
    scene.buildTime = nil
    scene.store.use(sources, scene.shelf.load(sources))
    scene.store.start()
    scene.loop.advance(by: .seconds(60))
    #expect(
      scene.store.reports.map(\.state) == [
        .loaded, .loaded, .failing("all lists together would have more than 4,000 names"),
      ])
    let second = Scene(in: scene.folder, mayWrite: false, mostNames: 1_600)
    let texts = second.shelf.load(sources)
    #expect(texts.names == 1_500 && texts.faults.count == 1)
  }
}
