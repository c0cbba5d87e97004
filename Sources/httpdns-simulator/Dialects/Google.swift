// Google.swift -- Google Public DNS's JSON at `/resolve`.

import DNSWire
import HTTPMessage
import HTTPServer

struct Google: Dialect {
  let name = "google"
  private static let style = JSONStyle(text: .concatenated)

  func claims(_ transfer: Transfer) -> Bool { transfer.request.path == "/resolve" }

  func reply(to transfer: Transfer, from service: Service) -> DialectReply {
    switch transfer.request.method {
    case .get: break
    case .head: return badRequest
    default: return .refusal(501, "Not Implemented")
    }
    let parameters = transfer.parameters
    guard let name = parameters["name"].flatMap({ DomainName(text: $0) }), let type = recordType(parameters["type"]),
      let cd = flag(parameters["cd"]), flag(parameters["do"]) != nil
    else { return badRequest }
    let question = Question(name: name, type: type)
    var subnet: IPPrefix?
    if let text = parameters["edns_client_subnet"] {
      subnet = IPPrefix(text: text)
      guard subnet != nil else { return badRequest }
    }
    let answer = service.answer(question, for: transfer)
    var reply: DialectReply
    switch parameters["ct"] {
    case "application/dns-message": reply = WireFormat.response(answer, identifier: 0, cd: cd)
    case nil, "", "application/x-javascript":
      reply = DialectReply(
        contentType: "application/json; charset=UTF-8", body: body(of: answer, cd: cd, subnet: subnet))
    default: return badRequest
    }
    reply.questions = [question]
    reply.subnet = parameters["edns_client_subnet"]
    return reply
  }

  private func body(of answer: ZoneAnswer, cd: Bool, subnet: IPPrefix?) -> [UInt8] {
    var json = DNSJSON(answer, cd: cd, style: Google.style)
    // A prefix of length 0 asks not to forward a subnet, so none was used.
    if let subnet, subnet.length > 0 { json.add("edns_client_subnet", subnet.description) }
    json.add("Comment", "Response from 198.51.100.53.")
    return json.finish()
  }

  private var badRequest: DialectReply {
    .refusal(
      400, "<!DOCTYPE html><html lang=en><title>Error 400 (Bad Request)!!1</title><p><b>400.</b>",
      contentType: "text/html; charset=UTF-8")
  }
}
