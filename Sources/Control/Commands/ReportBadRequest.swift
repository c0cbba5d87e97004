// ReportBadRequest.swift -- `POST /report-bad`: puts an address last in a name's answers; body: NAME, newline, ADDRESS.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON
import Ranking
import Resolver

struct ReportBadRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/report-bad"

  let name: DomainName
  let address: IPAddress

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    let (name, lines) = try request.nameAndLines(most: 1)
    guard let line = lines.first, let address = IPAddress(text: line) else {
      throw ControlRefusal(status: 400, reason: "line 2 is not an IP address")
    }
    self.name = name
    self.address = address
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    BadAddressText(name: name, address: address, outcome: await actions.reportBad(address, of: name))
  }
}

struct BadAddressText: ControlText {
  let name: DomainName
  let address: IPAddress
  let outcome: BadAddressOutcome

  /// Whether no answer contains both the address and another one that may work.
  var isIncomplete: Bool { outcome.moved + outcome.already == 0 }

  var status: Int { outcome.isOff ? ReportOutcome.off.status : 200 }

  var text: String {
    if outcome.isOff { return "\(ReportOutcome.off.line)\n" }
    let other = (outcome.alone == 1 ? "1 answer has" : "\(outcome.alone) answers have") + " no other address that works"
    guard !isIncomplete else {
      return outcome.alone > 0
        ? "\(address) was not moved: \(other)\n"
        : "no cached answer to \(name.text) has \(address)\n"
    }
    var parts = ["\(address) is now last in \(counted(outcome.moved + outcome.already, "answer"))"]
    if outcome.already > 0 { parts.append("it already was last in \(outcome.already) of them") }
    if outcome.alone > 0 { parts.append(other) }
    return parts.joined(separator: "; ") + "\n"
  }

  var json: String {
    JSONText.object([
      "moved": "\(outcome.moved)", "already": "\(outcome.already)", "alone": "\(outcome.alone)",
    ])
  }
}

extension ControlClient {
  /// Puts an address last in the answers to a name.
  public func reportBad(
    _ name: String, _ address: String, _ form: ControlForm
  ) throws(ControlClientError) -> ControlAnswer {
    try ask(ReportBadRequest.self, form, lines: [name, address])
  }
}
