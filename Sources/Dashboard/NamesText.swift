// NamesText.swift -- what sessions alone may see: names in use, names that fail, servers and reasons, as JSON.

import BusyNames
import Control
import DNSWire
import Fleet
import Forwarder
import Frontend
import JSON
import Ranking
import Resolver
import Store
import Telemetry
import Upstreams

/// The busiest names with their cached answers, and the reasons behind the state of the daemon.
struct NamesText: Sendable {
  let names: [NameReport]
  let overview: CacheOverview
  let numbers: DaemonNumbers
  /// Seconds since 1970.
  let now: Int64

  /// The most names, and the most names that fail.
  private static let most = 50
  /// Entries of the cache among which those of the busiest names are looked for.
  static let entries = 200
  /// A name that failed longer ago is not shown.
  private static let recently = Duration.seconds(60)

  var json: String {
    var entries: [String: EntryReport] = [:]
    for entry in overview.busiest where entry.question.isHere {
      let key = "\(entry.question.name.text.lowercased()) \(entry.question.type.rawValue)"
      if entries[key] == nil { entries[key] = entry }
    }
    let failing = numbers.failing.filter { $0.age < NamesText.recently }.prefix(NamesText.most)
    let statistics = numbers.statistics
    return JSONText.object([
      "providers": JSONText.array(statistics.providers.map(object)),
      "names": JSONText.array(
        names.prefix(NamesText.most).map { name in
          object(name, entries["\(name.name.text.lowercased()) \(name.type.rawValue)"])
        }),
      "failing": JSONText.array(
        failing.map { row in
          JSONText.object([
            "name": JSONText.string(row.name.text), "type": JSONText.string("\(row.type)"), "count": "\(row.count)",
            "age_seconds": JSONText.seconds(row.age), "reason": JSONText.string(row.reason),
          ])
        }),
      "problems": JSONText.array(problems(statistics).map(JSONText.string)),
      "fleet": statistics.fleet.map { fleet in
        JSONText.object(["store": JSONText.string(fleet.place), "state": JSONText.string(fleet.state)])
      } ?? FigureText.null,
    ])
  }

  private func object(_ report: ProviderReport) -> String {
    JSONText.object([
      "name": JSONText.string(report.name), "server": report.server.map(JSONText.string) ?? FigureText.null,
      "explanation": report.explanation(now: now).map(JSONText.string) ?? FigureText.null,
    ])
  }

  private func object(_ report: NameReport, _ entry: EntryReport?) -> String {
    let counts = report.counts
    let failed = counts.requestPDnsNum - min(counts.requestPDnsNum, counts.successNum)
    return JSONText.object([
      "name": JSONText.string(report.name.text), "type": JSONText.string(report.type.counted),
      "queries": "\(counts.activity)", "hits": "\(counts.cacheDnsNum)",
      "asked": "\(counts.requestPDnsNum + counts.gobackLocaldnsNum)", "failed": "\(failed)",
      "entry": entry.map(object) ?? FigureText.null,
    ])
  }

  private func object(_ entry: EntryReport) -> String {
    let figures = entry.addresses.map { ("\($0.address)", AddressText.line($0)) }
    let lines = Dictionary(figures, uniquingKeysWith: { first, _ in first })
    let addresses = entry.answers.filter { $0.type == .a || $0.type == .aaaa }.map { record in
      let address = RDATA.text(record.rdata, type: record.type)
      return JSONText.object([
        "address": JSONText.string(address), "text": lines[address].map(JSONText.string) ?? FigureText.null,
      ])
    }
    return JSONText.object([
      "rcode": JSONText.string("\(entry.responseCode)"), "source": JSONText.string(entry.source),
      "ttl_seconds": JSONText.seconds(entry.freshFor), "refresh": entry.refresh.json ?? FigureText.null,
      "addresses": JSONText.array(addresses),
    ])
  }

  /// What hinders the daemon, in sentences.
  private func problems(_ statistics: ForwarderStatistics) -> [String] {
    var problems: [String] = []
    if let fleet = statistics.fleet, !fleet.isUsed || fleet.store.complaint != nil {
      problems.append("The store \(fleet.place): \(fleet.state)")
    }
    return problems + (statistics.ranking?.problems ?? [])
  }
}
