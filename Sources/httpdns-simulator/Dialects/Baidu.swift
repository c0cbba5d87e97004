// Baidu.swift -- Baidu Cloud HTTPDNS at `/v4/resolve`, by its document "HTTPDNS API v4".
//
// The document has one text of `msg` besides `ok`, and neither statuses nor what becomes of a name outside the account's list.
// Both are settings; the other texts here are invented.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import JSON

/// Options of Baidu's service.
struct BaiduSwitches: Sendable {
  /// What the service says to a name that the account does not list.
  enum Unlisted: String, CaseIterable, Sendable { case empty, omitted, refused }

  /// The status of a refusal for an old signature, and of any other.
  var (expiredStatus, refusalStatus) = (403, 401)
  var unlisted = Unlisted.empty
}

struct Baidu: Dialect {
  let name = "baidu"
  let account: SecretAccount? = SecretAccount(identifier: "100001", secret: "BaiduSecret01")
  private static let nameLimit = 10
  private static let emptyTTL = 60

  func claims(_ transfer: DialectRequest) -> Bool { transfer.request.path == "/v4/resolve" }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    let (parameters, switches) = (transfer.parameters, service.options.baidu)
    guard let sent = parameters.octets("dn"), let names = plainNames(sent), names.count <= Baidu.nameLimit,
      let families = Baidu.families(parameters["type"])
    else { return refusal("InvalidParameter", 400, transfer) }
    var reply = answer(names, families, transfer, service)
    guard let account = service.secretAccounts[name], parameters["account_id"] == account.identifier,
      let time = parameters.octets("t"), let expiry = secondsText(time),
      parameters["sign"] == Baidu.signature(sent, account.secret, time)
    else { return refused(&reply, refusal("SignatureError", switches.refusalStatus, transfer)) }
    guard expiry >= transfer.now else {
      return refused(&reply, refusal("SignatureExpired", switches.expiredStatus, transfer))
    }
    reply.isVerified = true
    if switches.unlisted == .refused, names.contains(where: { !service.isListed($0) }) {
      reply = refused(&reply, refusal("DomainForbidden", 403, transfer))
      reply.isVerified = true
    }
    return reply
  }

  /// The lower-case hexadecimal MD5 of `DN-SECRET-T`.
  static func signature(_ names: [UInt8], _ secret: String, _ time: [UInt8]) -> String {
    Hexadecimal.encode(Digest.md5(names + Array("-\(secret)-".utf8) + time))
  }

  /// A refusal that keeps what was parsed from the request. The service bills it like an answer.
  private func refused(_ reply: inout DialectReply, _ refusal: DialectReply) -> DialectReply {
    (reply.status, reply.body, reply.isVerified) = (refusal.status, refusal.body, false)
    return reply
  }

  private func refusal(_ message: String, _ status: Int, _ transfer: DialectRequest) -> DialectReply {
    .refusal(
      status, JSONText.object(["msg": JSONText.string(message), "timestamp": "\(transfer.now)"]),
      contentType: "application/json")
  }

  private static func families(_ type: String?) -> [RecordType]? {
    switch type {
    case nil, "ipv4": [.a]
    case "ipv6": [.aaaa]
    case "dual_stack": [.a, .aaaa]
    default: nil
    }
  }

  private func answer(
    _ names: [DomainName], _ families: [RecordType], _ transfer: DialectRequest, _ service: Service
  ) -> DialectReply {
    let isOmitted = service.options.baidu.unlisted == .omitted
    let members = names.filter { !isOmitted || service.isListed($0) }.map { name in
      let lists = families.map { family in
        let answer = service.addresses(of: name, family, for: transfer)
        let list = JSONText.object([
          "ip": JSONText.array(answer.addresses.map(JSONText.string)),
          "ttl": "\(answer.ttl.map(Int.init) ?? Baidu.emptyTTL)", "msg": JSONText.string("ok"),
        ])
        return (family == .a ? "ipv4" : "ipv6", list)
      }
      return (service.answer(Question(name: name, type: .a), for: transfer).question.name.textWithoutDot, lists)
    }
    let json = JSONText.object([
      "clientip": JSONText.string(transfer.clientAddress.description),
      "data": JSONText.object(members.map { ($0, JSONText.object($1)) }), "msg": JSONText.string("ok"),
      "timestamp": "\(transfer.now)",
    ])
    return DialectReply(
      contentType: "application/json", body: Array(json.utf8),
      questions: names.flatMap { name in families.map { Question(name: name, type: $0) } },
      subnet: transfer.parameters["ip"], units: names.count * (transfer.isSecure ? 5 : 1))
  }
}
