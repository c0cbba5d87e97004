// FetchScheduleTests.swift -- when lists are fetched, with which request, and what becomes of the answers.

import EventLoop
import Glibc
import Persistence
import TestSupport
import Testing

@testable import ListStore

@Suite struct `The schedule of fetches` {
  private let scene = Scene()
  private var fetcher: ScriptedFetcher { scene.fetcher }

  private func start(_ answers: ScriptedFetcher.Answer..., source: ListSource = .url()) {
    fetcher.answers[url] = answers
    scene.use(source)
    scene.store.start()
  }

  @Test func `a list without a copy is fetched at once, and then after its interval`() {
    start(.text("a.example\nb.example"))
    #expect(scene.report().state == .waiting)
    scene.loop.advance(by: .seconds(10))
    #expect(scene.report().state == .loaded && scene.report().names == 2)
    #expect(fetcher.times(after: scene.start) == [0])
    scene.loop.advance(by: .seconds(86_400 * 3))
    let times = fetcher.times(after: scene.start)
    #expect(times.count == 3 || times.count == 4)
    #expect(zip(times, times.dropFirst()).allSatisfy { isAbout(86_400, $1 - $0 - 2) })
    #expect(Set(times.map { $0.truncatingRemainder(dividingBy: 3600) }).count == times.count)
    #expect(
      scene.log.all == [
        "warning list office: not fetched yet; until then it has no names", "info list office: 2 names",
      ])
  }

  @Test func `a copy that is not older than the interval is not fetched`() {
    start(.text("a.example"))
    scene.loop.advance(by: .seconds(10))
    let second = Scene(in: scene.folder, mayWrite: false)
    // The copy's time is by the machine's clock.
    second.loop.wallOffset = scene.loop.wallTime + 3_600 - second.loop.now.nanoseconds / 1_000_000_000
    second.fetcher.answers[url] = [.unchanged]
    second.use(.url())
    second.store.start()
    #expect(second.report().names == 1 && second.report().state == .loaded)
    #expect(second.table[.url(url)] == ["a.example"])
    second.loop.advance(by: .seconds(86_400 * 8 / 10))
    #expect(second.fetcher.requests.isEmpty)
    second.loop.advance(by: .seconds(86_400 * 3 / 10))
    #expect(second.fetcher.requests.count == 1)
  }

  @Test func `a copy that is older, or of a time to come, is used and fetched at once`() {
    start(.text("a.example"))
    scene.loop.advance(by: .seconds(10))
    for offset: Int64 in [86_400 * 2, -3600] {
      let second = Scene(in: scene.folder, mayWrite: false)
      second.loop.wallOffset = scene.loop.wallTime + offset
      second.fetcher.answers[url] = [.unchanged]
      second.use(.url())
      second.store.start()
      #expect(second.report().names == 1)
      second.loop.advance(by: .seconds(1))
      #expect(second.fetcher.requests.count == 1)
    }
  }

  @Test func `what the server said of the text is sent with the next request, also after a restart`() {
    start(.text("a.example", tag: "\"one\"", date: "Sun, 06 Nov 1994 08:49:37 GMT"), .unchanged)
    scene.loop.advance(by: .seconds(86_400 * 2))
    #expect(fetcher.requests[0].request.entityTag == nil)
    #expect(fetcher.requests[1].request.entityTag == "\"one\"")
    let second = Scene(in: scene.folder)
    second.use(.url())
    second.store.start()
    second.loop.advance(by: .seconds(86_400 * 2))
    #expect(second.fetcher.requests[0].request.entityTag == "\"one\"")
    #expect(second.fetcher.requests[0].request.lastModified == "Sun, 06 Nov 1994 08:49:37 GMT")
  }

  @Test func `an unchanged text, and the same octets with another tag, build no table`() {
    start(.text("a.example", tag: "\"1\""), .unchanged, .text("a.example", tag: "\"2\""), .text("b.example"))
    scene.loop.advance(by: .seconds(86_400 * 25 / 10))
    #expect(scene.builds.count == 1)
    #expect(scene.report().fetches.unchanged == 2)
    #expect(scene.shelf.copy(of: .url())?.details.entityTag == "\"2\"")
    scene.loop.advance(by: .seconds(86_400))
    #expect(scene.builds.count == 2 && scene.table[.url(url)] == ["b.example"])
    #expect(scene.log.all.last == "info list office: 1 name (+0 −0)")
  }

  @Test func `a text that had to stay in memory is written with the next answer that it is unchanged`() {
    let scene = Scene(mayWrite: false)
    scene.fetcher.answers[url] = [.text("a.example", tag: "\"1\""), .unchanged]
    scene.use(.url())
    scene.store.start()
    scene.loop.advance(by: .seconds(10))
    #expect(scene.report().isInMemory && scene.shelf.copy(of: .url()) == nil)
    scene.state.use()
    scene.loop.advance(by: .seconds(86_400 * 12 / 10))
    #expect(!scene.report().isInMemory && scene.builds.count == 1)
    #expect(scene.shelf.copy(of: .url())?.details.entityTag == "\"1\"")
  }

  @Test func `an unchanged text counts as young after a restart`() throws {
    start(.text("a.example"), .unchanged)
    scene.loop.advance(by: .seconds(86_400 * 12 / 10))
    #expect(fetcher.requests.count == 2)
    let copy = try #require(scene.shelf.copy(of: .url()))
    #expect(try #require(copy.confirmedAt) > scene.loop.wallTime - 86_400 / 2)
  }

  @Test func `after failures the pauses double up to an hour`() {
    start(.fault(.failed("timeout")))
    scene.loop.advance(by: .seconds(4 * 3600))
    let times = fetcher.times(after: scene.start)
    let pauses = zip(times, times.dropFirst()).map { $1 - $0 - 2 }
    for (pause, minutes) in zip(pauses, [1, 2, 4, 8, 16, 32, 60, 60]) { #expect(isAbout(Double(minutes * 60), pause)) }
    #expect(pauses.count == 8)
    #expect(scene.report().state == .failing("timeout") && scene.report().fetches.failed == times.count)
    #expect(scene.log.all.filter { $0.contains("timeout") } == ["warning list office: timeout; it has no names"])
  }

  @Test func `after a success the interval counts again, and the next failure is logged again`() {
    start(.fault(.failed("timeout")), .fault(.failed("reset")), .text("a.example"), .fault(.failed("timeout")))
    scene.loop.advance(by: .seconds(86_400 * 12 / 10))
    let times = fetcher.times(after: scene.start)
    #expect(isAbout(86_400, times[3] - times[2]) && isAbout(60, times[4] - times[3] - 2))
    #expect(
      scene.log.all.dropFirst() == [
        "warning list office: timeout; it has no names", "info list office: 1 name",
        "warning list office: timeout; the last good text stays in use",
      ])
    #expect(scene.report().names == 1)
  }

  @Test func `a list that works again unchanged is logged once`() {
    start(.text("a.example"), .fault(.failed("timeout")), .unchanged)
    scene.loop.advance(by: .seconds(86_400 * 12 / 10))
    #expect(scene.log.all.last == "info list office: available again, unchanged")
    #expect(scene.report().state == .loaded)
  }

  @Test func `a failing list is fetched at once on another network, and one that works is not`() {
    start(.fault(.failed("no address")), .fault(.failed("no address")), .text("a.example"))
    scene.loop.advance(by: .seconds(30))
    scene.store.networkHasChanged()
    scene.loop.advance(by: .seconds(1))
    #expect(fetcher.times(after: scene.start) == [0, 30])
    // The second one is in flight.
    scene.store.networkHasChanged()
    scene.loop.advance(by: .seconds(5))
    #expect(fetcher.times(after: scene.start) == [0, 30, 32])
    scene.store.networkHasChanged()
    scene.loop.advance(by: .seconds(60))
    #expect(fetcher.requests.count == 3)
  }

  @Test func `a server's wish for a pause is granted`() {
    start(.fault(.failed("status 503"), retryAfter: .seconds(7200)))
    scene.loop.advance(by: .seconds(3 * 3600))
    let times = fetcher.times(after: scene.start)
    #expect(times.count == 2 && isAbout(7200, times[1] - 2))
  }

  @Test func `a text beyond the limits is not fetched again before the interval`() {
    start(.text(String(repeating: "a.example\n", count: 200)), source: .url(maxSize: 1024))
    scene.loop.advance(by: .seconds(86_400 / 2))
    #expect(fetcher.requests.count == 1)
    #expect(scene.report().state == .failing("larger than 1 KiB") && scene.report().fetches.refused == 1)
  }

  @Test(arguments: [
    ("<!DOCTYPE html>\nwelcome.example", "it is a web page"), ("a.example\0b", "it is not text"),
    ("", "no line of it can be used"), ("# nothing\n!\n", "no line of it can be used"),
  ])
  func `a text that is no list leaves copy and table as they are`(text: String, reason: String) {
    start(.text("a.example"), .text(text))
    scene.loop.advance(by: .seconds(86_400 * 12 / 10))
    #expect(scene.report().state == .failing(reason))
    #expect(scene.report().names == 1 && scene.builds.count == 1)
    #expect(scene.shelf.copy(of: .url()).map(lines(of:)) == ["a.example"])
    #expect(scene.folder.read("lists/\(ListSource.Place.url(url).fingerprint).new") == nil)
  }

  @Test func `a copy that another program has damaged is dropped, and fetched without its tag`() {
    let other = "https://lists.example/other"
    fetcher.answers[other] = [.text("b.example"), .text("c.example")]
    fetcher.answers[url] = [.text("a.example", tag: "\"1\""), .fault(.failed("timeout")), .text("a.example")]
    scene.use(.url(), .url(other, name: "other", interval: .seconds(600)))
    scene.store.start()
    scene.loop.advance(by: .seconds(10))
    truncate(scene.folder.path(of: "lists/\(ListSource.Place.url(url).fingerprint)"), 3)
    scene.loop.advance(by: .seconds(670))
    let requests = fetcher.requests.filter { $0.request.source.name == "office" }
    #expect(requests.count == 2 && requests[1].request.entityTag == nil)
    #expect(scene.report(0).state == .failing("timeout") && scene.report(0).names == 0)
    #expect(scene.table[.url(other)] == ["c.example"])
    scene.loop.advance(by: .seconds(70))
    #expect(scene.table[.url(url)] == ["a.example"] && scene.report(0).state == .loaded)
  }

  @Test func `lists are fetched one at a time`() {
    let others = (0..<5).map { "https://lists.example/\($0)" }
    for (index, other) in others.enumerated() { fetcher.answers[other] = [.text("\(index).example")] }
    let sources = others.map { ListSource.url($0, name: nil) }
    scene.store.use(sources, scene.shelf.load(sources))
    scene.store.start()
    scene.loop.advance(by: .seconds(60))
    #expect(fetcher.mostInFlight == 1 && fetcher.requests.count == 5)
    #expect(scene.store.reports.map(\.names) == [1, 1, 1, 1, 1])
  }

  @Test func `a reload during a fetch lets it go on, and ends that of a list that is gone`() {
    fetcher.answers["https://gone.example/"] = [.nothing]
    start(.text("a.example"))
    scene.loop.advance(by: .seconds(1))
    scene.use(.url(interval: .seconds(3600)), .url("https://gone.example/", name: "gone"))
    scene.loop.advance(by: .seconds(3))
    #expect(fetcher.requests.count == 2 && scene.report(0).state == .loaded && fetcher.inFlight == 1)
    // The shorter interval counts.
    #expect(scene.report(0).nextFetch.map { $0 < .seconds(4000) } == true)
    scene.use(.url())
    scene.loop.advance(by: .seconds(3))
    #expect(fetcher.inFlight == 0 && scene.store.reports.count == 1)
    #expect(!scene.log.all.contains { $0.contains("gone: httpdnsd") })
  }

  @Test func `a reload that changes the settings of a list tries it at once`() {
    start(.text(String(repeating: "a.example\n", count: 200)), source: .url(maxSize: 1024))
    scene.loop.advance(by: .seconds(10))
    #expect(scene.report().state == .failing("larger than 1 KiB"))
    scene.use(.url(maxSize: 2048))
    scene.loop.advance(by: .seconds(10))
    #expect(fetcher.requests.count == 2 && scene.report().state == .loaded)
    // The same settings are no reason.
    scene.use(.url(maxSize: 2048))
    scene.loop.advance(by: .seconds(10))
    #expect(fetcher.requests.count == 2)
  }

  @Test func `a fetch that fails with settings that a reload has changed is tried again at once`() {
    start(.text(String(repeating: "a.example\n", count: 200)), source: .url(maxSize: 1024))
    scene.loop.advance(by: .seconds(1))
    scene.use(.url(maxSize: 2048))
    scene.loop.advance(by: .seconds(10))
    #expect(fetcher.requests.count == 2 && scene.report().state == .loaded)
  }

  @Test func `a list that is removed before its fetch begins is not fetched`() {
    start(.text("a.example"))
    scene.loop.advance(by: .seconds(10))
    let gone = ListSource.url("https://gone.example/", name: "gone")
    scene.use(.url(), gone)
    scene.use(.url())
    scene.loop.advance(by: .seconds(10))
    #expect(fetcher.requests.count == 1)
    scene.use(.url(), gone)
    scene.store.stop()
    scene.loop.advance(by: .seconds(10))
    #expect(fetcher.requests.count == 1)
  }

  @Test func `after stop nothing is fetched, taken or built`() {
    start(.text("a.example"))
    scene.loop.advance(by: .seconds(1))
    scene.store.stop()
    scene.loop.advance(by: .seconds(86_400 * 2))
    #expect(fetcher.requests.count == 1 && scene.builds.isEmpty)
    #expect(scene.shelf.copy(of: .url()) == nil)
    fetcher.answers[url] = [.nothing]
    let second = Scene(in: scene.folder)
    second.fetcher.answers[url] = [.nothing]
    second.use(.url())
    second.store.start()
    second.loop.advance(by: .seconds(5))
    #expect(second.fetcher.inFlight == 1)
    second.store.stop()
    second.loop.settle()
    #expect(second.fetcher.inFlight == 0)
  }
}
