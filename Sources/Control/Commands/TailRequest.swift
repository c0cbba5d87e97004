// TailRequest.swift -- `GET /tail[?name=NAME][&failed]`: queries as they are answered, until the reader disconnects.

import DNSWire
import HTTPMessage
import HTTPServer

/// The queries that a reader asks for.
package struct TailRequest: ControlCommand {
  static let method = HTTPMethod.get
  static let path = "/tail"

  /// Only this name and names below it; nil for all.
  var name: DomainName?
  var onlyFailed = false

  package init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    for part in (request.query ?? "").split(separator: "&") {
      if part == "failed" {
        onlyFailed = true
        continue
      }
      guard part.hasPrefix("name="), name == nil else {
        throw ControlRefusal(status: 400, reason: "unknown parameter; expected name= or failed")
      }
      guard let text = PercentText.decode(part.dropFirst(5)), let name = DomainName(text: text) else {
        throw ControlRefusal(status: 400, reason: "not a domain name")
      }
      self.name = name
    }
  }

  func serve(_ reply: HTTPServerReply, _ form: ControlForm, by handler: ControlHandler) throws(ControlRefusal) {
    try handler.tails.begin(self, reply, form == .json ? .json : .text, for: reply.peerUser)
  }
}
