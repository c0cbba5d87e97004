// RefreshText.swift -- the results of a refresh and of a report of a bad address, as text and as JSON.

import DNSWire
import EventLoop
import Forwarder
import Resolver
import Telemetry
import Upstreams

/// The result of a refresh.
struct RefreshText: ControlText {
  let name: DomainName
  let summary: RefreshSummary

  /// Whether a question has no answer, or no question was asked.
  var isNothing: Bool { summary.reports.isEmpty || summary.reports.contains { $0.answer.failure != nil } }

  var text: String {
    var lines: [String] = []
    if !summary.wasKept, !summary.reports.isEmpty {
      lines.append("the cache had nothing for \(name.text); fetched now:")
    }
    lines += summary.reports.map(line)
    if summary.reports.isEmpty {
      lines.append("no upstream is asked for \(name.text): rules or special names answer it")
    }
    if summary.more > 0 { lines.append("\(entries(summary.more, "more ")) not fetched") }
    if summary.elsewhere > 0 { lines.append("\(entries(summary.elsewhere)) of another network not fetched") }
    return lines.map { "\($0)\n" }.joined()
  }

  private func entries(_ count: Int, _ kind: String = "") -> String {
    "\(count) \(kind)\(count == 1 ? "entry" : "entries")"
  }

  private func line(_ report: RefreshReport) -> String {
    var title = "\(report.name.text) \(report.type)"
    if report.dnssecOK { title += " with DO" }
    if report.checkingDisabled { title += " with CD" }
    if let subnet = report.subnet { title += " for \(subnet)" }
    let time = TimeText.milliseconds(report.time)
    if let failure = report.answer.failure {
      return "\(title): no answer in \(time): \(failure)\(summary.wasKept ? "; the cached answer stays" : "")"
    }
    let records = self.records(report).map { RDATA.text($0.rdata, type: $0.type) }
    let content =
      records.isEmpty ? "\(report.answer.response.responseCode), no records" : records.joined(separator: ", ")
    return "\(title): \(content); TTL \(report.answer.lifetime) s, from \(report.answer.source.text), \(time)"
  }

  private func records(_ report: RefreshReport) -> [ResourceRecord] {
    report.answer.response.message(to: Question(name: report.name, type: report.type))?.answers ?? []
  }

  var json: String {
    let reports = summary.reports.map { report in
      JSONText.object([
        "name": JSONText.string(report.name.text), "type": JSONText.string("\(report.type)"),
        "dnssec_ok": "\(report.dnssecOK)", "checking_disabled": "\(report.checkingDisabled)",
        "subnet": report.subnet.map { JSONText.string("\($0)") },
        "rcode": JSONText.string("\(report.answer.response.responseCode)"),
        "answers": JSONText.array(records(report).map(JSONText.record)),
        "lifetime_seconds": "\(report.answer.lifetime)",
        "source": JSONText.string(report.answer.source.text),
        "failure": report.answer.failure.map(JSONText.string), "took_ms": JSONText.milliseconds(report.time),
      ])
    }
    return JSONText.object([
      "questions": JSONText.array(reports), "kept": "\(summary.wasKept)", "more": "\(summary.more)",
      "elsewhere": "\(summary.elsewhere)",
    ])
  }
}

extension AnswerSource {
  /// Human-readable.
  fileprivate var text: String {
    switch self {
    case .provider(let name, let server): server.isEmpty ? name : "\(name) \(server)"
    case .localDNS: "localdns"
    case .cache: "cache"
    case .ourselves: "httpdnsd"
    }
  }
}

/// The result of a report of a bad address.
struct BadAddressText: ControlText {
  let name: DomainName
  let address: IPAddress
  let outcome: BadAddressOutcome

  /// Whether no answer has the address behind another one.
  var isNothing: Bool { outcome.moved + outcome.already == 0 }

  var text: String {
    let other = outcome.alone == 1 ? "1 answer has" : "\(outcome.alone) answers have"
    guard !isNothing else {
      return outcome.alone > 0
        ? "\(address) stays: \(other) no other address\n" : "no cached answer to \(name.text) has \(address)\n"
    }
    var parts = ["\(address) is now last in \(outcome.moved) \(outcome.moved == 1 ? "answer" : "answers")"]
    if outcome.already > 0 { parts.append("it already was in \(outcome.already)") }
    if outcome.alone > 0 { parts.append("\(other) no other address") }
    return parts.joined(separator: "; ") + "\n"
  }

  var json: String {
    JSONText.object([
      "moved": "\(outcome.moved)", "already": "\(outcome.already)", "alone": "\(outcome.alone)",
    ])
  }
}
