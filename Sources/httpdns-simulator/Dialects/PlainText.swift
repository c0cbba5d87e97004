// PlainText.swift -- a self-built service of plain text at `/text`, in the forms of two public services.
//
// Neither form has a document of its vendor. The requests and replies are those that clients of the services send and
// read: with `ttl=1` one TTL at the end, with `ttl=y` one for each address, and `type` for the family.

import DNSWire
import HTTPMessage
import HTTPServer

struct PlainText: Dialect {
  let name = "text"
  static let path = "/text"

  func claims(_ transfer: DialectRequest) -> Bool { transfer.request.path == PlainText.path }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    let parameters = transfer.parameters
    guard let names = parameters.octets("dn").flatMap(plainNames), names.count == 1 else {
      return .refusal(400, "Bad Request")
    }
    let type: RecordType
    switch parameters["type"]?.lowercased() {
    case nil, "a": type = .a
    case "aaaa": type = .aaaa
    default: return .refusal(400, "Bad Request")
    }
    let answer = service.addresses(of: names[0], type, for: transfer)
    var reply = DialectReply(contentType: "text/plain", body: [])
    reply.questions = [Question(name: names[0], type: type)]
    reply.subnet = parameters["ip"]
    guard let ttl = answer.ttl else { return reply }
    let text: String
    switch parameters["ttl"] {
    case "y": text = answer.addresses.map { "\($0),\(ttl)" }.joined(separator: ";")
    case "1": text = answer.addresses.joined(separator: ";") + ",\(ttl)"
    default: text = answer.addresses.joined(separator: ";")
    }
    reply.body = Array(text.utf8)
    return reply
  }
}
