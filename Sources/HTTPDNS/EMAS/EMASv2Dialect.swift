// EMASv2Dialect.swift -- Alibaba Cloud EMAS HTTPDNS, version 2 of the API: HMAC-SHA256, encryption optional.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /v2/d` (alibabacloud.com/help/en/httpdns/latest/emas-resolve-api).
///
/// Over HTTP, encryption hides names and addresses; only GCM also protects them against modification.
public struct EMASv2Dialect: BatchDialect {
  private let accountID: String
  private let signingKey: HMACSHA256?
  private let cipher: EMASCipher?
  private let parameters: [EMAS.Parameter]
  /// Each name and family with addresses costs one unit over HTTP, three with AES, five over HTTPS, eight over HTTPS
  /// with AES.
  public let billing: Billing

  /// - Parameters:
  ///   - secretKey: hexadecimal digits; nil sends unsigned requests, which an account may forbid.
  ///   - aesSecretKey: 32 hexadecimal digits; nil adds no encryption within the transfer.
  ///   - parameters: parameters of the account's own; names and values must need no escape in JSON.
  ///   - isEncrypted: whether transfers use HTTPS; only the price depends on it.
  ///   - random: returns that many unpredictable octets, for initialisation vectors.
  /// - Throws: which key is malformed.
  public init(
    accountID: String, secretKey: Secret?, aesSecretKey: Secret? = nil, aesMode: Configuration.AESMode = .cbc,
    parameters: [String: String] = [:], isEncrypted: Bool,
    random: @escaping @Sendable (Int) -> [UInt8] = RandomOctets.generate(count:)
  ) throws(EMASKeyError) {
    self.accountID = accountID
    self.parameters = EMAS.sorted(parameters)
    var signingKey: HMACSHA256?
    if let secretKey {
      guard let octets = Hexadecimal.decode(secretKey.reveal), !octets.isEmpty else { throw .secretKey }
      signingKey = HMACSHA256(key: octets)
    }
    self.signingKey = signingKey
    var cipher: EMASCipher?
    if let aesSecretKey {
      cipher = try EMASCipher(aesMode == .gcm ? .aesGCM : .aesCBC, key: aesSecretKey, random: random)
    }
    self.cipher = cipher
    billing = EMAS.billing(isEncrypted: isEncrypted, hasCipher: cipher != nil)
  }

  /// Five.
  public var mostNames: Int { EMAS.mostNames }

  /// A GET with `id`, `m`, then `dn`, `cip` and `q`, or all three in `enc`, and with a secret key `exp` and `s`. The
  /// signature is valid for ten minutes.
  public func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest {
    precondition(batch.names.count <= mostNames, "more names than EMAS takes")
    var query = EMASv2Query()
    query.add("id", encoding: accountID)
    query.add("m", plain: String(cipher?.number ?? EMASCipher.none))
    if let cipher {
      query.add("enc", plain: cipher.seal(sealedText(for: batch)))
    } else {
      query.add("dn", plain: batch.plainNames)
      if let address = batch.clientAddress { query.add("cip", plain: address.description) }
      query.add("q", plain: batch.emasFamilies)
      for parameter in parameters { query.add(parameter) }
    }
    if signingKey != nil { query.add("exp", plain: String(unixTime + EMAS.signatureLifetime)) }
    query.add("v", plain: "1.0")
    return HTTPRequest(method: .get, target: query.target(signedWith: signingKey))
  }

  /// The service's own error code, if it is a documented one.
  public func errorCode(in response: HTTPResponse) -> String? { EMASErrorCode.text(in: response) }

  /// Reads a body with `data`, which must be encrypted like the request: a plain reply to an encrypted request does not
  /// come from the service.
  public func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    guard let cipher else {
      return try EMASErrorCode.withReply(response) { root throws(HTTPDNSFailure) in
        try EMASv2Dialect.read(try EMASv2Dialect.data(in: root, mode: EMASCipher.none), batch)
      }
    }
    // The outer text is closed before the inner text is opened, because a thread has one reusable parser.
    let plain = try EMASErrorCode.withReply(response) { root throws(HTTPDNSFailure) in
      try cipher.open(try EMASv2Dialect.data(in: root, mode: cipher.number))
    }
    return try withJSON(plain) { data throws(HTTPDNSFailure) in try EMASv2Dialect.read(data, batch) }
  }

  /// `data` of a successful reply in that mode.
  private static func data(in root: JSONValue, mode: UInt32) throws(HTTPDNSFailure) -> JSONValue {
    guard root["code"]?.text == "success" else { throw .unreadable(.shape("code")) }
    guard let data = root["data"] else { throw .unreadable(.shape("data")) }
    guard root["mode"].map({ $0.number(upTo: 2) }) ?? EMASCipher.none == mode else { throw .unreadable(.shape("mode")) }
    return data
  }

  /// The text that `enc` encrypts. No character in it needs an escape.
  private func sealedText(for batch: QuestionBatch) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(128)
    text.append(#"{"dn":""#)
    text.append(batch.plainNames)
    text.append(#"","q":""#)
    text.append(batch.emasFamilies)
    if let address = batch.clientAddress {
      text.append(#"","cip":""#)
      text.append(address.description)
    }
    for parameter in parameters { text.append(#"","\#(parameter.name)":"\#(parameter.value)"#) }
    text.append(#""}"#)
    return text
  }

  /// Reads the answers. A family that the reply omits has no answer. An empty family is NODATA if the reason is
  /// `RRNotExist`; any other reason, such as `DomainNotExist`, leaves it uncertain (`isEmptyAmbiguous`). No document
  /// says whether `DomainNotExist` refers to the DNS or to the account's list of names, and NXDOMAIN would cover every
  /// name below.
  private static func read(
    _ data: JSONValue, _ batch: QuestionBatch
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    guard let list = data["answers"], list.isArray else { throw .unreadable(.shape("answers")) }
    var answers = EMASAnswers(batch)
    for element in list.elements {
      let name = element["dn"]?.octets
      for case (let type, let family?) in [(RecordType.a, element["v4"]), (.aaaa, element["v6"])] {
        answers.add(
          EMASAddressList(addresses: family["ips"], ttls: [family["ttl"]]), of: name, type,
          hasNoData: family["no_ip_code"]?.text == "RRNotExist")
      }
    }
    return try answers.results()
  }
}

extension EMASv2Dialect: Concealed {
  /// The dialect's name, without the account and its keys.
  public var description: String { "emas" }
}
