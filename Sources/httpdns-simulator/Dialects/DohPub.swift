// DohPub.swift -- doh.pub: Google's form on either path, selected by its host.
//
// The vendor's documents say no more; the rest follows Google.

import DNSWire
import HTTPMessage
import HTTPServer

struct DohPub: Dialect {
  let name = "doh.pub"

  func claims(_ transfer: DialectRequest) -> Bool {
    guard transfer.isFor("doh.pub", "1.12.12.12", "120.53.53.53") else { return false }
    return transfer.request.path == "/resolve"
      || transfer.request.path == "/dns-query" && transfer.parameters.octets("name") != nil
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    guard let (question, cd) = transfer.googleQuestion else { return .refusal(400, "Bad Request") }
    let json = JSONStyle(text: .quoted).text(of: service.answer(question, for: transfer), cd: cd)
    return DialectReply(
      contentType: "application/dns-json", body: Array(json.utf8), questions: [question],
      subnet: transfer.parameters["edns_client_subnet"])
  }
}
