// StatsRequest.swift -- `GET /stats[?by-name|?top]`: the counters in total, of the busiest names, or for `top`.

import BusyNames
import DNSWire
import EventLoop
import Fleet
import Forwarder
import Frontend
import HTTPMessage
import HTTPServer
import JSON
import MessageCache
import Ranking
import Refresh
import Resolver
import Store
import Telemetry

struct StatsRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/stats"

  private enum Part { case totals, names, top }

  private let part: Part

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    switch request.query {
    case nil: part = .totals
    case "by-name": part = .names
    case "top": part = .top
    default: throw ControlRefusal(status: 400, reason: "unknown parameter; expected by-name or top")
    }
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    switch part {
    case .totals: return StatsText(numbers: await actions.numbers())
    case .names: return NamesText(names: await actions.names())
    case .top: return StatsText(numbers: await actions.numbers(), busiest: await actions.names().reports)
    }
  }
}

/// The counters in total.
struct StatsText: ControlText {
  let numbers: DaemonNumbers
  /// The busiest names, if the JSON is for `top`; otherwise nil.
  var busiest: [NameReport]?

  /// Above the counters whose names and order are not ours.
  private static let heading = "counters of Alibaba's SDKs"

  private var statistics: ForwarderStatistics { numbers.statistics }
  private var queries: QueryTotals { numbers.statistics.queries }

  var text: String {
    let cache = statistics.cache
    let maximum = kibibytes(cache.maxOctets)
    var rows = [
      ["up", TimeText.rough(statistics.uptime)],
      ["queries", "\(queries.queries)\(queries.hitRatio.map { ", \(percent($0)) from the cache" } ?? "")"],
    ]
    rows += QueryFate.allCases.map { ["  \($0.text)", "\(queries.count($0))"] }
    rows += [
      ["local answers", latency(queries.atHand)], ["forwarded answers", latency(queries.resolved)],
      ["cache", "\(cache.entries) of \(cache.maxEntries) entries, \(kibibytes(cache.octets)) of \(maximum)"],
      [
        "in flight",
        "\(counted(statistics.questionsInFlight, "question")), \(counted(statistics.waitingClients, "client")) waiting",
      ],
    ]
    let limited = ShareLimit.allCases.map { ($0, statistics.resolver.shares.count($0)) }.filter { $0.1 > 0 }
    if !limited.isEmpty { rows.append(["beyond a share", limited.map { "\($0.word) \($1)" }.joined(separator: ", ")]) }
    if let refresh = statistics.refresh {
      rows.append([
        "refreshing", "\(counted(refresh.transfers, "transfer")), \(refresh.overBudget) beyond the budget",
      ])
    }
    if let fleet = statistics.fleet {
      let counters = fleet.counters
      rows.append([
        "fleet",
        "\(fleet.state), \(counted(counters.count(of: .hit), "answer")) of other daemons, "
          + "\(counted(counters.count(of: .miss), "miss", "misses")), \(counted(counters.adopted, "refresh", "refreshes")) adopted",
      ])
    }
    if let ranking {
      let counters = ranking.counters
      rows.append([
        "ranking",
        "\(counted(ranking.answers, "answer")) measured, \(counted(counters.probes, "probe"))"
          + " (\(counters.failures) failed, \(counters.deferred) put off), \(counters.rearranged) rearranged",
      ])
    }
    let counters = numbers.counts.members(network: numbers.network).map { [$0.name, $0.text] }
    let lines = TextTable.lines(rows) + ["", StatsText.heading] + TextTable.lines(counters)
    return lines.map { "\($0)\n" }.joined()
  }

  var json: String {
    let fates = QueryFate.allCases.map { ($0.word, "\(queries.count($0))") }
    let codes = CountedCode.allCases.map { ($0.word, "\(queries.count($0))") }
    let cache = statistics.cache
    let counts = numbers.counts.members(network: numbers.network).map { ($0.name, $0.json) }
    let rest = JSONText.members([
      "uptime_seconds": JSONText.seconds(statistics.uptime), "time_ns": "\(statistics.time.nanoseconds)",
      "started_ns": "\(statistics.startedAt.nanoseconds)", "queries": "\(queries.queries)",
      "fates": JSONText.object(fates), "rcodes": JSONText.object(codes), "hit_ratio": queries.hitRatio.map { "\($0)" },
      "latency_at_hand_ms": JSONText.histogram(queries.atHand),
      "latency_resolved_ms": JSONText.histogram(queries.resolved),
      "cache": JSONText.object([
        "entries": "\(cache.entries)", "max_entries": "\(cache.maxEntries)", "octets": "\(cache.octets)",
        "max_octets": "\(cache.maxOctets)", "insertions": "\(cache.insertions)", "evictions": "\(cache.evictions)",
      ]),
      "questions_under_way": "\(statistics.questionsInFlight)", "waiting_clients": "\(statistics.waitingClients)",
      "limited": JSONText.object(
        ShareLimit.allCases.map { ($0.word, "\(statistics.resolver.shares.count($0))") }
          + [("displaced", "\(statistics.resolver.shares.displaced)")]),
      "refresh_transfers": statistics.refresh.map { "\($0.transfers)" },
      "refresh_over_budget": statistics.refresh.map { "\($0.overBudget)" }, "ranking": ranking.map(object),
      "fleet": statistics.fleet.map(object),
    ])
    let top = busiest.map { names in
      TopMembers(providers: statistics.providers, names: names, failing: numbers.failing).members
    }
    return JSONText.object(counts + rest + (top ?? []))
  }

  /// What ranking does; nil if nothing is to be measured.
  private var ranking: RankingReport? { statistics.ranking.flatMap { $0.measures ? $0 : nil } }

  private func object(_ fleet: FleetReport) -> String {
    JSONText.object([
      "is_up": fleet.isUsed ? "1" : "0", "hits": "\(fleet.counters.count(of: .hit))",
      "misses": "\(fleet.counters.count(of: .miss))", "adopted": "\(fleet.counters.adopted)",
      "state": JSONText.string(fleet.state),
    ])
  }

  private func object(_ ranking: RankingReport) -> String {
    let counters = ranking.counters
    return JSONText.object([
      "answers": "\(ranking.answers)", "probes": "\(counters.probes)", "failed": "\(counters.failures)",
      "deferred": "\(counters.deferred)", "rearranged": "\(counters.rearranged)",
      "problems": JSONText.array(ranking.problems.map(JSONText.string)),
      "kinds": JSONText.array(ranking.kinds.map(JSONText.string)),
    ])
  }

  private func latency(_ histogram: LatencyHistogram) -> String {
    guard let mean = histogram.mean, let most = histogram.quantile(0.99) else { return "none" }
    return "\(TimeText.fine(mean)) on average, 99 % within \(TimeText.fine(most))"
  }

  private func kibibytes(_ octets: Int) -> String { "\((octets + 1023) >> 10) KiB" }
}

/// The counters of the busiest names.
struct NamesText: ControlText {
  let names: BusyNamesReport

  var text: String {
    let rows = names.reports.map { report in
      [report.name.text, report.type.counted] + report.counts.members(network: names.network).map(\.text)
    }
    let head = ["domain", "type"] + NameCounts().members(network: names.network).map(\.name)
    return TextTable.lines([head] + rows).map { "\($0)\n" }.joined()
  }

  var json: String {
    let objects = names.reports.map { report in
      let head = JSONText.members([
        "domain": JSONText.string(report.name.text), "type": "\(report.type.rawValue)",
        "counted_seconds": JSONText.seconds(report.time),
      ])
      return JSONText.object(head + report.counts.members(network: names.network).map { ($0.name, $0.json) })
    }
    return JSONText.object(["names": JSONText.array(objects)])
  }
}

extension NameCounts {
  /// The counters under the SDKs' names, in alphabetical order; times are in milliseconds.
  fileprivate func members(network: String) -> [(name: String, text: String, json: String)] {
    let (average, longest) = (Duration.nanoseconds(avgRtt), Duration.nanoseconds(maxRtt))
    func number(_ name: String, _ value: UInt64) -> (String, String, String) { (name, "\(value)", "\(value)") }
    return [
      ("avgRtt", maxRtt > 0 ? TimeText.milliseconds(average) : "-", JSONText.milliseconds(average)),
      number("cacheDnsNum", cacheDnsNum),
      number("gobackLocaldnsNum", gobackLocaldnsNum), number("localErro", localErro),
      ("maxRtt", maxRtt > 0 ? TimeText.milliseconds(longest) : "-", JSONText.milliseconds(longest)),
      number("noPermissionErro", noPermissionErro), number("noResponseErro", noResponseErro),
      number("requestPDnsNum", requestPDnsNum), ("sp", network.isEmpty ? "-" : network, JSONText.string(network)),
      number("successNum", successNum), number("timeoutErro", timeoutErro),
      number("urlParameterErro", urlParameterErro), number("urlPathErro", urlPathErro),
    ]
  }
}

extension RecordType {
  /// The type as text. NXDOMAIN, which holds for every type, is counted as type 0.
  package var counted: String { rawValue == 0 ? "NXDOMAIN" : "\(self)" }
}

extension QueryFate {
  /// The outcome in a few words.
  var text: String {
    switch self {
    case .hit: "from the cache"
    case .stale: "stale, at once"
    case .local: "answered here"
    case .blocked: "blocked"
    case .miss: "resolved"
    case .refused: "refused"
    case .invalid: "invalid"
    case .overflow: "too many waiting"
    case .dropped: "dropped"
    case .limited: "beyond the rate limit"
    }
  }
}

extension JSONText {
  /// The count, mean and quantiles of a histogram, in milliseconds.
  static func latency(_ histogram: LatencyHistogram) -> String { object(figures(histogram)) }

  /// As `latency`, with the counts of all buckets, and with the sum and the maximum in nanoseconds.
  static func histogram(_ histogram: LatencyHistogram) -> String {
    object(
      figures(histogram) + [
        ("sum_ns", "\(histogram.sum)"), ("longest_ns", "\(histogram.longest)"),
        ("buckets", array(histogram.counts.map { "\($0)" })),
      ])
  }

  private static func figures(_ histogram: LatencyHistogram) -> [(String, String)] {
    members([
      "count": "\(histogram.count)", "mean": histogram.mean.map(milliseconds),
      "p50": histogram.quantile(0.5).map(milliseconds), "p99": histogram.quantile(0.99).map(milliseconds),
    ])
  }
}

/// Formats a fraction as a percentage with one decimal, rounded down.
func percent(_ part: Double) -> String {
  let tenths = Int((part * 1000).rounded(.down))
  return "\(tenths / 10).\(tenths % 10) %"
}

extension ControlClient {
  /// Returns the daemon's counters, in total or for the busiest names.
  public func stats(byName: Bool, _ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(StatsRequest.self, query: byName ? "?by-name" : "", form)
  }

  /// Returns the counters for `top`.
  public func sample() throws(ControlClientError) -> TopSample {
    let answer = try ask(StatsRequest.self, query: "?top", .json)
    guard let sample = TopSample(json: answer.content) else { throw .unreadable(path: path) }
    return sample
  }
}
