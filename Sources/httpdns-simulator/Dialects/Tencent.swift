// Tencent.swift -- Tencent Cloud's HTTPDNS: `/d` with the name encrypted with DES or AES, or in clear text with a
// token.
//
// Its documents do not define the replies to wrong credentials, an expired name and a malformed request. The simulator
// sends 401, or if configured an empty body, for the first two, and 400 for the last. If what it has decrypted is no list
// of names, it takes the key to be wrong. The price is an assumption as well: one unit per name and family in the request.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer

struct Tencent: Dialect {
  let name = "tencent"
  static let nameLimit = 8

  func claims(_ transfer: DialectRequest) -> Bool { transfer.request.path == "/d" }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    let parameters: Parameters
    switch transfer.request.method {
    case .get: parameters = transfer.parameters
    case .post:
      let form = Parameters(query: String(decoding: transfer.request.body, as: UTF8.self))
      parameters = Parameters(pairs: transfer.parameters.pairs + form.pairs)
    case .head, .put, .delete, .other: return .refusal(501, "Not Implemented")
    }
    guard let families = Tencent.families(parameters["type"]), let sent = parameters.octets("dn"), !sent.isEmpty,
      let way = TencentWay(parameters, account: service.tencent, isFree: service.options.tencent.isFree)
    else { return .refusal(400, "Bad Request") }
    var reply = DialectReply(contentType: "text/plain", body: [])
    reply.cipher = way.cipher?.mode
    guard way.isAllowed, let plain = way.opened(sent) else { return refuse(reply, service) }
    let parts = plain.split(separator: UInt8(ascii: ";"), maxSplits: 1, omittingEmptySubsequences: false)
    guard let names = plainNames(parts[0]) else {
      // With a wrong key the padding is right once in 256 times.
      return way.cipher == nil ? .refusal(400, "Bad Request") : refuse(reply, service)
    }
    guard names.count <= Tencent.nameLimit else { return .refusal(400, "Bad Request") }
    reply.questions = names.flatMap { name in families.map { Question(name: name, type: $0) } }
    // Clients since 2025 append an expiry to the names, which an account may demand.
    if parts.count > 1 || service.options.tencent.requiresExpiry {
      guard parts.count > 1 else { return refuse(reply, service) }
      guard let expiry = secondsText(parts[1]), expiry >= transfer.now else { return refuse(reply, service) }
    }
    let client = parameters.octets("ip").flatMap(way.address)
    reply.subnet = client?.description
    reply.isVerified = way.isFree ? nil : true
    reply.units = way.isFree ? 0 : reply.questions.count
    var text = TencentText(service.options.tencent, parameters, isBatch: names.count > 1)
    text.client = client ?? transfer.clientAddress
    for name in names { text.add(families.map { service.addresses(of: name, $0, for: transfer) }) }
    reply.body = body(text.text, way, service)
    return reply
  }

  private static func families(_ type: String?) -> [RecordType]? {
    switch type {
    case nil, "": [.a]
    case "aaaa", "AAAA": [.aaaa]
    case "addrs", "ADDRS": [.a, .aaaa]
    default: nil
    }
  }

  private func body(_ text: String, _ way: TencentWay, _ service: Service) -> [UInt8] {
    var body = Array((service.options.tencent.isEmpty ? "" : text).utf8)
    if let cipher = way.cipher, !body.isEmpty { body = Array(Hexadecimal.encode(cipher.seal(body)).utf8) }
    if service.options.tencent.appendsNewline { body.append(UInt8(ascii: "\n")) }
    return body
  }

  private func refuse(_ reply: DialectReply, _ service: Service) -> DialectReply {
    var reply = reply
    reply.isVerified = false
    if service.options.tencent.refusal == .status {
      reply.status = 401
      reply.body = Array("Unauthorized".utf8)
    }
    return reply
  }
}

/// How a request protects its names, and whether the sender is authorized.
struct TencentWay {
  /// Nil for names in clear text.
  let cipher: BlockCipher?
  /// Whether the id or the token is that of the account. A wrong key is detected only on decryption.
  let isAllowed: Bool
  /// Whether the request needs no account.
  let isFree: Bool

  /// Nil for an unknown algorithm.
  init?(_ parameters: Parameters, account: TencentAccount, isFree: Bool) {
    self.isFree = isFree && parameters.octets("token") == nil && parameters.octets("id") == nil
    if let token = parameters["token"] {
      cipher = nil
      isAllowed = token == account.token
    } else if let identifier = parameters["id"] {
      isAllowed = identifier == account.identifier
      switch parameters["alg"] {
      case nil, "", "des": cipher = BlockCipher(.desECB, padding: Array(account.desKey.utf8))
      case "aes": cipher = BlockCipher(.aesCBC, padding: Array(account.aesKey.utf8))
      default: return nil
      }
    } else {
      cipher = nil
      isAllowed = isFree
    }
  }

  /// Decrypts a parameter; nil if the account's key does not decrypt it.
  func opened(_ sent: [UInt8]) -> [UInt8]? {
    guard let cipher else { return sent }
    return Hexadecimal.decode(sent).flatMap(cipher.open)
  }

  /// Parses the client's address, in clear text as clients send it, or encrypted as the document requires. Nil for any
  /// other text.
  func address(_ sent: [UInt8]) -> IPAddress? {
    IPAddress(text: String(decoding: sent, as: UTF8.self))
      ?? opened(sent).flatMap { IPAddress(text: String(decoding: $0, as: UTF8.self)) }
  }
}
