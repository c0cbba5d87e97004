// AliDNS.swift -- Alibaba Cloud's public DNS and "Mobile Resolution": `/resolve` with `uid`, signed or not.
//
// Its documents do not define the refusals. The simulator sends 401 for a wrong signature, or an object with the code of all
// of Alibaba Cloud's APIs, 400 for wrong parameters and 405 for other methods, the latter with a line of text.

import DNSWire
import HTTPMessage
import HTTPServer

struct AliDNS: Dialect {
  let name = "alidns"
  private static let style = JSONStyle(questionIsObject: true, ttlFirst: true, text: .quoted)

  func claims(_ transfer: Transfer) -> Bool {
    transfer.request.path == "/resolve"
      && (transfer.parameters.octets("uid") != nil
        || transfer.isFor("dns.alidns.com", "223.5.5.5", "223.6.6.6", "[2400:3200::1]", "[2400:3200:baba::1]"))
  }

  func reply(to transfer: Transfer, from service: Service) -> DialectReply {
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
    return DialectReply(
      contentType: "application/json", body: isShort ? shortBody(of: answer) : fullBody(of: answer),
      questions: [question], isVerified: outcome == .verified ? true : nil, subnet: subnet,
      units: parameters.octets("uid") == nil ? 0 : transfer.isSecure ? 5 : 1)
  }

  private static func refusal(_ form: ServiceOptions.AliDNSRefusal) -> DialectReply {
    guard form != .status else { return .refusal(401, "Unauthorized") }
    var json = JSONWriter()
    json.beginObject()
    json.key("code")
    json.string("InvalidAccessKeyId.NotFound")
    json.key("message")
    json.string("Specified access key is not found.")
    json.endObject()
    var reply = DialectReply(contentType: "application/json", body: json.octets)
    reply.status = form == .code ? 403 : 200
    return reply
  }

  private func fullBody(of answer: ZoneAnswer) -> [UInt8] {
    var json = DNSJSON(answer, cd: false, style: AliDNS.style)
    return json.finish()
  }

  /// The data of QTYPE without status and TTL; an empty array for every negative response.
  private func shortBody(of answer: ZoneAnswer) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginArray()
    for record in answer.records where record.type == answer.question.type {
      writer.string(dataText(of: record, style: AliDNS.style))
    }
    writer.endArray()
    return writer.octets
  }

  /// Parses a name as this service does: ASCII only, internationalized labels in their `xn--` form.
  private func asciiName(_ octets: [UInt8]) -> DomainName? {
    guard octets.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
    return DomainName(text: String(decoding: octets, as: UTF8.self))
  }
}
