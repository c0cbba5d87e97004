// Google.swift -- Google Public DNS's JSON at `/resolve`.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct Google: Dialect {
  let name = "google"
  private static let style = JSONStyle(text: .concatenated)

  func claims(_ transfer: DialectRequest) -> Bool { transfer.request.path == "/resolve" }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    switch transfer.request.method {
    case .get: break
    case .head: return badRequest
    default: return .refusal(501, "Not Implemented")
    }
    let parameters = transfer.parameters
    guard let (question, cd) = transfer.googleQuestion, flag(parameters["do"]) != nil else { return badRequest }
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
      // A prefix of length 0 asks not to forward a subnet, so none was used.
      let used = subnet.flatMap { $0.length > 0 ? JSONText.string($0.description) : nil }
      let comment = JSONText.string("Response from 198.51.100.53.")
      let json = Google.style.text(of: answer, cd: cd, ["edns_client_subnet": used, "Comment": comment])
      reply = DialectReply(contentType: "application/json; charset=UTF-8", body: Array(json.utf8))
    default: return badRequest
    }
    reply.questions = [question]
    reply.subnet = parameters["edns_client_subnet"]
    return reply
  }

  private var badRequest: DialectReply {
    .refusal(
      400, "<!DOCTYPE html><html lang=en><title>Error 400 (Bad Request)!!1</title><p><b>400.</b>",
      contentType: "text/html; charset=UTF-8")
  }
}
