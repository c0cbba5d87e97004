// RefreshRequest.swift -- `POST /refresh`: fetches a name again; the body has lines for the name and its types.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON
import Resolver
import Telemetry
import Upstreams

/// A request to fetch a name again.
public struct RefreshRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/refresh"

  /// The most types in one request.
  public static let mostTypes = 16

  let name: DomainName
  /// The types to fetch; empty for those in the cache.
  let types: [RecordType]

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    let (name, lines) = try request.nameAndLines(most: RefreshRequest.mostTypes)
    self.name = name
    var types: [RecordType] = []
    for line in lines {
      guard let type = RecordType(text: String(line)), type.isDataType else {
        throw ControlRefusal(status: 400, reason: "not a type that can be asked for")
      }
      types.append(type)
    }
    self.types = types
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    RefreshText(name: name, summary: await actions.refresh(name, types))
  }
}

struct RefreshText: ControlText {
  let name: DomainName
  let summary: RefreshSummary

  /// Whether a question got no answer, or no question was asked.
  var isIncomplete: Bool { summary.reports.isEmpty || summary.reports.contains { $0.answer.failure != nil } }

  var text: String {
    var lines: [String] = []
    if !summary.hasCachedAnswer, !summary.reports.isEmpty {
      lines.append("the cache had nothing for \(name.text); fetched now:")
    }
    lines += summary.reports.map(line)
    if summary.reports.isEmpty {
      lines.append("no upstream is asked for \(name.text): rules or special names answer it")
    }
    if summary.more > 0 { lines.append("\(counted(summary.more, "more entry", "more entries")) not fetched") }
    if summary.elsewhere > 0 {
      lines.append("\(counted(summary.elsewhere, "entry", "entries")) of another network not fetched")
    }
    return lines.map { "\($0)\n" }.joined()
  }

  private func line(_ report: RefreshReport) -> String {
    var title = "\(report.name.text) \(report.type)"
    if report.dnssecOK { title += " with DO" }
    if report.checkingDisabled { title += " with CD" }
    if let subnet = report.subnet { title += " for \(subnet)" }
    let time = TimeText.milliseconds(report.time)
    if let failure = report.answer.failure {
      return "\(title): no answer in \(time): \(failure)\(summary.hasCachedAnswer ? "; the cached answer stays" : "")"
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
      "questions": JSONText.array(reports), "kept": "\(summary.hasCachedAnswer)", "more": "\(summary.more)",
      "elsewhere": "\(summary.elsewhere)",
    ])
  }
}

extension AnswerSource {
  fileprivate var text: String {
    switch self {
    case .provider(let name, let server): server.isEmpty ? name : "\(name) \(server)"
    case .fleet(let name): "fleet:\(name)"
    case .localDNS: "localdns"
    case .cache: "cache"
    case .ourselves: "httpdnsd"
    }
  }
}

extension ControlClient {
  /// Fetches a name again with the given types; if `types` is empty, with those in the cache.
  public func refresh(
    _ name: String, types: [String], _ form: ControlForm
  ) throws(ControlClientError) -> ControlAnswer {
    try ask(RefreshRequest.self, form, lines: [name] + types)
  }
}
