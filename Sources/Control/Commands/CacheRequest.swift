// CacheRequest.swift -- `GET /cache[?limit=N]`: a summary of the cache; `GET /cache?name=NAME`: the entries of a name.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON
import MessageCache
import Ranking
import Refresh
import Resolver
import Telemetry

/// A request for a summary of the cache, or for the entries of a percent-encoded name.
enum CacheRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/cache"

  case overview(OverviewRequest)
  case name(DomainName)

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    if let wanted = try OverviewRequest(request) {
      self = .overview(wanted)
    } else {
      self = .name(try DomainName(request))
    }
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    switch self {
    case .overview(let wanted): OverviewText(overview: await actions.overview(busiest: wanted.limit))
    case .name(let name): ContentText(name: name, content: await actions.content(of: name))
    }
  }
}

struct ContentText: ControlText {
  let name: DomainName
  let content: NameContent

  var isIncomplete: Bool { content.entries.isEmpty && content.failures.isEmpty }

  var text: String {
    guard !isIncomplete else { return "the cache has nothing for \(name.text)\n" }
    var lines = content.entries.flatMap(lines)
    if content.more > 0 { lines.append("and \(counted(content.more, "more entry", "more entries"))") }
    for failure in content.failures {
      lines.append(
        "\(title(failure.question)): failed: \(failure.reason); not retried for \(TimeText.wait(failure.waits))")
    }
    return lines.map { "\($0)\n" }.joined()
  }

  private func lines(_ entry: EntryReport) -> [String] {
    var lines = ["\(title(entry.question)): \(entry.responseCode), \(TimeText.rough(entry.age)) old"]
    lines += (entry.answers + entry.authorities).map { record in
      "  \(record.owner.text) \(record.ttl) \(record.type) \(RDATA.text(record.rdata, type: record.type))"
    }
    lines += entry.addresses.map { "  \($0.address): \(AddressText.line($0))" }
    let isFresh = entry.freshFor > .zero
    var state = isFresh ? "fresh for \(TimeText.rough(entry.freshFor))" : "expired"
    switch entry.usefulFor {
    case nil: state += ", served for as long as httpdnsd runs"
    case .some(let time) where time > max(entry.freshFor, .zero): state += ", as stale data for \(TimeText.rough(time))"
    case .some: break
    }
    lines.append("  \(state); \(counted(entry.hits, "hit")), \(refresh(entry.refresh))")
    let asked = entry.upstreams.isEmpty ? "none" : entry.upstreams.joined(separator: ", ")
    lines.append("  from \(entry.source); upstreams for such names: \(asked)")
    return lines
  }

  private func title(_ question: EntryQuestion) -> String {
    var parts = ["\(question.name.text) \(question.typeText)"]
    if question.dnssecOK { parts.append("with DO") }
    if question.checkingDisabled { parts.append("with CD") }
    if let subnet = question.subnet { parts.append("for \(subnet)") }
    if !question.isHere { parts.append("on another network") }
    return parts.joined(separator: " ")
  }

  private func refresh(_ plan: RefreshPlan) -> String {
    switch plan {
    case .none: "not refreshed in advance"
    case .inFlight: "being refreshed"
    case .keepList(let time): "in refresh.keep, refreshed in \(TimeText.rough(time))"
    case .hot(let time): "in use, refreshed in \(TimeText.rough(time))"
    case .ifHit(let times, let time): "refreshed in \(TimeText.rough(time)) if asked for \(counted(times, "more time"))"
    }
  }

  var json: String {
    JSONText.object([
      "name": JSONText.string(name.text), "entries": JSONText.array(content.entries.map(\.json)),
      "more": "\(content.more)",
      "failures": JSONText.array(
        content.failures.map { failure in
          JSONText.object(
            failure.question.members + [
              ("waits_seconds", JSONText.seconds(failure.waits)), ("reason", JSONText.string(failure.reason)),
            ])
        }),
    ])
  }
}

extension EntryReport {
  var json: String {
    let rest = JSONText.members([
      "rcode": JSONText.string("\(responseCode)"), "source": JSONText.string(source),
      "upstreams": JSONText.array(upstreams.map(JSONText.string)),
      "answers": JSONText.array(answers.map(JSONText.record)),
      "authorities": JSONText.array(authorities.map(JSONText.record)), "age_seconds": JSONText.seconds(age),
      "fresh_seconds": JSONText.seconds(freshFor), "useful_seconds": usefulFor.map(JSONText.seconds),
      "unused_seconds": JSONText.seconds(unusedFor), "hits": "\(hits)", "refresh": refresh.json,
      "addresses": addresses.isEmpty ? nil : JSONText.array(addresses.map(AddressText.json)),
    ])
    return JSONText.object(question.members + rest)
  }
}

extension EntryQuestion {
  /// The type as text. NXDOMAIN, which holds for every type, has type 0.
  var typeText: String { type.rawValue == 0 ? "(no such name)" : "\(type)" }

  fileprivate var members: [(String, String)] {
    JSONText.members([
      "name": JSONText.string(name.text), "type": JSONText.string(type.rawValue == 0 ? "every" : "\(type)"),
      "dnssec_ok": "\(dnssecOK)", "checking_disabled": "\(checkingDisabled)", "route": "\(route)",
      "network": "\(network)", "here": "\(isHere)", "subnet": subnet.map { JSONText.string("\($0)") },
    ])
  }
}

extension RefreshPlan {
  /// A JSON object; nil if no refresh is planned.
  package var json: String? {
    func object(_ why: String, _ time: Duration, hits: UInt32? = nil) -> String {
      JSONText.object([
        "why": JSONText.string(why), "in_seconds": JSONText.seconds(time), "missing_hits": hits.map { "\($0)" },
      ])
    }
    return switch self {
    case .none: nil
    case .inFlight: object("under_way", .zero)
    case .keepList(let time): object("kept", time)
    case .hot(let time): object("hot", time)
    case .ifHit(let times, let time): object("if_hit", time, hits: times)
    }
  }
}

extension JSONText {
  static func record(_ record: ResourceRecord) -> String {
    object([
      "name": string(record.owner.text), "type": string("\(record.type)"), "ttl": "\(record.ttl)",
      "data": string(RDATA.text(record.rdata, type: record.type)),
    ])
  }
}

/// The parameters of a request for a summary of the cache.
public struct OverviewRequest: Sendable {
  /// The largest number of entries that a request may ask for.
  public static let mostEntries = 1000
  /// The number of entries that a request without a limit gets.
  public static let usualEntries = 50

  /// The number of busiest entries to show.
  let limit: Int

  /// Reads `limit=NUMBER`; nil if the query is not a limit.
  init?(_ request: HTTPServerRequest) throws(ControlRefusal) {
    guard let query = request.query else {
      limit = OverviewRequest.usualEntries
      return
    }
    guard query.hasPrefix("limit=") else { return nil }
    guard let limit = Int(query.dropFirst(6)), (0...OverviewRequest.mostEntries).contains(limit) else {
      throw ControlRefusal(status: 400, reason: "limit= takes a number from 0 to \(OverviewRequest.mostEntries)")
    }
    self.limit = limit
  }
}

struct OverviewText: ControlText {
  let overview: CacheOverview

  private var statistics: CacheStatistics { overview.statistics }

  var text: String {
    let rows = [
      [
        "entries",
        "\(statistics.entries) of \(statistics.maxEntries): \(overview.fresh) fresh, \(overview.stale) stale; "
          + "\(overview.negative) of them negative",
      ],
      ["memory", "\(kibibytes(statistics.octets)) of \(kibibytes(statistics.maxOctets)) KiB"],
      ["hits", "\(overview.hits) on the current entries"],
      ["so far", "\(counted(statistics.insertions, "insertion")), \(counted(statistics.evictions, "eviction"))"],
      [
        "failures",
        "\(counted(overview.failures, "question")) failed recently and "
          + (overview.failures == 1 ? "is not retried yet" : "are not retried yet"),
      ],
    ]
    var lines = TextTable.lines(rows)
    if !overview.busiest.isEmpty {
      let head = ["hits", "type", "rcode", "fresh for", "age", "from", "name"]
      lines += [""] + TextTable.lines([head] + overview.busiest.map(row))
      let more = overview.fresh + overview.stale - overview.busiest.count
      if more > 0 { lines.append("and \(more) more; --limit shows more") }
    }
    return lines.map { "\($0)\n" }.joined()
  }

  private func row(_ entry: EntryReport) -> [String] {
    [
      "\(entry.hits)", entry.question.typeText, "\(entry.responseCode)",
      entry.freshFor > .zero ? TimeText.rough(entry.freshFor) : "expired", TimeText.rough(entry.age), entry.source,
      entry.question.name.text,
    ]
  }

  private func kibibytes(_ octets: Int) -> Int { (octets + 1023) >> 10 }

  var json: String {
    let summary = JSONText.object([
      "entries": "\(statistics.entries)", "max_entries": "\(statistics.maxEntries)", "octets": "\(statistics.octets)",
      "max_octets": "\(statistics.maxOctets)", "insertions": "\(statistics.insertions)",
      "evictions": "\(statistics.evictions)", "fresh": "\(overview.fresh)", "stale": "\(overview.stale)",
      "negative": "\(overview.negative)", "hits": "\(overview.hits)", "failures": "\(overview.failures)",
    ])
    return JSONText.object(["summary": summary, "busiest": JSONText.array(overview.busiest.map(\.json))])
  }
}

extension ControlClient {
  /// Returns the cached entries of a name.
  public func cache(_ name: String, _ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(CacheRequest.self, query: "?name=\(PercentText.encode(name))", form)
  }

  /// Returns a summary of the cache, and its busiest entries.
  public func cache(limit: Int, _ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(CacheRequest.self, query: "?limit=\(limit)", form)
  }
}
