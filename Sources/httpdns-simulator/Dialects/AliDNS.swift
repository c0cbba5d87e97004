// AliDNS.swift -- Alibaba Cloud's public DNS and "Mobile Resolution": `/resolve` with `uid`, signed or not.
//
// Its documents do not define the refusals. The simulator sends 401 for a wrong signature, or an object with the code of all
// of Alibaba Cloud's APIs, 400 for wrong parameters and 405 for other methods, the latter with a line of text.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct AliDNS: Dialect {
  let name = "alidns"
  private static let style = JSONStyle(questionIsObject: true, ttlFirst: true, text: .quoted)

  func claims(_ transfer: DialectRequest) -> Bool {
    transfer.request.path == "/resolve"
      && (transfer.parameters.octets("uid") != nil
        || transfer.isFor(
          "dns.alidns.com", "223.5.5.5", "223.6.6.6", "[2400:3200::1]", "[2400:3200:baba::1]"))
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    let parameters = transfer.parameters
    let subnet = parameters["edns_client_subnet"]
    guard let sent = parameters.octets("name"), let name = asciiName(sent), let type = recordType(parameters["type"]),
      subnet.map({ IPPrefix(text: $0) != nil }) ?? true
    else { return .refusal(400, "Bad Request") }
    let question = Question(name: name, type: type)
    let outcome = service.verifyAliDNS(parameters, name: sent, now: transfer.now)
    guard outcome != .refused else {
      var refusal = AliDNS.refusal(service.options.aliDNSRefusal)
      refusal.questions = [question]
      refusal.isVerified = parameters.octets("key") == nil ? nil : false
      refusal.subnet = subnet
      return refusal
    }
    let answer = service.answer(question, for: transfer)
    let isShort = parameters["short"] == "1" || parameters["short"] == "true"
    let json = isShort ? shortText(of: answer) : AliDNS.style.text(of: answer, cd: false)
    return DialectReply(
      contentType: "application/json", body: Array(json.utf8),
      questions: [question], isVerified: outcome == .verified ? true : nil, subnet: subnet,
      units: parameters.octets("uid") == nil ? 0 : transfer.isSecure ? 5 : 1)
  }

  private static func refusal(_ form: ServiceOptions.AliDNSRefusal) -> DialectReply {
    guard form != .status else { return .refusal(401, "Unauthorized") }
    let json = JSONText.object([
      "code": JSONText.string("InvalidAccessKeyId.NotFound"),
      "message": JSONText.string("Specified access key is not found."),
    ])
    var reply = DialectReply(contentType: "application/json", body: Array(json.utf8))
    reply.status = form == .code ? 403 : 200
    return reply
  }

  /// The data of QTYPE without status and TTL; an empty array for every negative response.
  private func shortText(of answer: ZoneAnswer) -> String {
    let records = answer.records.filter { $0.type == answer.question.type }
    return JSONText.array(records.map { JSONText.string(AliDNS.style.data(of: $0)) })
  }

  /// Parses a name as this service does: ASCII only, internationalized labels in their `xn--` form.
  private func asciiName(_ octets: [UInt8]) -> DomainName? {
    guard octets.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
    return DomainName(text: String(decoding: octets, as: UTF8.self))
  }
}
