// RequestLines.swift -- reads a name from the query or the body of a request.

import DNSWire
import HTTPServer

extension DomainName {
  /// Reads the query of a request: `name=` and a percent-encoded name.
  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    let parts = request.query?.split(separator: "=", maxSplits: 1) ?? []
    guard parts.count == 2, parts[0] == "name" else {
      throw ControlRefusal(status: 400, reason: "unknown parameter; expected name= or limit=")
    }
    guard let text = PercentText.decode(parts[1]), let name = DomainName(text: text) else {
      throw ControlRefusal(status: 400, reason: "not a domain name")
    }
    self = name.lowercased
  }
}

extension HTTPServerRequest {
  /// Returns the lines of the body; the first one is a domain name.
  ///
  /// - Parameter most: the largest number of lines after the name.
  func nameAndLines(most: Int) throws(ControlRefusal) -> (name: DomainName, rest: [Substring]) {
    guard query == nil else { throw ControlRefusal(status: 400, reason: "no parameter is allowed") }
    guard let text = String(validating: body, as: UTF8.self) else {
      throw ControlRefusal(status: 400, reason: "the body is not UTF-8")
    }
    let lines = text.split(separator: "\n")
    guard let first = lines.first, let name = DomainName(text: first) else {
      throw ControlRefusal(status: 400, reason: "line 1 is not a domain name")
    }
    guard lines.count <= 1 + most else {
      throw ControlRefusal(status: 400, reason: "\(lines.count) lines; at most \(1 + most)")
    }
    return (name.lowercased, Array(lines.dropFirst()))
  }
}
