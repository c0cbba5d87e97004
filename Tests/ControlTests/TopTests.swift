// TopTests.swift -- numbers on their way to `top`, and what it makes of two readings.

import Store
import Fleet
import DNSWire
import EventLoop
import JSON
import MessageCache
import Resolver
import Telemetry
import Terminal
import Testing

@testable import BusyNames
@testable import Control
@testable import Forwarder
@testable import Frontend
@testable import Ranking
@testable import Resolver
@testable import Upstreams

@Suite struct `A sample for top` {
  private static func sample() -> TopSample {
    var sample = TopSample()
    (sample.time, sample.startedAt) = (60_000_000_000, 50_000_000_000)
    sample.fates[QueryFate.hit.rawValue] = 90
    sample.fates[QueryFate.miss.rawValue] = 10
    sample.codes[CountedCode.noError.rawValue] = 95
    sample.codes[CountedCode.servFail.rawValue] = 5
    for milliseconds in [1, 2, 3] { sample.resolved.observe(.milliseconds(milliseconds)) }
    (sample.entries, sample.maxEntries, sample.octets, sample.maxOctets) = (5, 100, 4096, 1 << 20)
    (sample.inFlight, sample.waiting, sample.refreshes) = (1, 2, 3)
    var provider = TopSample.Provider()
    (provider.name, provider.state, provider.server) = ("alidns", "unreachable", "223.5.5.5")
    provider.reason = "unreachable: a\ttab\nand % a line"
    (provider.transfers, provider.failures, provider.unitsToday, provider.unitsPerDay) = (10, 1, 7, 100)
    provider.roundTrips.observe(.milliseconds(20))
    sample.providers = [provider, TopSample.Provider(name: "b")]
    sample.names = [
      TopSample.Name(name: "www.example.com.", type: "A", hits: 80, questions: 8, averageRoundTrip: 20_000_000),
      TopSample.Name(name: "quiet.example.com.", type: "AAAA", hits: 10, questions: 2, failed: 24),
    ]
    sample.failing = [
      TopSample.Failing(
        name: "quiet.example.com.", type: "AAAA", count: 24, reason: "no answer in time", age: 2_000_000_000),
      TopSample.Failing(name: "old.example.", type: "A", count: 9, reason: "x", age: 100_000_000_000),
    ]
    return sample
  }

  /// A daemon whose numbers differ from each other, with texts of any kind.
  private static func answers() -> Answers {
    var provider = ProviderReport(name: "alidns")
    provider.state = .unreachable(since: nil, "a\ttab\nand % \"a\" \\ line é\u{1F600}\u{1}")
    (provider.server, provider.unitsToday, provider.unitsPerDay, provider.counters.transfers) = (
      "223.5.5.5", 7, 100, 10
    )
    provider.counters.failures.count(.noResponse(.timeout))
    provider.counters.roundTrips.observe(.milliseconds(20))
    var answers = Answers()
    var statistics = answers.numbers.statistics
    for (number, fate) in QueryFate.allCases.enumerated() {
      statistics.queries.add(UInt64(number + 1) << 32, fate, over: .udp)
      statistics.queries.add(1, fate, over: .tcp)
    }
    for code in CountedCode.allCases { statistics.queries.codes[code.rawValue] = UInt64.max - UInt64(code.rawValue) }
    for milliseconds in [1, 2, 3, 10_000] { statistics.queries.atHand.observe(.milliseconds(milliseconds)) }
    statistics.queries.resolved.observe(.nanoseconds(7))
    (statistics.cache.entries, statistics.cache.maxEntries) = (5, 100)
    (statistics.cache.octets, statistics.cache.maxOctets) = (4096, 1 << 20)
    (statistics.questionsInFlight, statistics.waitingClients) = (1, 2)
    statistics.providers = [provider, ProviderReport(name: "b")]
    answers.numbers.statistics = statistics
    let quiet = DomainName(text: "a\\.\\000\\\".example")!
    answers.numbers.failing = [
      FailingName(name: quiet, type: .aaaa, count: 24, reason: "no\tanswer", age: .nanoseconds(2_000_000_001))
    ]
    var counts = NameCounts()
    counts.asked(nil, rtt: 20_000_001)
    counts.cacheDnsNum = 80
    counts.wentToLocalDNS(isAnswered: true)
    answers.names = [
      NameReport(name: DomainName(text: "www.example.com")!, type: .a, time: .zero, counts: counts),
      NameReport(name: quiet, type: .aaaa, time: .zero, counts: NameCounts()),
      NameReport(name: DomainName(text: "none.example")!, type: RecordType(0), time: .zero, counts: NameCounts()),
    ]
    return answers
  }

  @Test func `a sample of top survives its transfer with texts of any kind`() throws {
    let answers = `A sample for top`.answers()
    let queries = answers.numbers.statistics.queries
    let scene = try ControlScene(answers)
    let sample = try scene.client.sample()
    #expect(sample.time == 60_000_000_000 && sample.startedAt == 50_000_000_000)
    #expect(sample.fates == QueryFate.allCases.map { queries.count($0) })
    #expect(sample.codes == CountedCode.allCases.map { queries.count($0) })
    #expect(sample.atHand == queries.atHand && sample.resolved == queries.resolved)
    #expect([sample.entries, sample.maxEntries, sample.octets, sample.maxOctets] == [5, 100, 4096, 1 << 20])
    #expect([sample.inFlight, sample.waiting, sample.refreshes] == [1, 2, 0])
    #expect(
      sample.providers == [
        TopSample.Provider(
          name: "alidns", state: "unreachable", reason: "unreachable: a\ttab\nand % \"a\" \\ line é\u{1F600}\u{1}",
          server: "223.5.5.5", transfers: 10, failures: 1, unitsToday: 7, unitsPerDay: 100,
          roundTrips: answers.numbers.statistics.providers[0].counters.roundTrips),
        TopSample.Provider(name: "b", state: "up"),
      ])
    let quiet = answers.numbers.failing[0].name.text
    #expect(
      sample.names == [
        TopSample.Name(name: "www.example.com.", type: "A", hits: 80, questions: 2, averageRoundTrip: 20_000_001),
        TopSample.Name(name: quiet, type: "AAAA", failed: 24),
        TopSample.Name(name: "none.example.", type: "NXDOMAIN"),
      ])
    #expect(
      sample.failing == [
        TopSample.Failing(name: quiet, type: "AAAA", count: 24, reason: "no\tanswer", age: 2_000_000_001)
      ])
  }

  @Test(arguments: [
    ("", ""), ("{", "["), ("\"time_ns\":", "\"time\":"), ("\"time_ns\":6", "\"time_ns\":-6"), ("\"hit\":", "\"hits\":"),
    ("\"buckets\":[0,", "\"buckets\":["), ("\"names\":[", "\"names\":[1,"), ("\"failing\":[]", "\"failing\":{}"),
  ])
  func `a sample of another version, or a broken one, is refused`(part: String, replacement: String) throws {
    let json = StatsText(numbers: .empty, busiest: []).json
    #expect(TopSample(json: json) != nil)
    #expect(json.contains(part) || part.isEmpty)
    #expect(TopSample(json: part.isEmpty ? "" : json.replacing(part, with: replacement, maxReplacements: 1)) == nil)
    #expect(TopSample(json: StatsText(numbers: .empty).json) == nil)
  }

  @Test func `what ranking does is in the statistics, and a line of top`() throws {
    var numbers = DaemonNumbers.empty
    var ranking = RankingReport()
    (ranking.counters.answered, ranking.counters.failed) = (["tcp": 30, "icmp": 2], ["tcp": 8])
    (ranking.counters.deferred, ranking.counters.rearranged) = (3, 4)
    (ranking.answers, ranking.problems) = (5, ["no \"ping\" socket"])
    numbers.statistics.ranking = ranking
    // Nothing is measured.
    #expect(TopSample(json: StatsText(numbers: numbers, busiest: []).json)?.ranking == nil)
    numbers.statistics.ranking?.measures = true
    let stats = StatsText(numbers: numbers, busiest: [])
    #expect(stats.text.contains("5 answers measured, 40 probes (8 failed, 3 put off), 4 rearranged\n"))
    let sample = try #require(TopSample(json: stats.json))
    #expect(
      sample.ranking
        == TopSample.Ranking(
          answers: 5, probes: 40, failed: 8, deferred: 3, rearranged: 4, problems: ["no \"ping\" socket"]))
    let lines = TopFrame(sample, after: nil).lines(rows: 40).map(\.text)
    #expect(lines.contains { $0.hasPrefix("ranking    5 answers measured; ") })
  }

  @Test func `what the fleet brings is in the statistics, and a line of top`() throws {
    var numbers = DaemonNumbers.empty
    let member = FleetMember(id: "a", version: "1", fingerprint: "f", host: "h")
    var fleet = FleetReport(
      store: StoreReport(state: "up", isUp: true, since: BootInstant(nanoseconds: 0)), own: member)
    (fleet.clockDifference, fleet.counters.adopted, fleet.knowsFlushes) = (0, 20, true)
    numbers.statistics.fleet = fleet
    let stats = StatsText(numbers: numbers, busiest: [])
    #expect(stats.text.contains("up, 0 answers of other daemons, 0 misses, 20 refreshes adopted\n"))
    let sample = try #require(TopSample(json: stats.json))
    #expect(sample.fleet == TopSample.Fleet(isUp: true, state: "up", hits: 0, misses: 0, adopted: 20))
    let lines = TopFrame(sample, after: nil).lines(rows: 40).map(\.text)
    #expect(lines.contains("fleet      0.0 answers of other daemons/s, 0.0 misses/s, 2.0 refreshes adopted/s"))
    numbers.statistics.fleet?.store.state = "up, without writes"
    numbers.statistics.fleet?.store.complaint = "OOM"
    let full = try #require(TopSample(json: StatsText(numbers: numbers, busiest: []).json))
    #expect(
      TopFrame(full, after: nil).lines(rows: 40).contains { $0.text.hasSuffix("; store up, without writes: OOM") })
    numbers.statistics.fleet?.store = StoreReport(state: "refused", isUp: false, since: BootInstant(nanoseconds: 0))
    let down = try #require(TopSample(json: StatsText(numbers: numbers, busiest: []).json))
    let shown = TopFrame(down, after: nil).lines(rows: 40).map(\.text)
    #expect(shown.contains("fleet      store refused"))
  }

  @Test func `a single sample of top shows the rates since the start`() {
    let lines = TopFrame(`A sample for top`.sample(), after: nil).lines(rows: 40).map(\.text)
    #expect(lines[0] == "httpdnsd, up 10 s")
    #expect(lines[1] == "queries/s  10.0: 9.0 from the cache, 1.0 resolved")
    #expect(lines[2] == "results/s  9.5 NOERROR, 0.5 SERVFAIL")
    #expect(lines[3] == "hit ratio  90.0 %")
    #expect(lines.contains { $0.hasPrefix("alidns") && $0.contains("20.0 ms") && $0.contains("7 of 100") })
    #expect(
      lines.contains {
        $0.split(separator: " ").starts(with: ["8.0", "0.8", "80", "8", "20.0", "ms", "A", "www.example.com."])
      })
  }

  @Test func `two samples of top show the rates between them`() {
    let earlier = `A sample for top`.sample()
    var later = earlier
    later.time += 2_000_000_000
    later.fates[QueryFate.hit.rawValue] += 300
    later.fates[QueryFate.miss.rawValue] += 100
    later.providers[1].transfers += 9
    later.names[1].hits += 50
    later.names.append(TopSample.Name(name: "new.example.", type: "A", hits: 4, questions: 2))
    let lines = TopFrame(later, after: earlier).lines(rows: 40).map(\.text)
    #expect(lines[1] == "queries/s  200.0: 150.0 from the cache, 50.0 resolved")
    #expect(lines[2] == "results/s  -" && lines[3] == "hit ratio  75.0 %")
    #expect(lines[5] == "forwarded  -")
    let names = lines.drop { !$0.hasSuffix(" name") }.dropFirst().map { $0.split(separator: " ").last ?? "" }
    #expect(names == ["quiet.example.com.", "new.example.", "www.example.com."])
    #expect(lines.contains { $0.hasPrefix("b ") && $0.contains("4.5") })
  }

  @Test func `samples of different daemons are not compared`() {
    let earlier = `A sample for top`.sample()
    var later = earlier
    (later.time, later.startedAt) = (80_000_000_000, 70_000_000_000)
    #expect(TopFrame(later, after: earlier).lines(rows: 40)[1].text.hasPrefix("queries/s  10.0:"))
  }

  @Test func `top shows all numbers in 80 columns, and both ends of a long name`() {
    var sample = `A sample for top`.sample()
    sample.providers[0].name = "provider-of-ours"
    for fate in QueryFate.allCases { sample.fates[fate.rawValue] = 1_234_567 }
    sample.names[0].name = "host-1.a-rather-long-label-of-a-content-network.example.com."
    let lines = TopFrame(sample, after: nil).lines(rows: 40, columns: 80).map { String($0.text.prefix(80)) }
    #expect(lines[2].hasPrefix("           ") && lines[1].hasSuffix(","), "\(lines)")
    #expect(lines[1...4].contains { $0.hasSuffix(" beyond the rate limit") }, "\(lines)")
    let provider = lines.first { $0.hasPrefix("provider-of-ours") }
    #expect(
      provider?.split(separator: " ").dropFirst().prefix(6) == ["unreachable", "1.0", "0.1", "20.0", "ms", "7"],
      "\(lines)")
    #expect(lines.contains { $0.contains(" host-1.") && $0.contains("…") && $0.hasSuffix(".example.com.") })
    #expect(lines.allSatisfy { $0.count <= 80 })
  }

  @Test(arguments: [1, 3, 10, 12, 13, 14, 15, 40]) func `top fits every window size`(rows: Int) {
    let lines = TopFrame(`A sample for top`.sample(), after: nil).lines(rows: rows)
    #expect(lines.count <= rows && !lines.isEmpty)
    #expect(lines.allSatisfy { !$0.text.contains("\n") || $0.text.contains("a line") })
  }

  @Test func `top shows the reasons of failing providers and names below the tables`() throws {
    let lines = TopFrame(`A sample for top`.sample(), after: nil).lines(rows: 40)
    let texts = lines.map(\.text)
    let head = try #require(texts.firstIndex { $0.hasPrefix("provider") })
    #expect(!texts[head].contains("why") && texts[head + 3] == "alidns: unreachable: a\ttab\nand % a line")
    #expect(lines[head + 1].spans == [ScreenLine.Span(10..<21, .red)])
    let failing = try #require(texts.firstIndex { $0.hasPrefix("failing/s") })
    #expect(texts[failing] == "failing/s  failed  ago  type  name                why")
    #expect(texts[failing + 1] == "2.4        24      2 s  AAAA  quiet.example.com.  no answer in time")
    #expect(texts[failing + 2].isEmpty && lines[failing + 1].spans.map(\.colour) == [.red])
    let narrow = TopFrame(`A sample for top`.sample(), after: nil).lines(rows: 40, columns: 20).map(\.text)
    #expect(narrow.contains { $0.hasPrefix("alidns: unreachable") })
  }

  @Test func `top shows the selected view, with its keys in the last line`() throws {
    let frame = TopFrame(`A sample for top`.sample(), after: nil)
    var view = TopView()
    #expect(frame.lines(rows: 30, view: view).count == 30)
    #expect(frame.lines(rows: 30, view: view).last?.text == "sorted by busy; ? help, q quit")
    func names() -> [Substring] {
      frame.lines(rows: 30, view: view).map(\.text).drop { !$0.hasSuffix(" name") }.dropFirst().dropLast()
        .compactMap { $0.split(separator: " ").last }
    }
    #expect(names() == ["www.example.com.", "quiet.example.com."])
    #expect(view.press(UInt8(ascii: "f")) == .draw && view.order == .failed)
    #expect(names() == ["quiet.example.com.", "www.example.com."])
    #expect(view.press(UInt8(ascii: "f")) == .none && view.press(UInt8(ascii: "x")) == .none)
    for key in "/WWWW" { #expect(view.press(key.asciiValue!) == .draw) }
    #expect(view.isTyping && view.press(0x7F) == .draw && view.filter == "www")
    #expect(view.press(UInt8(ascii: " ")) == .none)
    #expect(names() == ["www.example.com."])
    #expect(view.press(UInt8(ascii: "q")) == .draw && view.filter == "wwwq" && names().isEmpty)
    #expect(view.press(0x0D) == .draw && !view.isTyping && view.press(0x1B) == .draw && view.filter.isEmpty)
    #expect(view.press(UInt8(ascii: "?")) == .draw)
    #expect(frame.lines(rows: 30, view: view).contains { $0.text.hasPrefix("  f ") && $0.text.hasSuffix("failed") })
    #expect(view.press(UInt8(ascii: " ")) == .next && view.press(UInt8(ascii: "Q")) == .quit)
    for rows in [1, 2, 5, 12] { #expect(frame.lines(rows: rows, view: view).count == rows) }
  }

  @Test func `a sample of top is an object in JSON`() {
    let json = TopFrame(`A sample for top`.sample(), after: nil).json
    #expect(json.hasPrefix("{\"interval_seconds\":10,\"queries_per_second\":10,\"hit_ratio\":0.9,"))
    #expect(json.contains("\"state\":\"unreachable\",\"reason\":\"unreachable: a\\ttab\\nand % a line\""))
    #expect(json.contains("\"rcodes_per_second\":{\"noerror\":9.5,") && json.contains("\"failures\":24}"))
    #expect(json.contains("\"failing\":[{\"name\":\"quiet.example.com.\",\"type\":\"AAAA\",\"failures_per"))
    #expect(!json.contains("\n"))
  }
}

@Suite struct `Numbers and texts` {
  @Test func `durations are shown in their two largest units`() {
    let texts: [(Int64, String)] = [
      (0, "0 s"), (59, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3661, "1 h 1 min"), (86_400, "1 d"),
      (90_000, "1 d 1 h"),
    ]
    for (seconds, text) in texts { #expect(TimeText.rough(.seconds(seconds)) == text) }
    #expect(TimeText.fine(.nanoseconds(12_345)) == "12 us" && TimeText.fine(.milliseconds(2)) == "2.0 ms")
    #expect(TimeText.milliseconds(.milliseconds(99)) == "99.0 ms" && TimeText.milliseconds(.seconds(2)) == "2000 ms")
  }

  @Test func `fractions in JSON have no needless digits`() {
    let texts: [(Int64, String)] = [
      (0, "0"), (1, "0.001"), (10, "0.01"), (1500, "1.5"), (-1500, "-1.5"), (-5, "-0.005"), (60_000, "60"),
    ]
    for (milliseconds, text) in texts { #expect(JSONText.seconds(.milliseconds(milliseconds)) == text) }
  }

  @Test func `a part of one is never rounded up to all of it`() {
    #expect(percent(1) == "100.0 %" && percent(0.9999) == "99.9 %" && percent(0) == "0.0 %")
  }
}
