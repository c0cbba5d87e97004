// OverviewText.swift -- the whole cache in a few figures with its busiest entries, as text and as JSON.

import DNSWire
import Forwarder
import HTTPServer
import MessageCache
import Resolver
import Telemetry

/// A request for the whole cache.
public struct OverviewRequest: Sendable {
  /// Entries that are shown at most.
  public static let mostEntries = 1000
  /// Entries that are shown unless the request says otherwise.
  public static let usualEntries = 50

  /// How many of the busiest entries are wanted.
  let limit: Int

  /// Reads `limit=NUMBER`; nil where the request is about a name.
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

/// The whole cache.
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
      ["hits", "\(overview.hits) of the entries that are there"],
      ["so far", "\(statistics.insertions) insertions, \(statistics.evictions) evictions"],
      ["failures", "\(overview.failures) questions failed a moment ago and are not asked again yet"],
    ]
    var lines = TextTable.lines(rows)
    if !overview.busiest.isEmpty {
      let head = ["hits", "type", "rcode", "fresh for", "age", "from", "name"]
      lines += [""] + TextTable.lines([head] + overview.busiest.map(row))
      let more = overview.fresh + overview.stale - overview.busiest.count
      if more > 0 { lines.append("and \(more) more; --limit shows more of them") }
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
