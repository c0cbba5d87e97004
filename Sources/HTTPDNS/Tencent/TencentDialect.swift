// TencentDialect.swift -- Tencent Cloud HTTPDNS: names encrypted with AES or DES over HTTP, or a token over HTTPS.

import Ciphers
import DNSWire

/// `GET /d` (cloud.tencent.com/document/product/379/95497 for HTTP, 61200 for HTTPS), encrypted as document 3530 says
/// and as the provider's own programs do it (github.com/DNSPod/httpdns-sdk-ios, httpdns-sdk-android).
///
/// The same question gives the same request but for the initialisation vector of AES, which is random.
public struct TencentDialect: BatchDialect {
  /// How an account shows who it is, and with it how names and replies are protected.
  public enum Credential: Sendable {
    /// Names as they are, inside TLS. The document asks for the token only; the provider's own programs send the
    /// account's number as well.
    case https(token: Secret, id: String?)
    /// AES-128-CBC. The key counts up to its sixteenth octet; a shorter one is filled with the character `0`, as the
    /// provider's Android program does it. Nothing tells a reply that was altered on the way from a true one.
    case aes(id: String, key: Secret)
    /// DES-ECB, which no longer protects anything: for services that offer nothing else. The key counts up to its
    /// eighth octet; a shorter one is filled with zero octets, as the provider's iOS program does it.
    case des(id: String, key: Secret)
  }

  /// Octets of a body. The document promises no more than 8,192 of them, which hexadecimal text doubles.
  static let bodyLimit = 65_536

  private let id: String?
  private let token: Secret?
  private let cipher: BlockCipher?
  private let path: String
  private let random: @Sendable (Int) -> [UInt8]

  /// A dialect for an account.
  ///
  /// - Parameters:
  ///   - credential: decides on the scheme too: HTTPS for a token, HTTP for a key.
  ///   - path: begins with `/`; may end with a query of its own.
  ///   - random: so many octets that nobody can foresee, for initialisation vectors.
  public init(
    credential: Credential, path: String = "/d",
    random: @escaping @Sendable (Int) -> [UInt8] = { RandomOctets.generate(count: $0) }
  ) {
    switch credential {
    case .https(let token, let id):
      (self.id, self.token, cipher) = (id, token, nil)
    case .aes(let id, let key):
      (self.id, token) = (id, nil)
      cipher = BlockCipher(.aesCBC, key: TencentDialect.key(key, length: 16, filler: UInt8(ascii: "0")))
    case .des(let id, let key):
      (self.id, token) = (id, nil)
      cipher = BlockCipher(.desECB, key: TencentDialect.key(key, length: 8, filler: 0))
    }
    self.path = path
    self.random = random
  }

  /// One unit for each transfer, whatever it carries: a guess.
  public var billing: Billing {
    Billing(
      unitsPerTransfer: 1, isEstimate: true,
      source: "Tencent Cloud HTTPDNS bills by resolutions; how families, batches and HTTPS count is not documented")
  }

  /// Eight: the most that the document allows.
  public var mostNames: Int { 8 }

  /// A and AAAA; names of letters, digits, hyphens and underscores, but not the root.
  public func serves(_ question: HTTPDNSQuestion) -> Bool {
    (question.type == .a || question.type == .aaaa) && question.name.isPlain && !question.name.isRoot
  }

  /// A GET with `dn`, `clientip`, `ttl` and `query`, and where they apply `token`, `id`, `type`, `alg` and `ip`.
  /// There is nothing to say DO, CD, or a subnet of length 0 with.
  public func request(for batch: QuestionBatch, unixTime: Int64) -> TransferRequest {
    precondition(batch.names.count <= mostNames, "more names than a transfer may carry")
    var target = QueryTarget(path: path)
    target.add("dn", plain: protected(batch.plainNames))
    if let token { target.add("token", encoding: String(decoding: token.reveal, as: UTF8.self)) }
    // The client's address is of no use here, but the provider's own programs read no reply without it: with it, the
    // service is asked what it is asked all day.
    target.add("clientip", plain: "1")
    target.add("ttl", plain: "1")
    target.add("query", plain: "1")
    if let id { target.add("id", encoding: id) }
    if batch.types.count > 1 || batch.types[0] != .a {
      target.add("type", plain: batch.types.count > 1 ? "addrs" : "aaaa")
    }
    if let cipher { target.add("alg", plain: cipher.mode == .aesCBC ? "aes" : "des") }
    // Document 95497 wants it encrypted as the name is. Both programs of the provider send it in clear text
    // (MSDKDnsInfoTool.m, RequestBuilder.java), so that is what the service is known to take.
    if let subnet = batch.clientSubnet, subnet.length > 0 {
      target.add("ip", plain: subnet.address.description)
    }
    return TransferRequest(method: .get, target: target.text)
  }

  /// What the lines of the reply say. The service has no word for "no such name": whatever is empty is NODATA at most
  /// (`isEmptyAmbiguous`).
  public func answers(
    to batch: QuestionBatch, from response: TransferResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    try response.requireStatus(in: 200...200)
    // No document gives a Content-Type. A page for people fails by its text.
    guard response.body.count <= TencentDialect.bodyLimit else { throw .unreadable(.tooLarge) }
    return TencentReply(try plaintext(of: response.body), to: batch).answers
  }

  private static func key(_ secret: Secret, length: Int, filler: UInt8) -> [UInt8] {
    let octets = secret.reveal.prefix(length)
    return octets + [UInt8](repeating: filler, count: length - octets.count)
  }

  /// The names as they stand in the request: with a cipher the hexadecimal text of vector and ciphertext.
  private func protected(_ names: String) -> String {
    guard let cipher else { return names }
    let vector = random(cipher.mode.vectorLength)
    return Hexadecimal.encode(vector + cipher.encrypt(Array(names.utf8), vector: vector))
  }

  private func plaintext(of body: [UInt8]) throws(HTTPDNSFailure) -> ArraySlice<UInt8> {
    let text = TencentReply.trimmed(body[...])
    guard let cipher, !text.isEmpty else { return text }
    // The Android program drops what stands behind the digits, so something may stand there.
    guard let end = text.lastIndex(where: isHexadecimalDigit), let octets = Hexadecimal.decode(text[...end]) else {
      throw .unreadable(.syntax)
    }
    let length = cipher.mode.vectorLength
    guard octets.count > length,
      let plaintext = cipher.decrypt(octets[length...], vector: Array(octets[..<length]))
    else { throw .unreadable(.syntax) }
    return TencentReply.trimmed(plaintext[...])
  }
}

extension TencentDialect: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The dialect's name: the account and its key stay inside.
  public var description: String { "tencent" }
  /// The same as `description`.
  public var debugDescription: String { description }
  /// Nothing to look into.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension TencentDialect.Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always `••••`.
  public var description: String { "••••" }
  /// Always `••••`.
  public var debugDescription: String { description }
  /// Nothing to look into.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

private func isHexadecimalDigit(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
    UInt8(ascii: "A")...UInt8(ascii: "F"):
    true
  default: false
  }
}
