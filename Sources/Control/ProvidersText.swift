// ProvidersText.swift -- how the providers fare, as a table and as JSON.

import Forwarder

/// The providers in the order of the configuration.
struct ProvidersText: ControlText {
  let reports: [ProviderReport]

  var text: String {
    let head = ["provider", "state", "server", "units today", "limit", "transfers", "failures"]
    let rows = reports.map { report in
      [
        report.name, report.state.text, report.server ?? "-", "\(report.unitsToday)",
        report.unitsPerDay == 0 ? "-" : "\(report.unitsPerDay)", "\(report.transfers)", "\(report.failures)",
      ]
    }
    return TextTable.lines([head] + rows).map { "\($0)\n" }.joined()
  }

  var json: String {
    let objects = reports.map { report in
      var members = [
        "\"name\":\(JSONText.string(report.name))", "\"state\":\(JSONText.string(report.state.word))",
        "\"units_today\":\(report.unitsToday)", "\"units_per_day\":\(report.unitsPerDay)",
        "\"transfers\":\(report.transfers)", "\"failures\":\(report.failures)",
      ]
      if let server = report.server { members.append("\"server\":\(JSONText.string(server))") }
      if let reason = report.state.reason { members.append("\"reason\":\(JSONText.string(reason))") }
      if let until = report.state.until { members.append("\"until\":\(JSONText.string(timeText(until)))") }
      return "{\(members.joined(separator: ","))}"
    }
    return "{\"providers\":[\(objects.joined(separator: ","))]}"
  }
}

extension ProviderReport.State {
  /// One word for programs.
  fileprivate var word: String {
    switch self {
    case .up: "up"
    case .down: "down"
    case .aside: "aside"
    case .spent: "spent"
    }
  }

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
      case .aside, .spent: "left alone until \(timeText(until ?? 0))"
      }
    return reason.map { "\(verb): \($0)" } ?? verb
  }
}
