// TopFrame.swift -- what `httpdnsd top` shows: the difference of two samples, as lines for a screen or as JSON.

import EventLoop
import Forwarder
import Frontend
import Telemetry

/// What happened between two samples; since the start where there is no earlier one, or the daemon is another one now.
public struct TopFrame: Sendable {
  private let sample: TopSample
  private let earlier: TopSample
  private let seconds: Double

  /// A frame.
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

  /// Names with what they did in between, the busiest first.
  private var names: [(name: TopSample.Name, hits: Double, questions: Double)] {
    var before: [String: TopSample.Name] = [:]
    for name in earlier.names { before["\(name.name) \(name.type)"] = name }
    return sample.names.enumerated().map { index, name in
      let last = before["\(name.name) \(name.type)"]
      return (index, name, rate(name.hits, last?.hits ?? 0), rate(name.questions, last?.questions ?? 0))
    }.sorted { left, right in
      let (mine, others) = (left.2 + left.3, right.2 + right.3)
      return mine == others ? left.0 < right.0 : mine > others
    }.map { ($0.1, $0.2, $0.3) }
  }

  private func roundTrips(_ provider: TopSample.Provider) -> LatencyHistogram {
    provider.roundTrips - (last(provider)?.roundTrips ?? LatencyHistogram())
  }

  private func last(_ provider: TopSample.Provider) -> TopSample.Provider? {
    earlier.providers.first { $0.name == provider.name }
  }
}

// MARK: - Lines

/// A line of a frame.
public struct TopLine: Sendable, Equatable {
  /// What it says.
  public var text: String
  /// Whether it is the head of a table, or of all.
  public var isHeading = false
}

extension TopFrame {
  /// The frame as lines; names fill what is left of the rows. What may be long stands last, so that a narrow window has the
  /// numbers, and a domain name is cut in its middle.
  ///
  /// - Parameters:
  ///   - columns: characters of a line that are seen.
  ///   - hint: stands at the end of the first line.
  public func lines(rows: Int, columns: Int = .max, hint: String = "") -> [TopLine] {
    let uptime = Duration.nanoseconds(Int64(clamping: sample.time - min(sample.startedAt, sample.time)))
    var lines = [TopLine(text: "httpdnsd, up \(TimeText.rough(uptime))\(hint)", isHeading: true)]
    lines += summary.flatMap { TopFrame.wrapped($0, columns) }.map { TopLine(text: $0) }
    lines.append(TopLine(text: ""))
    lines += table(
      ["provider", "state", "transfers/s", "failures/s", "round trip", "units today", "server", "why"], providerRows)
    lines.append(TopLine(text: ""))
    let room = max(0, rows - lines.count - 1)
    let head = ["hits/s", "asked/s", "hits", "asked", "avgRtt", "type", "name"]
    lines += TopFrame.shortened(table(head, nameRows(room)), columns)
    return Array(lines.prefix(max(1, rows)))
  }

  private var summary: [String] {
    let fates: [QueryFate] = [
      .hit, .stale, .local, .blocked, .miss, .refused, .invalid, .overflow, .limited, .dropped,
    ]
    let parts = fates.filter { rate($0) > 0 }.map { "\(decimal(rate($0))) \($0.text)" }
    return [
      "queries/s  \(decimal(queryRate))" + (parts.isEmpty ? "" : ": \(parts.joined(separator: ", "))"),
      "hit ratio  \(hitRatio.map(percent) ?? "-")",
      "at hand    \(latency(sample.atHand - earlier.atHand))",
      "waited     \(latency(sample.resolved - earlier.resolved))",
      "cache      \(sample.entries) of \(sample.maxEntries) entries, \(sample.octets >> 10) of "
        + "\(sample.maxOctets >> 10) KiB; \(decimal(rate(sample.refreshes, earlier.refreshes))) refreshes/s",
      "in flight  \(sample.underWay) questions, \(sample.waiting) clients wait",
    ]
  }

  private func latency(_ histogram: LatencyHistogram) -> String {
    guard let mean = histogram.mean, let half = histogram.quantile(0.5), let most = histogram.quantile(0.99) else {
      return "-"
    }
    return "\(TimeText.fine(mean)) on average, half within \(TimeText.fine(half)), 99 % within \(TimeText.fine(most))"
  }

  private var providerRows: [[String]] {
    sample.providers.map { provider in
      let last = last(provider)
      let (state, reason) = TopFrame.parts(ofState: provider.state)
      let units = "\(provider.unitsToday)" + (provider.unitsPerDay > 0 ? " of \(provider.unitsPerDay)" : "")
      return [
        provider.name, state, decimal(rate(provider.transfers, last?.transfers ?? 0)),
        decimal(rate(provider.failures, last?.failures ?? 0)),
        roundTrips(provider).mean.map(TimeText.milliseconds) ?? "-", units,
        provider.server.isEmpty ? "-" : provider.server, reason,
      ]
    }
  }

  private func nameRows(_ count: Int) -> [[String]] {
    names.prefix(count).map { name, hits, questions in
      let average = Duration.nanoseconds(Int64(clamping: name.averageRoundTrip))
      return [
        decimal(hits), decimal(questions), "\(name.hits)", "\(name.questions)",
        average > .zero ? TimeText.milliseconds(average) : "-", name.type, name.name,
      ]
    }
  }

  private func table(_ head: [String], _ rows: [[String]]) -> [TopLine] {
    TextTable.lines([head] + rows).enumerated().map { TopLine(text: $1, isHeading: $0 == 0) }
  }

  /// The word for a state, and what is behind it: the reason, and until when.
  private static func parts(ofState text: String) -> (word: String, rest: String) {
    let ends = [": ", " until ", " ("].compactMap { text.firstRange(of: $0)?.lowerBound }
    guard let end = ends.min() else { return (text, "") }
    return (String(text[..<end]), String(text[end...].drop { ": ".contains($0) }))
  }

  /// The line in pieces that fit, each from the second on below the first one's text.
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

  /// A table whose last column is a domain name, which loses its middle where it does not fit.
  private static func shortened(_ lines: [TopLine], _ columns: Int) -> [TopLine] {
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
  /// Names in a JSON object.
  private static let mostNames = 50

  /// The frame as one JSON object.
  public var json: String {
    let providers = sample.providers.map { provider in
      let last = last(provider)
      return JSONText.object([
        "name": JSONText.string(provider.name), "state": JSONText.string(provider.state),
        "server": provider.server.isEmpty ? nil : JSONText.string(provider.server),
        "round_trip_ms": JSONText.latency(roundTrips(provider)),
        "transfers_per_second": number(rate(provider.transfers, last?.transfers ?? 0)),
        "failures_per_second": number(rate(provider.failures, last?.failures ?? 0)),
        "units_today": "\(provider.unitsToday)", "units_per_day": "\(provider.unitsPerDay)",
      ])
    }
    let names = names.prefix(TopFrame.mostNames).map { name, hits, questions in
      JSONText.object([
        "name": JSONText.string(name.name), "type": JSONText.string(name.type), "hits_per_second": number(hits),
        "questions_per_second": number(questions), "hits": "\(name.hits)", "questions": "\(name.questions)",
      ])
    }
    return JSONText.object([
      "interval_seconds": number(seconds), "queries_per_second": number(queryRate), "hit_ratio": hitRatio.map(number),
      "fates_per_second": JSONText.object(QueryFate.allCases.map { ($0.word, number(rate($0))) }),
      "latency_at_hand_ms": JSONText.latency(sample.atHand - earlier.atHand),
      "latency_resolved_ms": JSONText.latency(sample.resolved - earlier.resolved), "cache_entries": "\(sample.entries)",
      "cache_octets": "\(sample.octets)", "questions_under_way": "\(sample.underWay)",
      "waiting_clients": "\(sample.waiting)",
      "refreshes_per_second": number(rate(sample.refreshes, earlier.refreshes)),
      "providers": JSONText.array(providers), "names": JSONText.array(names),
    ])
  }

  private func number(_ value: Double) -> String { JSONText.seconds(.nanoseconds(Int64(min(value, 1e9) * 1e9))) }
}
