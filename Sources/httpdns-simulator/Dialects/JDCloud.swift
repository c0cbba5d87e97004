// JDCloud.swift -- JD Cloud's HTTPDNS at `/v1/ACCOUNT/d`, by its document "Getting Started".
//
// The document has one error, that of a name outside the account's list. The codes of the others here are invented.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import JSON

/// Options of JD Cloud's service.
struct JDCloudSwitches: Sendable {
  /// The status of a refusal for a wrong signature.
  var refusalStatus = 401
  /// Whether addresses have blanks around them, as in the document's sample.
  var hasBlanks = true
}

struct JDCloud: Dialect {
  let name = "jdcloud"
  let account: SecretAccount? = SecretAccount(identifier: "123456", secret: "JdKey01")
  private static let nameLimit = 10
  private static let emptyTTL: UInt32 = 60
  /// How far ahead the expiry of a signature may be, in seconds.
  private static let longestDuration: Int64 = 86_400

  func claims(_ transfer: DialectRequest) -> Bool { JDCloud.account(in: transfer.request.path) != nil }

  private static func account(in path: String) -> String? {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 4, parts[0].isEmpty, parts[1] == "v1", !parts[2].isEmpty, parts[3] == "d" else { return nil }
    return parts[2]
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    let parameters = transfer.parameters
    guard let sent = parameters.octets("dn"), let names = plainNames(sent), names.count <= JDCloud.nameLimit,
      let type = JDCloud.type(parameters["qt"])
    else { return refusal(400, 10_001, "Invalid parameter", "") }
    var reply = DialectReply(contentType: "application/json", body: [])
    reply.questions = names.map { Question(name: $0, type: type) }
    reply.subnet = parameters["ip"]
    reply.units = names.count
    guard let account = service.secretAccounts[name], JDCloud.account(in: transfer.request.path) == account.identifier,
      let time = parameters.octets("t"), let expiry = secondsText(time),
      parameters["s"] == JDCloud.signature(sent, account.secret, time)
    else {
      reply.isVerified = false
      return reply.refused(by: refusal(service.options.jdcloud.refusalStatus, 10_003, "Wrong signature", ""))
    }
    guard expiry >= transfer.now, expiry - transfer.now <= JDCloud.longestDuration else {
      reply.isVerified = false
      return reply.refused(by: refusal(403, 10_004, "Signature is out of time", ""))
    }
    reply.isVerified = true
    if let stranger = names.first(where: { !service.isListed($0) }) {
      let message = "Query domain is not in access domain list"
      return reply.refused(by: refusal(403, 10_015, message, stranger.textWithoutDot))
    }
    reply.body = body(names, type, transfer, service)
    return reply
  }

  /// The lower-case hexadecimal MD5 of `DN-KEY-T`.
  static func signature(_ names: [UInt8], _ key: String, _ time: [UInt8]) -> String {
    Hexadecimal.encode(Digest.md5(names + Array("-\(key)-".utf8) + time))
  }

  private static func type(_ text: String?) -> RecordType? {
    switch text {
    case "A": .a
    case "AAAA": .aaaa
    default: nil
    }
  }

  private func refusal(_ status: Int, _ code: Int, _ message: String, _ data: String) -> DialectReply {
    let json = JSONText.object([
      "ret_code": "\(code)", "msg": JSONText.string(message), "data": JSONText.string(data),
    ])
    return .refusal(status, json, contentType: "application/json")
  }

  private func body(
    _ names: [DomainName], _ type: RecordType, _ transfer: DialectRequest, _ service: Service
  ) -> [UInt8] {
    let blank = service.options.jdcloud.hasBlanks ? " " : ""
    let elements = names.map { name in
      let answer = service.addresses(of: name, type, for: transfer)
      return JSONText.object([
        "domain": JSONText.string(answer.name.textWithoutDot),
        "ips": JSONText.array(answer.addresses.map { JSONText.string(blank + $0 + blank) }),
        "ttl": "\(answer.ttl ?? JDCloud.emptyTTL)",
      ])
    }
    let json = JSONText.object([
      "ret_code": "0", "msg": JSONText.string("Success"), "data": JSONText.array(elements),
    ])
    return Array(json.utf8)
  }
}
