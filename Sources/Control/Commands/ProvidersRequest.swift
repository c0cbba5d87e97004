// ProvidersRequest.swift -- `GET /providers`: the state of the providers, as a table with reasons below it.

import HTTPMessage
import HTTPServer
import JSON
import Telemetry
import Upstreams

struct ProvidersRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/providers"

  init(_: HTTPServerRequest) {}

  func answer(from actions: any ControlActions) async -> any ControlText {
    ProvidersText(reports: await actions.providers())
  }
}

/// The providers in the order of the configuration.
struct ProvidersText: ControlText {
  let reports: [ProviderReport]
  /// Seconds since 1970.
  var now = LogTime.now.nanoseconds / 1_000_000_000

  var text: String {
    let head = [
      "provider", "state", "server", "round trip", "units today", "limit", "transfers", "failures",
    ]
    let rows = reports.map { report in
      [
        report.name, report.state.label, report.server ?? "-",
        report.counters.roundTrips.mean.map(TimeText.milliseconds) ?? "-",
        "\(report.unitsToday)" + (report.fleetUnits.map { ", fleet \($0)" } ?? ""),
        report.unitsPerDay == 0 ? "-" : "\(report.unitsPerDay)", "\(report.counters.transfers)",
        "\(report.counters.failures.total)",
      ]
    }
    let reasons = reports.compactMap { report in report.explanation(now: now).map { "\(report.name): \($0)" } }
    let lines = TextTable.lines([head] + rows) + (reasons.isEmpty ? [] : [""] + reasons)
    return lines.map { "\($0)\n" }.joined()
  }

  var json: String {
    let objects = reports.map { report in
      let reasons = TransferFailureCause.allCases.filter { report.counters.failures[$0] > 0 }
        .map { ($0.label, "\(report.counters.failures[$0])") }
      return JSONText.object([
        "name": JSONText.string(report.name), "state": JSONText.string(report.state.word),
        "units_today": "\(report.unitsToday)", "units_per_day": "\(report.unitsPerDay)",
        "units": "\(report.counters.units)",
        "fleet_units_today": report.fleetUnits.map { "\($0)" },
        "transfers": "\(report.counters.transfers)", "failures": "\(report.counters.failures.total)",
        "failures_by_reason": JSONText.object(reasons), "refusals": "\(report.counters.refusals)",
        "round_trip_ms": JSONText.latency(report.counters.roundTrips), "server": report.server.map(JSONText.string),
        "handshakes": "\(report.counters.handshakes)", "failing_questions": "\(report.failing.count)",
        "failing_reasons": JSONText.array(report.failing.reasons.map(JSONText.string)),
        "reason": report.state.reason.map(JSONText.string),
        "since": report.state.since.map { JSONText.string(LogTime.text(unixTime: $0)) },
        "remark": report.remark.map(JSONText.string),
        "until": report.state.until.map { JSONText.string(LogTime.text(unixTime: $0)) },
        "next_attempt_seconds": report.nextAttempt.map(JSONText.seconds),
        "last_failure": report.lastFailure.map(JSONText.string),
        "last_failure_seconds": report.lastFailure.map { _ in JSONText.seconds(report.lastFailureAge) },
      ])
    }
    return JSONText.object(["providers": JSONText.array(objects)])
  }
}

extension ProviderReport {
  /// How long the last failure of a provider that is up is shown.
  private static let recently = Duration.seconds(600)

  /// The reason for the state, how long it lasts, and the last failure, in one line; nil without any of them.
  ///
  /// - Parameter now: seconds since 1970.
  package func explanation(now: Int64) -> String? {
    var parts: [String] = []
    switch state {
    case .up:
      if failing.count > 0 {
        let reasons = failing.reasons.joined(separator: ", ")
        parts.append("\(counted(failing.count, "question")) without an answer: \(reasons)")
      }
    case .noAnswers(let since):
      parts.append("no answers for \(TimeText.rough(.seconds(max(0, now - since))))")
      if !advice.isEmpty { parts.append(advice) }
    case .unreachable(let since, let reason):
      let time = since.map { " for \(TimeText.rough(.seconds(max(0, now - $0))))" } ?? ""
      parts.append("unreachable\(time)" + (reason.map { ": \($0)" } ?? ""))
      if !advice.isEmpty { parts.append(advice) }
      if let nextAttempt { parts.append("next attempt in \(TimeText.wait(nextAttempt))") }
    case .pausing(_, let until), .noUnits(let until):
      let time = TimeText.rough(.seconds(max(0, until - now)))
      parts.append("\(state.label) for another \(time)" + (state.reason.map { ": \($0)" } ?? ""))
      if !advice.isEmpty { parts.append(advice) }
    }
    if let remark { parts.append(remark) }
    if let lastFailure, state != .up || failing.count == 0 && lastFailureAge < ProviderReport.recently,
      // The attempts that follow one that made a provider unreachable are connections, not questions.
      !parts.contains(where: { $0.contains(lastFailure) })
    {
      parts.append("last failure \(TimeText.rough(lastFailureAge)) ago: \(lastFailure)")
    }
    return parts.isEmpty ? nil : parts.joined(separator: "; ")
  }
}

extension ProviderReport.State {
  /// The state in one or two words, for tables.
  var label: String {
    switch self {
    case .up: "up"
    case .noAnswers: "no answers"
    case .unreachable: "unreachable"
    case .pausing: "pausing"
    case .noUnits: "no units"
    }
  }

  fileprivate var reason: String? {
    switch self {
    case .up: nil
    case .noAnswers: "it gives no answers"
    case .unreachable(_, let reason): reason
    case .pausing(let reason, _): reason
    case .noUnits: "units_per_day is used up"
    }
  }

  fileprivate var since: Int64? {
    switch self {
    case .noAnswers(let since): since
    case .unreachable(let since, _): since
    case .up, .pausing, .noUnits: nil
    }
  }

  fileprivate var until: Int64? {
    switch self {
    case .up, .noAnswers, .unreachable: nil
    case .pausing(_, let until), .noUnits(let until): until
    }
  }
}

extension ControlClient {
  /// Returns the state of each provider.
  public func providers(_ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(ProvidersRequest.self, form)
  }
}
