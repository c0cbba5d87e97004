// TopFrame.swift -- a frame of `httpdnsd top`: the difference between two samples, as lines or JSON.

import Frontend
import JSON
import Telemetry
import Terminal
import Upstreams

/// The difference between two samples; the numbers since the start if there is no earlier sample, or if the daemon was
/// restarted in between.
public struct TopFrame: Sendable {
  private let sample: TopSample
  private let earlier: TopSample
  private let seconds: Double

  /// Creates a frame of the time between two samples; `earlier` may be nil.
  public init(_ sample: TopSample, after earlier: TopSample?) {
    self.sample = sample
    var base = TopSample()
    base.time = sample.startedAt
    self.earlier = earlier.flatMap { $0.startedAt == sample.startedAt ? $0 : nil } ?? base
    seconds = max(Double(sample.time) - Double(self.earlier.time), 1e6) / 1e9
  }

  private func rate(_ later: UInt64, _ before: UInt64) -> Double {
    later > before ? Double(later - before) / seconds : 0
  }

  private func rate(_ fate: QueryFate) -> Double { rate(sample.fates[fate.rawValue], earlier.fates[fate.rawValue]) }

  private var queryRate: Double { QueryFate.allCases.reduce(0) { $0 + rate($1) } }

  private var hitRatio: Double? {
    let hits = rate(.hit) + rate(.stale)
    let all = hits + rate(.miss) + rate(.overflow)
    return all > 0 ? hits / all : nil
  }

  /// A name with its rates between the samples.
  private struct Row {
    /// Its index in the sample.
    var place: Int
    var name: TopSample.Name
    var hits: Double
    var questions: Double
    var failed: Double
  }

  /// The names that a view shows, in its order.
  private func rows(_ view: TopView = TopView()) -> [Row] {
    var before: [String: TopSample.Name] = [:]
    for name in earlier.names { before["\(name.name) \(name.type)"] = name }
    let rows = sample.names.enumerated().compactMap { place, name -> Row? in
      guard view.filter.isEmpty || name.name.lowercased().contains(view.filter) else { return nil }
      let last = before["\(name.name) \(name.type)"] ?? TopSample.Name()
      return Row(
        place: place, name: name, hits: rate(name.hits, last.hits), questions: rate(name.questions, last.questions),
        failed: rate(name.failed, last.failed))
    }
    if view.order == .name { return rows.sorted { ($0.name.name, $0.place) < ($1.name.name, $1.place) } }
    func weight(_ row: Row) -> Double {
      switch view.order {
      case .busy, .name: row.hits + row.questions
      case .hits: row.hits
      case .asked: row.questions
      case .failed: row.failed
      case .roundTrip: Double(row.name.averageRoundTrip)
      }
    }
    return rows.map { ($0, weight($0)) }.sorted { $0.1 == $1.1 ? $0.0.place < $1.0.place : $0.1 > $1.1 }.map(\.0)
  }

  private func rate(_ code: CountedCode) -> Double { rate(sample.codes[code.rawValue], earlier.codes[code.rawValue]) }

  private func roundTrips(_ provider: TopSample.Provider) -> LatencyHistogram {
    provider.roundTrips - (last(provider)?.roundTrips ?? LatencyHistogram())
  }

  private func last(_ provider: TopSample.Provider) -> TopSample.Provider? {
    earlier.providers.first { $0.name == provider.name }
  }
}

// MARK: - Lines

extension TopFrame {
  /// The most failing names shown above the busiest ones.
  private static let mostFailing = 5
  /// A name that failed longer ago, in nanoseconds, is not shown as failing.
  private static let recently: UInt64 = 60_000_000_000

  /// The frame as lines; names fill the remaining rows. Long columns are last, so that a narrow window still shows the
  /// numbers, and long domain names are shortened in the middle.
  ///
  /// - Parameters:
  ///   - columns: the width of the window in characters.
  ///   - hint: appended to the first line.
  ///   - view: the settings that keys change, which the last line shows; nil if there are no keys.
  public func lines(rows: Int, columns: Int = .max, hint: String = "", view: TopView? = nil) -> [ScreenLine] {
    let uptime = Duration.nanoseconds(Int64(clamping: sample.time - min(sample.startedAt, sample.time)))
    let space = max(1, view == nil ? rows : rows - 1)
    var lines = [ScreenLine("httpdnsd, up \(TimeText.rough(uptime))\(hint)", isHeading: true)]
    if view?.showsHelp == true {
      lines += [ScreenLine("")] + TopView.help.map { ScreenLine($0) }
    } else {
      lines += summary.flatMap { TopFrame.wrapped($0, columns) }.map { ScreenLine($0) }
      lines.append(ScreenLine(""))
      lines += providerLines(columns)
      let failing = failingLines(view ?? TopView())
      if !failing.isEmpty { lines += [ScreenLine("")] + failing }
      lines.append(ScreenLine(""))
      let room = max(0, space - lines.count - 1)
      let head = ["hits/s", "asked/s", "hits", "asked", "avgRtt", "type", "name"]
      lines += TopFrame.shortened(table(head, nameRows(self.rows(view ?? TopView()), room)), columns)
    }
    lines = Array(lines.prefix(space))
    guard let view, rows > 1 else { return lines }
    lines += Array(repeating: ScreenLine(""), count: max(0, space - lines.count))
    return lines + [ScreenLine(view.line, isHeading: true)]
  }

  /// What ranking does; nil if nothing is measured.
  private var rankingLine: String? {
    guard let ranking = sample.ranking else { return nil }
    let last = earlier.ranking ?? TopSample.Ranking()
    let answers = ranking.answers == 1 ? "1 answer" : "\(ranking.answers) answers"
    return "ranking    \(answers) measured; \(decimal(rate(ranking.probes, last.probes))) probes/s, "
      + "\(decimal(rate(ranking.failed, last.failed))) failed/s, "
      + "\(decimal(rate(ranking.deferred, last.deferred))) put off/s, "
      + "\(decimal(rate(ranking.rearranged, last.rearranged))) rearranged/s"
      + (ranking.problems.isEmpty ? "" : "; \(ranking.problems.joined(separator: "; "))")
  }

  /// What the store that daemons share brings; nil without one.
  private var fleetLine: String? {
    guard let fleet = sample.fleet else { return nil }
    let last = earlier.fleet ?? TopSample.Fleet()
    guard fleet.isUp else { return "fleet      store \(fleet.state)" }
    return "fleet      \(decimal(rate(fleet.hits, last.hits))) answers of other daemons/s, "
      + "\(decimal(rate(fleet.misses, last.misses))) misses/s, "
      + "\(decimal(rate(fleet.adopted, last.adopted))) refreshes adopted/s"
      + (fleet.state == "up" ? "" : "; store \(fleet.state)")
  }

  private var summary: [String] {
    let parts = QueryFate.allCases.filter { rate($0) > 0 }.map { "\(decimal(rate($0))) \($0.text)" }
    let codes = CountedCode.allCases.filter { rate($0) > 0 }.map { "\(decimal(rate($0))) \($0.mnemonic)" }
    return [
      "queries/s  \(decimal(queryRate))" + (parts.isEmpty ? "" : ": \(parts.joined(separator: ", "))"),
      "results/s  \(codes.isEmpty ? "-" : codes.joined(separator: ", "))",
      "hit ratio  \(hitRatio.map(percent) ?? "-")",
      "local      \(latency(sample.atHand - earlier.atHand))",
      "forwarded  \(latency(sample.resolved - earlier.resolved))",
      "cache      \(sample.entries) of \(sample.maxEntries) entries, \(sample.octets >> 10) of "
        + "\(sample.maxOctets >> 10) KiB; \(decimal(rate(sample.refreshes, earlier.refreshes))) refreshes/s",
      "in flight  \(sample.inFlight) questions, \(sample.waiting) clients waiting",
    ] + [rankingLine, fleetLine].compactMap(\.self)
  }

  private func latency(_ histogram: LatencyHistogram) -> String {
    guard let mean = histogram.mean, let half = histogram.quantile(0.5), let most = histogram.quantile(0.99) else {
      return "-"
    }
    return "\(TimeText.fine(mean)) on average, half within \(TimeText.fine(half)), 99 % within \(TimeText.fine(most))"
  }

  /// The table of providers, with explanations below it.
  private func providerLines(_ columns: Int) -> [ScreenLine] {
    let head = ["provider", "state", "transfers/s", "failures/s", "round trip", "units today", "server"]
    let rows = sample.providers.map { provider in
      let last = last(provider)
      let units =
        "\(provider.unitsToday)" + (provider.fleetUnits.map { ", fleet \($0)" } ?? "")
        + (provider.unitsPerDay > 0 ? " of \(provider.unitsPerDay)" : "")
      return [
        provider.name, provider.state, decimal(rate(provider.transfers, last?.transfers ?? 0)),
        decimal(rate(provider.failures, last?.failures ?? 0)),
        roundTrips(provider).mean.map(TimeText.milliseconds) ?? "-", units,
        provider.server.isEmpty ? "-" : provider.server,
      ]
    }
    var lines = table(head, rows)
    let start = (rows.map { $0[0].count } + [head[0].count]).max()! + 2
    for (index, provider) in sample.providers.enumerated() {
      let colour = TopFrame.colour(ofState: provider.state)
      lines[index + 1].spans = [ScreenLine.Span(start..<(start + provider.state.count), colour)]
    }
    for provider in sample.providers where !provider.reason.isEmpty {
      lines += TopFrame.folded("\(provider.name): \(provider.reason)", columns).map { ScreenLine($0) }
    }
    return lines
  }

  private static func colour(ofState state: String) -> ScreenColour {
    switch state {
    case ProviderReport.State.up.label: .green
    case ProviderReport.State.noAnswers(since: 0).label, ProviderReport.State.unreachable(since: nil, nil).label: .red
    default: .yellow
    }
  }

  /// Names that failed in the last minute or since the earlier sample, with their rates, the worst first.
  private func failingNames(_ view: TopView) -> [(row: TopSample.Failing, rate: Double)] {
    var before: [String: UInt64] = [:]
    for row in earlier.failing { before["\(row.name) \(row.type)"] = row.count }
    return sample.failing.filter { row in
      row.age < TopFrame.recently && (view.filter.isEmpty || row.name.contains(view.filter))
    }.map { ($0, rate($0.count, before["\($0.name) \($0.type)"] ?? 0)) }
      .enumerated().sorted { ($1.element.1, $0.offset) < ($0.element.1, $1.offset) }.map(\.element)
  }

  /// The table of failing names; empty if no name fails.
  private func failingLines(_ view: TopView) -> [ScreenLine] {
    let failing = failingNames(view).prefix(TopFrame.mostFailing)
    guard !failing.isEmpty else { return [] }
    let rows = failing.map { row, rate in
      [
        decimal(rate), "\(row.count)", TimeText.rough(.nanoseconds(Int64(clamping: row.age))), row.type, row.name,
        row.reason,
      ]
    }
    return table(["failing/s", "failed", "ago", "type", "name", "why"], Array(rows)).map { line in
      var line = line
      if !line.isHeading {
        line.spans = [ScreenLine.Span(0..<line.text.prefix { $0 != " " }.count, .red)]
      }
      return line
    }
  }

  private func nameRows(_ rows: [Row], _ count: Int) -> [[String]] {
    rows.prefix(count).map { row in
      let average = Duration.nanoseconds(Int64(clamping: row.name.averageRoundTrip))
      return [
        decimal(row.hits), decimal(row.questions), "\(row.name.hits)", "\(row.name.questions)",
        average > .zero ? TimeText.milliseconds(average) : "-", row.name.type, row.name.name,
      ]
    }
  }

  private func table(_ head: [String], _ rows: [[String]]) -> [ScreenLine] {
    TextTable.lines([head] + rows).enumerated().map { ScreenLine($1, isHeading: $0 == 0) }
  }

  /// Breaks a sentence at spaces into lines that fit; all but the first are indented.
  private static func folded(_ text: String, _ columns: Int) -> [String] {
    guard text.count > columns else { return [text] }
    var lines: [String] = []
    for word in text.split(separator: " ") {
      if let last = lines.last, last.count + word.count + 1 <= columns {
        lines[lines.count - 1] = "\(last) \(word)"
      } else {
        lines.append(lines.isEmpty ? String(word) : "  \(word)")
      }
    }
    return lines
  }

  /// Breaks a line at commas into lines that fit; all but the first are indented to the first one's text.
  private static func wrapped(_ line: String, _ columns: Int) -> [String] {
    guard line.count > columns else { return [line] }
    var lines: [String] = []
    for part in line.split(separator: ", ") {
      if let last = lines.last, last.count + part.count + 2 < columns {
        lines[lines.count - 1] = "\(last), \(part)"
      } else {
        if let last = lines.popLast() { lines.append(last + ",") }
        lines.append(lines.isEmpty ? String(part) : summaryIndentation + part)
      }
    }
    return lines
  }

  private static let summaryIndentation = String(repeating: " ", count: 11)

  /// Shortens domain names in the last column of a table in the middle, if they do not fit.
  private static func shortened(_ lines: [ScreenLine], _ columns: Int) -> [ScreenLine] {
    guard let head = lines.first, let start = head.text.lastIndex(of: " ") else { return lines }
    let place = head.text.distance(from: head.text.startIndex, to: start) + 1
    return lines.map { line in
      let room = columns - place
      let name = line.text.dropFirst(place)
      guard name.count > room, room > 3 else { return line }
      var line = line
      let beginning = room / 3
      line.text = "\(line.text.prefix(place + beginning))…\(name.suffix(room - beginning - 1))"
      return line
    }
  }

  private func decimal(_ value: Double) -> String {
    let tenths = Int64(min(value, 1e15) * 10 + 0.5)
    return "\(tenths / 10).\(tenths % 10)"
  }
}

// MARK: - JSON

extension TopFrame {
  /// The most names in a JSON object.
  private static let mostNames = 50

  /// The frame as one JSON object on one line.
  public var json: String {
    let providers = sample.providers.map { provider in
      let last = last(provider)
      return JSONText.object([
        "name": JSONText.string(provider.name), "state": JSONText.string(provider.state),
        "reason": provider.reason.isEmpty ? nil : JSONText.string(provider.reason),
        "server": provider.server.isEmpty ? nil : JSONText.string(provider.server),
        "round_trip_ms": JSONText.latency(roundTrips(provider)),
        "transfers_per_second": number(rate(provider.transfers, last?.transfers ?? 0)),
        "failures_per_second": number(rate(provider.failures, last?.failures ?? 0)),
        "units_today": "\(provider.unitsToday)",
        "fleet_units_today": provider.fleetUnits.map { "\($0)" }, "units_per_day": "\(provider.unitsPerDay)",
      ])
    }
    let names = rows().prefix(TopFrame.mostNames).map { row in
      JSONText.object([
        "name": JSONText.string(row.name.name), "type": JSONText.string(row.name.type),
        "hits_per_second": number(row.hits), "questions_per_second": number(row.questions),
        "failures_per_second": number(row.failed), "hits": "\(row.name.hits)", "questions": "\(row.name.questions)",
        "failures": "\(row.name.failed)",
      ])
    }
    let failing = failingNames(TopView()).prefix(TopFrame.mostNames).map { row, rate in
      JSONText.object([
        "name": JSONText.string(row.name), "type": JSONText.string(row.type), "failures_per_second": number(rate),
        "failures": "\(row.count)", "reason": JSONText.string(row.reason),
        "age_seconds": JSONText.seconds(.nanoseconds(Int64(clamping: row.age))),
      ])
    }
    return JSONText.object([
      "interval_seconds": number(seconds), "queries_per_second": number(queryRate), "hit_ratio": hitRatio.map(number),
      "fates_per_second": JSONText.object(QueryFate.allCases.map { ($0.word, number(rate($0))) }),
      "rcodes_per_second": JSONText.object(CountedCode.allCases.map { ($0.word, number(rate($0))) }),
      "latency_at_hand_ms": JSONText.latency(sample.atHand - earlier.atHand),
      "latency_resolved_ms": JSONText.latency(sample.resolved - earlier.resolved), "cache_entries": "\(sample.entries)",
      "cache_octets": "\(sample.octets)", "questions_under_way": "\(sample.inFlight)",
      "waiting_clients": "\(sample.waiting)",
      "refreshes_per_second": number(rate(sample.refreshes, earlier.refreshes)),
      "providers": JSONText.array(providers), "names": JSONText.array(names),
      "failing": JSONText.array(failing),
    ])
  }

  private func number(_ value: Double) -> String { JSONText.seconds(.nanoseconds(Int64(min(value, 1e9) * 1e9))) }
}

extension CountedCode {
  /// The mnemonic in IANA's registry.
  fileprivate var mnemonic: String { self == .other ? "other codes" : word.uppercased() }
}
