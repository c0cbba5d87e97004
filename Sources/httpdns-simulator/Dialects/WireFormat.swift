// WireFormat.swift -- RFC 8484 at `/dns-query`: GET with `dns=`, POST with the message as the body.

import DNSWire
import HTTPMessage
import HTTPServer

struct WireFormat: Dialect {
  let name = "rfc8484"
  private static let mediaType = "application/dns-message"

  func claims(_ transfer: DialectRequest) -> Bool { transfer.request.path == "/dns-query" }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    let octets: [UInt8]
    switch transfer.request.method {
    case .get, .head:
      guard let sent = transfer.parameters["dns"], let decoded = Base64URL.decode(sent) else {
        return .refusal(400, "the parameter dns is missing, or not base64url without padding")
      }
      octets = decoded
    case .post:
      guard transfer.request.field("Content-Type") == WireFormat.mediaType else {
        return .refusal(415, "the body has to be \(WireFormat.mediaType)")
      }
      octets = transfer.request.body
    case .put, .delete, .other: return .refusal(501, "only GET and POST")
    }
    guard let query = try? Message.parse(octets), !query.header.qr, query.header.opcode == 0,
      query.questions.count == 1, query.questions[0].qclass == .internet
    else { return .refusal(400, "that is no DNS query of class IN") }
    let question = query.questions[0].question
    let answer = service.answer(question, for: transfer)
    var reply = WireFormat.response(
      answer, identifier: query.id, cd: query.header.cd,
      edns: query.edns.map { WireFormat.edns(echoing: $0, error: answer.extendedError) },
      age: service.options.age)
    reply.questions = [question]
    reply.subnet = query.edns?.clientSubnet?.prefix.description
    return reply
  }

  /// Composes an answer as a message, with the freshness lifetime of RFC 8484 section 5.1.
  static func response(
    _ answer: ZoneAnswer, identifier: UInt16, cd: Bool, edns: EDNS? = nil, age: UInt32? = nil
  ) -> DialectReply {
    var header = Header()
    header.qr = true
    header.rd = true
    header.ra = true
    header.cd = cd
    header.rcode = UInt8(truncatingIfNeeded: answer.code.rawValue & 15)
    let message = Message(
      id: identifier, header: header, questions: [Message.Entry(answer.question)],
      answers: answer.records.map(\.resourceRecord),
      authorities: answer.authority.map(\.resourceRecord), edns: edns)
    guard let octets = try? message.compose() else { return .refusal(500, "the response is too long for a message") }
    // A negative answer has the TTL of its SOA record, which the zone has limited to MINIMUM. Without one, it is 0.
    let lifetime = (answer.records.isEmpty ? answer.authority : answer.records).map(\.ttl).min() ?? 0
    var fields = [HTTPField("Cache-Control", "max-age=\(lifetime)")]
    if let age { fields.append(HTTPField("Age", "\(age)")) }
    return DialectReply(contentType: mediaType, fields: fields, body: octets)
  }

  /// The OPT record of a response. Its scope is the full length of the subnet (RFC 7871 section 7.2.1).
  private static func edns(echoing query: EDNS, error: UInt16?) -> EDNS {
    var edns = EDNS()
    if let error { edns.options.append(ExtendedErrorReport(code: ExtendedError(rawValue: error)).option) }
    if let subnet = query.clientSubnet {
      edns.options.append(ClientSubnet(subnet.prefix, scope: UInt8(subnet.prefix.length)).option)
    }
    return edns
  }
}

extension ZoneRecord {
  fileprivate var resourceRecord: ResourceRecord { ResourceRecord(owner: owner, type: type, ttl: ttl, rdata: rdata) }
}
