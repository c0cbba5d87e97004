// FlushRequest.swift -- `POST /flush[?below]`: removes names, one a line in the body, or everything from the cache.

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

  /// Names in one request: each entry of the cache is compared with all of them.
  public static let mostNames = 256
  /// Octets of a line with a name: 255, each of which may be escaped.
  static let longestName = 1024

  /// The names.
  let names: NameSelection

  /// Reads a request's parameters and body.
  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    guard request.query == nil || request.query == "below" else {
      throw ControlRefusal(status: 400, reason: "unknown parameter; below is known")
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

/// The counts of a flush.
struct FlushText: ControlText {
  let counts: FlushCounts

  var text: String {
    let parts = [
      FlushText.count(counts.entries, "cached answer"), FlushText.count(counts.failures, "remembered failure"),
      FlushText.count(counts.notListed, "\"not listed\" of a provider", "\"not listed\" of providers"),
    ]
    let problem = counts.saveProblem.map { "a crash would bring them back: cannot replace the cache file: \($0)\n" }
    return "removed: \(parts.joined(separator: ", "))\n\(problem ?? "")"
  }

  var json: String {
    JSONText.object([
      "entries": "\(counts.entries)", "failures": "\(counts.failures)", "not_listed": "\(counts.notListed)",
      "save_problem": counts.saveProblem.map(JSONText.string),
    ])
  }

  /// Half done is not done.
  var isNothing: Bool { counts.saveProblem != nil }

  private static func count(_ number: Int, _ one: String, _ more: String? = nil) -> String {
    "\(number) \(number == 1 ? one : more ?? one + "s")"
  }
}

extension ControlClient {
  /// Removes those names from the cache; all where there are none.
  public func flush(
    _ names: [String], below: Bool, _ form: ControlForm
  ) throws(ControlClientError) -> ControlAnswer {
    try ask(FlushRequest.self, query: below ? "?below" : "", form, lines: names)
  }
}
