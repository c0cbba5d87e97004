// TencentDialect.swift -- Tencent Cloud HTTPDNS: names encrypted with AES or DES over HTTP, or a token over HTTPS.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage

/// `GET /d` (cloud.tencent.com/document/product/379/95497 for HTTP, 61200 for HTTPS), encrypted as document 3530
/// specifies and as the provider's own SDKs do it (github.com/DNSPod/httpdns-sdk-ios, httpdns-sdk-android).
///
/// Equal questions give equal requests, except for the random initialisation vector of AES.
public struct TencentDialect: BatchDialect {
  /// Maximum octets of a body. The document promises at most 8,192, which hexadecimal text doubles.
  static let bodyLimit = 65_536

  private let id: String?
  private let token: Secret?
  private let cipher: BlockCipher?
  private let path: String
  private let lifetime: Int64?
  private let random: @Sendable (Int) -> [UInt8]

  /// - Parameters:
  ///   - account: a token requires HTTPS, a key HTTP. A key is cut to the length of the cipher's. A shorter one is padded: for
  ///     AES with the character `0`, as in the provider's Android SDK, for DES with zero octets, as in its iOS SDK.
  ///   - path: begins with `/`; may end with a query of its own.
  ///   - lifetime: seconds for which a request is valid; nil leaves that out. The provider's clients of 2025 and later
  ///     can send it ("API authentication"; in their code, no document).
  ///   - random: returns that many unpredictable octets, for initialisation vectors.
  public init(
    account: Configuration.TencentAccount, path: String = "/d", lifetime: Int64? = nil,
    random: @escaping @Sendable (Int) -> [UInt8] = { RandomOctets.generate(count: $0) }
  ) {
    switch account {
    case .https(let token, let id): (self.id, self.token, cipher) = (id, token, nil)
    case .aes(let id, let key):
      (self.id, token) = (id, nil)
      cipher = BlockCipher(.aesCBC, key: TencentDialect.key(key, length: 16, filler: UInt8(ascii: "0")))
    case .des(let id, let key):
      (self.id, token) = (id, nil)
      cipher = BlockCipher(.desECB, key: TencentDialect.key(key, length: 8, filler: 0))
    }
    self.path = path
    self.lifetime = lifetime
    self.random = random
  }

  /// An estimate: one unit per transfer, regardless of its contents.
  public var billing: Billing {
    Billing(
      unitsPerTransfer: 1, isEstimate: true,
      source: "Tencent Cloud HTTPDNS bills by resolutions; how families, batches and HTTPS count is not documented")
  }

  /// Eight: the limit in the document.
  public var mostNames: Int { 8 }

  /// A GET with `dn`, `clientip`, `ttl` and `query`, and if applicable `token`, `id`, `type`, `alg` and `ip`. No
  /// parameter carries DO, CD or a subnet of length 0.
  public func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest {
    precondition(batch.names.count <= mostNames, "more names than a transfer may carry")
    var target = QueryTarget(path: path)
    let names = lifetime.map { "\(batch.plainNames);\(unixTime + $0)" } ?? batch.plainNames
    target.add("dn", plain: protected(names))
    if let token { target.add("token", encoding: String(decoding: token.reveal, as: UTF8.self)) }
    // The daemon does not use the client's address in the reply. The provider's own SDKs always request it, so this is
    // the form that the service answers every day.
    target.add("clientip", plain: "1")
    target.add("ttl", plain: "1")
    target.add("query", plain: "1")
    if let id { target.add("id", encoding: id) }
    if batch.types.count > 1 || batch.types[0] != .a {
      target.add("type", plain: batch.types.count > 1 ? "addrs" : "aaaa")
    }
    if let cipher { target.add("alg", plain: cipher.mode == .aesCBC ? "aes" : "des") }
    // Document 95497 requires the address to be encrypted like the name. Both SDKs of the provider send it in clear
    // text (MSDKDnsInfoTool.m, RequestBuilder.java), so the service is known to accept that.
    if let subnet = batch.clientSubnet, subnet.length > 0 { target.add("ip", plain: subnet.address.description) }
    return HTTPRequest(method: .get, target: target.text)
  }

  /// Reads the lines of the reply. The service cannot express "no such name": an empty answer is an uncertain NODATA
  /// (`isEmptyAmbiguous`).
  public func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    try response.requireStatus(in: 200...200)
    guard response.body.count <= TencentDialect.bodyLimit else { throw .unreadable(.tooLarge) }
    let text = trimmed(response.body[...])
    // No document specifies a Content-Type, so that text/html may be right. No reply begins like a page.
    guard text.first != UInt8(ascii: "<") else { throw .unreadable(.page) }
    return TencentReply(try plaintext(of: text), to: batch).answers
  }

  private static func key(_ secret: Secret, length: Int, filler: UInt8) -> [UInt8] {
    let octets = secret.reveal.prefix(length)
    return octets + [UInt8](repeating: filler, count: length - octets.count)
  }

  /// The text of `dn` as the request carries it: with a cipher, the hexadecimal text of vector and ciphertext.
  private func protected(_ text: String) -> String {
    guard let cipher else { return text }
    return Hexadecimal.encode(cipher.seal(Array(text.utf8), vector: random(cipher.mode.vectorLength)))
  }

  /// - Parameter text: the body without leading and trailing white space.
  private func plaintext(of text: ArraySlice<UInt8>) throws(HTTPDNSFailure) -> ArraySlice<UInt8> {
    guard let cipher, !text.isEmpty else { return text }
    // The Android SDK ignores text after the digits; the service sends none.
    guard let end = text.lastIndex(where: { Hexadecimal.value($0) != nil }),
      let plaintext = Hexadecimal.decode(text[...end]).flatMap(cipher.open)
    else { throw .unreadable(.syntax) }
    return trimmed(plaintext[...])
  }
}

extension TencentDialect: Concealed {
  /// The dialect's name, without the account and its key.
  public var description: String { "tencent" }
}
