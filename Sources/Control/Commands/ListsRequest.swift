// ListsRequest.swift -- `POST /lists[?update[=LIST]|?find=NAME]`: the lists of rules; fetches them; finds a name in them.

import DNSWire
import Forwarder
import HTTPMessage
import HTTPServer
import JSON
import ListStore
import Lists
import Telemetry

/// A request about the lists of rules.
public struct ListsRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/lists"

  private enum Work {
    case show
    case update(String?)
    case find(DomainName)
  }

  private let work: Work

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    let query = request.query ?? ""
    let value = String(decoding: request.body.prefix { $0 != 0x0A }, as: UTF8.self)
    switch query {
    case "": work = .show
    case "update": work = .update(value.isEmpty ? nil : value)
    case "find":
      guard let name = DomainName(text: value) else {
        throw ControlRefusal(status: 400, reason: "`find` needs a domain name")
      }
      work = .find(name)
    default: throw ControlRefusal(status: 400, reason: "unknown parameter; expected update or find")
    }
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    switch work {
    case .show: ListsText(reports: await actions.lists())
    case .update(let name): ListUpdatesText(updates: await actions.updateLists(name), name: name)
    case .find(let name): ListHitsText(name: name, hits: await actions.findInLists(name))
    }
  }
}

/// The lists in the order of the configuration.
struct ListsText: ControlText {
  let reports: [ListReport]

  var text: String {
    guard !reports.isEmpty else { return "no rule uses a list\n" }
    let rows = reports.map { report in
      [
        report.name, "\(report.names)", "\(report.leftOut.total)", report.age.map(TimeText.rough) ?? "-",
        report.nextFetch.map(TimeText.rough) ?? "-", report.state.word + (report.isInMemory ? ", in memory" : ""),
      ]
    }
    let faults = reports.compactMap { report in report.state.reason.map { "\(report.name): \($0)" } }
    let lines = TextTable.lines([["list", "names", "left out", "age", "next fetch", "state"]] + rows)
    return (lines + (faults.isEmpty ? [] : [""] + faults)).map { "\($0)\n" }.joined()
  }

  var json: String {
    let objects = reports.map { report in
      JSONText.object([
        "name": JSONText.string(report.name), "names": "\(report.names)",
        "left_out": JSONText.object(report.leftOut.reasons.map { ($0.text, "\(report.leftOut[$0])") }),
        "age_seconds": report.age.map(JSONText.seconds), "next_fetch_seconds": report.nextFetch.map(JSONText.seconds),
        "state": JSONText.string(report.state.word), "reason": report.state.reason.map(JSONText.string),
        "in_memory": "\(report.isInMemory)",
      ])
    }
    return JSONText.object(["lists": JSONText.array(objects)])
  }
}

/// What an update has brought.
struct ListUpdatesText: ControlText {
  let updates: [ListUpdate]
  /// Nil for all lists.
  let name: String?

  var status: Int { updates.isEmpty ? 404 : faults.isEmpty ? 200 : 502 }

  private var faults: [String] {
    updates.compactMap { update in
      if case .fault(let fault) = update.result { "list \(update.name): \(fault)" } else { nil }
    }
  }

  var text: String {
    if updates.isEmpty { return name.map { "no list is called \($0)\n" } ?? "no rule uses a list\n" }
    if !faults.isEmpty { return refusal }
    return updates.map { update in
      switch update.result {
      case .changed(let names): "list \(update.name): \(counted(names, "name")) in use\n"
      case .unchanged: "list \(update.name): unchanged\n"
      case .fault: ""
      }
    }.joined()
  }

  /// As many reasons as fit into the one line of printable ASCII that a client shows of a refusal.
  private var refusal: String {
    let faults = faults.map {
      String($0.unicodeScalars.prefix(200).map { 0x20...0x7E ~= $0.value ? Character($0) : "?" })
    }
    var line = faults[0]
    for (index, fault) in faults.enumerated().dropFirst() {
      guard line.utf8.count + fault.utf8.count < 220 else {
        line += "; \(counted(faults.count - index, "more list")) failed"
        break
      }
      line += "; \(fault)"
    }
    return "\(line)\n"
  }

  var json: String {
    JSONText.object([
      "lists": JSONText.array(
        updates.map { update in
          let names: Int? = if case .changed(let names) = update.result { names } else { nil }
          return JSONText.object([
            "name": JSONText.string(update.name), "changed": "\(names != nil)", "names": names.map { "\($0)" },
          ])
        })
    ])
  }
}

/// The lists that have a name.
struct ListHitsText: ControlText {
  let name: DomainName
  let hits: [ListHit]

  var isIncomplete: Bool { hits.isEmpty }

  var text: String {
    guard !hits.isEmpty else { return "no list has \(name)\n" }
    return hits.map { hit in
      let effect = hit.finding.isException ? ", which takes it out" : ""
      return
        "\(hit.list): line \(hit.finding.line)\(effect): \(hit.finding.text); \(hit.rules.joined(separator: ", "))\n"
    }.joined()
  }

  var json: String {
    JSONText.object([
      "lists": JSONText.array(
        hits.map { hit in
          JSONText.object([
            "name": JSONText.string(hit.list), "line": "\(hit.finding.line)",
            "text": JSONText.string(hit.finding.text), "exception": "\(hit.finding.isException)",
            "rules": JSONText.array(hit.rules.map(JSONText.string)),
          ])
        })
    ])
  }
}

extension ListReport.State {
  fileprivate var word: String {
    switch self {
    case .loaded: "loaded"
    case .waiting: "waiting"
    case .failing: "failing"
    }
  }

  fileprivate var reason: String? { if case .failing(let reason) = self { reason } else { nil } }
}

extension ControlClient {
  /// The lists of rules.
  public func lists(_ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(ListsRequest.self, form)
  }

  /// Fetches a list, or all, and waits until they are in use.
  public func updateLists(_ name: String?, _ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(ListsRequest.self, query: "?update", form, lines: name.map { [$0] } ?? [])
  }

  /// Says which lists have a name, and by which line.
  public func findInLists(_ name: String, _ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(ListsRequest.self, query: "?find", form, lines: [name])
  }
}
