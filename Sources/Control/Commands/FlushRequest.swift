// FlushRequest.swift -- `POST /flush[?below]`: removes the names in the body, one per line, or everything.

import DNSWire
import Forwarder
import HTTPMessage
import HTTPServer
import MessageCache
import Resolver
import Telemetry

/// A request to remove names from the cache.
public struct FlushRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/flush"

  /// The most names in one request. Each entry of the cache is compared with all of them.
  public static let mostNames = 256
  /// The longest line with a name, in octets: 255, each of which may be escaped.
  static let longestName = 1024

  let names: NameSelection

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    guard request.query == nil || request.query == "below" else {
      throw ControlRefusal(status: 400, reason: "unknown parameter; expected below")
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
      names.append(name)
    }
    let isBelow = request.query != nil
    guard !names.isEmpty || !isBelow else {
      throw ControlRefusal(status: 400, reason: "`below` needs at least one name")
    }
    self.names = names.isEmpty ? .everything : NameSelection(names, andBelow: isBelow)
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    FlushText(counts: await actions.flush(names))
  }
}

struct FlushText: ControlText {
  let counts: FlushCounts

  var text: String {
    let parts = [
      FlushText.count(counts.entries, "cached answer"), FlushText.count(counts.failures, "remembered failure"),
      FlushText.count(counts.notListed, "\"not listed\" reply", "\"not listed\" replies"),
    ]
    let problem = counts.saveProblem.map { "cannot replace the cache file: \($0); a crash would bring them back\n" }
    return "removed: \(parts.joined(separator: ", "))\n\(problem ?? "")"
  }

  var json: String {
    JSONText.object([
      "entries": "\(counts.entries)", "failures": "\(counts.failures)", "not_listed": "\(counts.notListed)",
      "save_problem": counts.saveProblem.map(JSONText.string),
    ])
  }

  /// A flush that a crash would revert counts as failed.
  var isIncomplete: Bool { counts.saveProblem != nil }

  private static func count(_ number: Int, _ one: String, _ more: String? = nil) -> String {
    "\(number) \(number == 1 ? one : more ?? one + "s")"
  }
}

/// `1 transfer`, `2 transfers`.
package func counted(_ number: UInt64, _ one: String) -> String { number == 1 ? "1 \(one)" : "\(number) \(one)s" }

extension ControlClient {
  /// Removes names from the cache; if `names` is empty, everything.
  public func flush(
    _ names: [String], below: Bool, _ form: ControlForm
  ) throws(ControlClientError) -> ControlAnswer {
    try ask(FlushRequest.self, query: below ? "?below" : "", form, lines: names)
  }
}
