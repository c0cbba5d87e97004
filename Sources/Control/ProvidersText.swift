// ProvidersText.swift -- how the providers fare, as a table and as JSON.

import Forwarder
import Telemetry
import Upstreams

/// The providers in the order of the configuration.
struct ProvidersText: ControlText {
  let reports: [ProviderReport]

  var text: String {
    let head = [
      "provider", "state", "server", "round trip", "units today", "limit", "transfers", "failures",
    ]
    let rows = reports.map { report in
      [
        report.name, report.stateText, report.server ?? "-",
        report.roundTrips.mean.map(TimeText.milliseconds) ?? "-", "\(report.unitsToday)",
        report.unitsPerDay == 0 ? "-" : "\(report.unitsPerDay)", "\(report.transfers)", "\(report.failures)",
      ]
    }
    return TextTable.lines([head] + rows).map { "\($0)\n" }.joined()
  }

  var json: String {
    let objects = reports.map { report in
      let reasons = TransferFailureReason.allCases.filter { report.failureCounts[$0] > 0 }
        .map { ($0.rawValue, "\(report.failureCounts[$0])") }
      return JSONText.object([
        "name": JSONText.string(report.name), "state": JSONText.string(report.state.word),
        "units_today": "\(report.unitsToday)", "units_per_day": "\(report.unitsPerDay)", "units": "\(report.units)",
        "transfers": "\(report.transfers)", "failures": "\(report.failures)",
        "failures_by_reason": JSONText.object(reasons), "refusals": "\(report.refusals)",
        "round_trip_ms": JSONText.latency(report.roundTrips), "server": report.server.map(JSONText.string),
        "reason": report.state.reason.map(JSONText.string), "remark": report.remark.map(JSONText.string),
        "until": report.state.until.map { JSONText.string(LogTime.text(unixTime: $0)) },
      ])
    }
    return JSONText.object(["providers": JSONText.array(objects)])
  }
}

extension ProviderReport {
  /// A few words for a person.
  var stateText: String { remark.map { "\(state.text) (\($0))" } ?? state.text }
}

extension ProviderReport.State {
  fileprivate var reason: String? {
    switch self {
    case .up: nil
    case .down(let reason): reason
    case .aside(let reason, _): reason
    case .spent: "units_per_day are spent"
    }
  }

  fileprivate var until: Int64? {
    switch self {
    case .up, .down: nil
    case .aside(_, let until), .spent(let until): until
    }
  }

  /// A few words for a person.
  fileprivate var text: String {
    let verb =
      switch self {
      case .up: "up"
      case .down: "down"
      case .aside, .spent: "not asked until \(LogTime.text(unixTime: until ?? 0))"
      }
    return reason.map { "\(verb): \($0)" } ?? verb
  }
}
