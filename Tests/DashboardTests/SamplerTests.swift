// SamplerTests.swift -- readings become rows: each minute always, every two seconds while a page is open.

import EventLoop
import Frontend
import JSON
import Telemetry
import TestSupport
import Testing

@testable import Dashboard
@testable import Forwarder
@testable import Upstreams

@Suite struct `The sampler` {
  @Test func `each minute is a row, with no page open`() {
    let scene = SamplerScene()
    scene.loop.advance(by: .seconds(181))
    #expect(scene.column("hit", of: scene.sampler.minutes) == [600, 600, 600])
    #expect(scene.column("seconds", of: scene.sampler.minutes) == [60, 60, 60])
    #expect(scene.sampler.shorts.places.isEmpty && scene.reports.isEmpty)
  }

  @Test func `a page gets a row at once, which begins at the last full minute, and then one every two seconds`() {
    let scene = SamplerScene()
    scene.loop.advance(by: .seconds(70))
    scene.sampler.watch()
    #expect(scene.reports.count == 1)
    scene.loop.advance(by: .seconds(4))
    #expect(scene.column("hit", of: scene.sampler.shorts) == [100, 20, 20])
    #expect(scene.column("seconds", of: scene.sampler.shorts) == [10, 2, 2])
    scene.sampler.unwatch()
    scene.loop.advance(by: .seconds(10))
    #expect(scene.reports.count == 3)
  }

  @Test func `a day and ten minutes are kept, in less than a mebibyte`() {
    let scene = SamplerScene()
    scene.providers = (0..<16).map { "provider-\($0)" }
    scene.loop.advance(by: .seconds(90_000))
    scene.sampler.watch()
    scene.loop.advance(by: .seconds(700))
    #expect(scene.sampler.minutes.places.count == 1440)
    #expect(scene.sampler.shorts.places.count == 300)
    #expect(scene.sampler.minutes.octets + scene.sampler.shorts.octets < 1 << 20)
  }

  @Test func `a wall clock that is set is a gap, and the rows keep their order`() {
    let scene = SamplerScene()
    scene.loop.advance(by: .seconds(61))
    scene.clockShift = -3_600_000_000_000
    scene.loop.advance(by: .seconds(120))
    #expect(scene.jumps == 1)
    let hits = scene.column("hit", of: scene.sampler.minutes)
    #expect(hits.count == 4 && hits[1].isNaN && hits[2] == 600)
    #expect(scene.sampler.offset == SamplerScene.epoch - 3_600_000_000_000)
  }

  @Test func `the samples after a number are there until others have taken their places`() throws {
    let scene = SamplerScene()
    scene.sampler.watch()
    scene.loop.advance(by: .seconds(20))
    let last = scene.sampler.shorts.number
    let missed = try #require(scene.sampler.shorts.samples(after: last - 3))
    #expect(missed.map(\.number) == [last - 2, last - 1, last])
    #expect(missed.allSatisfy { $0.sample.providers.first?.name == "first" && $0.sample.providers[0].transfers == 2 })
    #expect(try #require(scene.sampler.shorts.samples(after: last)).isEmpty)
    #expect(scene.sampler.shorts.samples(after: last + 1) == nil)
    scene.loop.advance(by: .seconds(700))
    #expect(scene.sampler.shorts.samples(after: last) == nil)
    #expect(scene.sampler.shorts.samples(after: 0) == nil)
  }

  @Test func `of more than sixteen providers the first ones have columns, whatever a reload does to their order`() {
    let scene = SamplerScene()
    scene.providers = (0..<20).map { "provider-\($0)" }
    for turn in 0..<6 {
      scene.loop.advance(by: .seconds(60))
      scene.providers.append(scene.providers.removeFirst())
      scene.providers[0] = "new-\(turn)"
    }
    let ring = scene.sampler.minutes
    #expect(ring.providers.count == 16 && Set(ring.providers.map(\.name)).count == 16)
  }

  @Test func `a time in which the machine slept is a gap`() {
    let scene = SamplerScene()
    scene.loop.advance(by: .seconds(61))
    scene.loop.sleep(through: .seconds(7200))
    scene.loop.advance(by: .seconds(61))
    let hits = scene.column("hit", of: scene.sampler.minutes)
    #expect(hits.first == 600 && hits.contains { $0.isNaN } && !hits.contains { $0 > 600 }, "\(hits)")
  }

  @Test func `a provider that goes makes room for another one`() {
    let scene = SamplerScene()
    scene.providers = (0..<16).map { "provider-\($0)" }
    scene.loop.advance(by: .seconds(60))
    scene.providers[3] = "new"
    scene.loop.advance(by: .seconds(60))
    let ring = scene.sampler.minutes
    #expect(ring.providers.count == 16)
    #expect(!ring.providers.contains { $0.name == "provider-3" })
    let new = ring.providers.first { $0.name == "new" }?.transfers ?? []
    #expect(new[ring.places[0]].isNaN && !new[ring.places[1]].isNaN)
  }
}

@Suite struct `The rows of a span` {
  private func rows(_ span: HistorySpan, _ scene: SamplerScene) -> (times: [Double], seconds: [Double], hits: [Double])
  {
    let text = JSONText.object(History(span, scene.sampler, now: scene.loop.now).members(limits: [:]))
    struct Unreadable: Error {}
    func column(_ root: JSONValue, _ name: String) -> [Double] {
      root["columns"]?.member(named: name)?.elements.map { $0.real ?? .nan } ?? []
    }
    return try! withJSON(Array(text.utf8), orThrow: { _ in Unreadable() }) { root throws(Unreadable) in
      (column(root, "time"), column(root, "seconds"), column(root, "hit"))
    }
  }

  /// Whether each row begins where the one before has ended.
  private func isSeamless(_ rows: (times: [Double], seconds: [Double], hits: [Double])) -> Bool {
    zip(rows.times.dropFirst(), zip(rows.times, rows.seconds.dropFirst())).allSatisfy { time, earlier in
      abs(time - earlier.1 - earlier.0) < 0.01
    }
  }

  @Test func `ten minutes are rows of two seconds where a page was open, and minutes between them`() {
    let scene = SamplerScene()
    scene.loop.advance(by: .seconds(130))
    scene.sampler.watch()
    scene.loop.advance(by: .seconds(25))
    scene.sampler.unwatch()
    scene.loop.advance(by: .seconds(100))
    scene.sampler.watch()
    scene.loop.advance(by: .seconds(5))
    let rows = rows(.tenMinutes, scene)
    #expect(isSeamless(rows))
    #expect(rows.seconds.reduce(0, +) == Double(rows.hits.reduce(0, +)) / 10)
    #expect(rows.seconds.contains(60) && rows.seconds.contains(2))
    #expect(rows.times.last == 1_700_000_000 + Double(scene.loop.now.nanoseconds / 1_000_000_000) - 1)
  }

  @Test func `an hour and a day are minutes`() {
    let scene = SamplerScene()
    scene.sampler.watch()
    scene.loop.advance(by: .seconds(2 * 3600))
    #expect(rows(.hour, scene).seconds == Array(repeating: 60, count: 60))
    #expect(rows(.day, scene).seconds.count == 120)
    #expect(isSeamless(rows(.day, scene)))
  }

  @Test func `an unknown span is refused`() { #expect(HistorySpan(rawValue: "2h") == nil) }
}

@Suite struct `A sample` {
  @Test func `is the difference of two readings, with percentiles of what came between`() {
    let earlier = ForwarderStatistics.at(BootInstant(nanoseconds: 0)) { statistics in
      for _ in 0..<1000 { statistics.queries.atHand.observe(.milliseconds(900)) }
      statistics.queries.add(1000, .hit, over: .udp)
      statistics.providers = [.with("first", transfers: 40, units: 10)]
    }
    let later = ForwarderStatistics.at(BootInstant(nanoseconds: 2_000_000_000)) { statistics in
      statistics.queries = earlier.queries
      for _ in 0..<100 { statistics.queries.atHand.observe(.microseconds(20)) }
      statistics.queries.add(100, .hit, over: .tcp)
      statistics.providers = [
        .with("first", transfers: 43, units: 12, state: .noAnswers(since: 0)), .with("new", transfers: 1),
      ]
    }
    let sample = Sample(later, after: earlier)
    let figures = Dictionary(uniqueKeysWithValues: zip(Figure.names, sample.figures))
    #expect(figures["seconds"] == 2 && figures["hit"] == 100 && figures["transfers"] == 4)
    #expect(figures["hit_p99"]! <= 25 && figures["hit_p50"]! >= 10)
    #expect(figures["miss_p50"]!.isNaN)
    #expect(sample.providers.map(\.transfers) == [3, 1])
    #expect(sample.providers[0].unitsToday == 12 && ProviderReport.State.words[sample.providers[0].state] == "down")
    let text = FigureText.sample(sample, offset: 0, now: nil)
    #expect(text.hasPrefix(#"{"time":2,"seconds":2,"hit":100,"#) && text.contains(#""miss_p50":null"#))
    #expect(!text.contains("nan") && !text.contains(#""now""#))
  }

  @Test(arguments: [
    (Float(0), "0"), (12, "12"), (12.54, "12.5"), (99.96, "100"), (123.4, "123"), (0.123, "0.12"), (.nan, "null"),
    (.infinity, "null"), (3e38, "null"),
    (123_456.7, "123457"),
  ])
  func `a number is short JSON`(value: Float, text: String) { #expect(FigureText.number(value) == text) }

  @Test func `what is off is null, which is not zero`() {
    let settings = FigureText.Settings(version: "1.2.3", refreshBudgets: (60, 0))
    let now = FigureText.now(.at(BootInstant(nanoseconds: 0)), settings, offset: 0, readers: 0)
    for name in ["encrypted", "fleet", "ranking", "cache"] { #expect(now.contains("\"\(name)\":null"), "\(name)") }
    #expect(now.contains(#""budget_per_minute":60,"budget_per_day":0"#))
  }
}
