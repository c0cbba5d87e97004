// FlushRequest.swift -- `POST /flush[?below][&local]`: removes the names in the body, one per line, or everything.

import DNSWire
import Fleet
import HTTPMessage
import HTTPServer
import JSON
import Resolver

/// A request to remove names from the cache.
public struct FlushRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/flush"

  /// The most names in one request. Each entry of the cache is compared with all of them.
  public static let mostNames = 256
  /// The longest line with a name, in octets: 255, each of which may be escaped.
  static let longestName = 1024

  let names: FlushedNames
  /// Whether other daemons of a fleet keep their answers.
  let isLocal: Bool

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    let parameters = request.query.map { $0.split(separator: "&", omittingEmptySubsequences: false) } ?? []
    guard parameters.allSatisfy({ $0 == "below" || $0 == "local" }), Set(parameters).count == parameters.count else {
      throw ControlRefusal(status: 400, reason: "unknown parameter; expected below or local")
    }
    guard let body = String(validating: request.body, as: UTF8.self) else {
      throw ControlRefusal(status: 400, reason: "the names are not UTF-8")
    }
    let lines = body.split(separator: "\n")
    guard lines.count <= FlushRequest.mostNames else {
      throw ControlRefusal(status: 400, reason: "\(lines.count) names; at most \(FlushRequest.mostNames) at once")
    }
    var names: [DomainName] = []
    for (index, line) in lines.enumerated() {
      guard let name = DomainName(text: line) else {
        throw ControlRefusal(status: 400, reason: "line \(index + 1) is not a domain name")
      }
      names.append(name.lowercased)
    }
    let isBelow = parameters.contains("below")
    isLocal = parameters.contains("local")
    guard !names.isEmpty || !isBelow else {
      throw ControlRefusal(status: 400, reason: "`below` needs at least one name")
    }
    self.names = names.isEmpty ? .everything : .names(names, andBelow: isBelow)
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    let (counts, reach) = await actions.flush(names, everywhere: !isLocal)
    return FlushText(counts: counts, reach: reach)
  }
}

struct FlushText: ControlText {
  let counts: FlushCounts
  /// Whether other daemons were notified; nil if none was to be.
  var reach: FlushReach?

  var text: String {
    let parts = [
      counted(counts.entries, "cached answer"), counted(counts.failures, "remembered failure"),
      counted(counts.notListed, "\"not listed\" reply", "\"not listed\" replies"),
    ]
    let problem = counts.saveProblem.map { "cannot replace the cache file: \($0); a crash would bring them back\n" }
    return "removed: \(parts.joined(separator: ", "))\n\(reachLine)\(problem ?? "")"
  }

  private var reachLine: String {
    switch reach {
    case nil: ""
    case .notified(nil, _): "notified: the other daemons of the fleet; the store does not say how many\n"
    case .notified(let count?, let strangers):
      "notified: \(counted(count, "other daemon")) of the fleet"
        + (strangers == 0 ? "\n" : "; \(strangers) more with a different secret cannot read it\n")
    case .failed(let reason): "other daemons of the fleet were not notified: \(reason)\n"
    }
  }

  var json: String {
    JSONText.object([
      "entries": "\(counts.entries)", "failures": "\(counts.failures)", "not_listed": "\(counts.notListed)",
      "save_problem": counts.saveProblem.map(JSONText.string),
      "notified": notified.map { "\($0)" }, "cannot_read": strangers.map { "\($0)" },
      "fleet_problem": fleetProblem.map(JSONText.string),
    ])
  }

  private var strangers: Int? { if case .notified(.some, let count) = reach { count } else { nil } }
  private var notified: Int? { if case .notified(let count, _) = reach { count } else { nil } }
  private var fleetProblem: String? { if case .failed(let reason) = reach { reason } else { nil } }

  /// A flush that a crash would revert, or that other daemons know nothing of, counts as failed.
  var isIncomplete: Bool { counts.saveProblem != nil || fleetProblem != nil }
}

extension ControlClient {
  /// Removes names from the cache; if `names` is empty, everything.
  ///
  /// - Parameter isLocal: whether other daemons of a fleet keep their answers.
  public func flush(
    _ names: [String], below: Bool, isLocal: Bool = false, _ form: ControlForm
  ) throws(ControlClientError) -> ControlAnswer {
    let parameters = [below ? "below" : nil, isLocal ? "local" : nil].compactMap(\.self)
    return try ask(
      FlushRequest.self, query: parameters.isEmpty ? "" : "?\(parameters.joined(separator: "&"))", form, lines: names)
  }
}
