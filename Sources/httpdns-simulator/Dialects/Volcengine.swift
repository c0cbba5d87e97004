// Volcengine.swift -- Volcengine's HTTPDNS at `/resolve` with `domain`, by its documents 113991, 174756 and 174757.
//
// The form of several names is not documented, and is a setting. 403 is documented for a wrong signature, an old one and a name
// outside the account's list alike; its body is not.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import JSON

/// Options of Volcengine's service.
struct VolcengineSwitches: Sendable {
  /// How several names are written.
  enum List: String, CaseIterable, Sendable { case dns, array }

  var list = List.dns
  /// Whether a name that is not listed has no addresses instead of a refusal.
  var hasUnlisted = false
}

struct Volcengine: Dialect {
  let name = "volcengine"
  let account: SecretAccount? = SecretAccount(identifier: "2100000001", secret: "VolcSecret01")
  private static let nameLimit = 10
  private static let emptyTTL: UInt32 = 60

  func claims(_ transfer: DialectRequest) -> Bool {
    transfer.request.path == "/resolve" && transfer.parameters.octets("domain") != nil
      && transfer.parameters.octets("account_id") != nil
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    let parameters = transfer.parameters
    guard let sent = parameters.octets("domain"), let names = plainNames(sent), names.count <= Volcengine.nameLimit,
      let families = Volcengine.families(parameters["type"])
    else { return .refusal(400, "Bad Request") }
    var reply = answer(names, families, transfer, service)
    reply.isVerified = isSigned(parameters, service, now: transfer.now)
    let isForbidden = !service.options.volcengine.hasUnlisted && names.contains { !service.isListed($0) }
    if reply.isVerified == false || isForbidden {
      (reply.status, reply.contentType, reply.body) = (403, "text/plain", Array("Forbidden".utf8))
    }
    return reply
  }

  private func isSigned(_ parameters: Parameters, _ service: Service, now: Int64) -> Bool {
    guard let account = service.secretAccounts[name], parameters["account_id"] == account.identifier,
      let time = parameters.octets("timestamp"), let expiry = secondsText(time)
    else { return false }
    return parameters["sign"] == Volcengine.signature(parameters, account.secret) && expiry >= now * 1000
  }

  /// The lower-case hexadecimal MD5 of the secret key and five values, sorted by octets, with underscores between them.
  static func signature(_ parameters: Parameters, _ secret: String) -> String {
    let values = ["timestamp", "account_id", "domain", "ip", "type"].map { parameters.octets($0) ?? [] }
    let sorted = (values + [Array(secret.utf8)]).sorted { $0.lexicographicallyPrecedes($1) }
    return Hexadecimal.encode(Digest.md5(Array(sorted.joined(separator: [UInt8(ascii: "_")]))))
  }

  private static func families(_ type: String?) -> [RecordType]? {
    switch type {
    case nil, "", "0": [.a, .aaaa]
    case "1": [.a]
    case "2": [.aaaa]
    default: nil
    }
  }

  private func answer(
    _ names: [DomainName], _ families: [RecordType], _ transfer: DialectRequest, _ service: Service
  ) -> DialectReply {
    let client = ("cip", JSONText.string(transfer.clientAddress.description))
    let elements = names.map { name -> [(String, String)] in
      // IPv6 first, as in the document's sample.
      let answers = families.reversed().map { service.addresses(of: name, $0, for: transfer) }
      let texts = answers.flatMap(\.addresses).map(JSONText.string)
      return [
        ("host", JSONText.string(answers[0].name.textWithoutDot)), ("ips", JSONText.array(texts)),
        ("ttl", "\(answers.compactMap(\.ttl).min() ?? Volcengine.emptyTTL)"),
      ]
    }
    let list = JSONText.array(elements.map { JSONText.object($0) })
    let json =
      names.count == 1
      ? JSONText.object([client] + elements[0])
      : service.options.volcengine.list == .array ? list : JSONText.object([client, ("dns", list)])
    return DialectReply(
      contentType: "application/json", body: Array(json.utf8),
      questions: names.flatMap { name in families.map { Question(name: name, type: $0) } },
      subnet: transfer.parameters["ip"], units: names.count * (transfer.isSecure ? 5 : 1))
  }
}
