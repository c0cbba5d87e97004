// TopMembers.swift -- what `GET /stats?top` adds to the statistics: providers, busiest and failing names.

import BusyNames
import DNSWire
import EventLoop
import Frontend
import JSON
import Telemetry
import Upstreams

/// The members of the statistics that `top` reads besides the totals.
struct TopMembers {
  let providers: [ProviderReport]
  /// Busiest first.
  let names: [NameReport]
  /// The most recent failure first.
  let failing: [FailingName]
  /// Seconds since 1970.
  var now = LogTime.now.nanoseconds / 1_000_000_000

  /// Arrays of objects by member name.
  var members: [(String, String)] {
    [
      ("providers", JSONText.array(providers.map(provider))), ("names", JSONText.array(nameObjects)),
      ("failing", JSONText.array(failing.map(failure))),
    ]
  }

  private func provider(_ report: ProviderReport) -> String {
    JSONText.object([
      "name": JSONText.string(report.name), "state": JSONText.string(report.state.word),
      "label": JSONText.string(report.state.label), "explanation": report.explanation(now: now).map(JSONText.string),
      "server": report.server.map(JSONText.string), "transfers": "\(report.counters.transfers)",
      "failures": "\(report.counters.failures.total)", "units_today": "\(report.unitsToday)",
      "fleet_units_today": report.fleetUnits.map { "\($0)" }, "units_per_day": "\(report.unitsPerDay)",
      "round_trip_ms": JSONText.histogram(report.counters.roundTrips),
    ])
  }

  private var nameObjects: [String] {
    let failed = Dictionary(failing.map { ("\($0.name.text) \($0.type)", $0.count) }) { first, _ in first }
    return names.map { report in
      let name = report.name.text
      return JSONText.object([
        "name": JSONText.string(name), "type": JSONText.string(report.type.counted),
        "hits": "\(report.counts.cacheDnsNum)",
        "questions": "\(report.counts.requestPDnsNum + report.counts.gobackLocaldnsNum)",
        "round_trip_ns": "\(UInt64(clamping: report.counts.avgRtt))",
        "failures": "\(failed["\(name) \(report.type)"] ?? 0)",
      ])
    }
  }

  private func failure(_ row: FailingName) -> String {
    JSONText.object([
      "name": JSONText.string(row.name.text), "type": JSONText.string("\(row.type)"), "failures": "\(row.count)",
      "reason": JSONText.string(row.reason), "age_ns": "\(UInt64(clamping: row.age.nanoseconds))",
    ])
  }
}
