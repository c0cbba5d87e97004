// VolcengineDialect.swift -- Volcengine (ByteDance) HTTPDNS.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /resolve` (volcengine.com/docs/6758: 113991, 174756, 174757), signed with MD5.
///
/// Every request asks for both families, since only that value of `type` is documented. A name without addresses is an
/// uncertain NODATA (`isEmptyAmbiguous`): the service does not say why it has none.
public struct VolcengineDialect: BatchDialect {
  /// Lifetime of a signature in seconds.
  static let signatureLifetime: Int64 = 600
  /// The TTL in seconds of addresses without one.
  static let standardTTL: UInt32 = 60
  /// The value of `type` for both families.
  static let bothFamilies = "0"

  private let account: Configuration.SecretAccount
  private let path: String
  /// Each name costs one unit over HTTP and five over HTTPS. How a batch, or a name without addresses, is billed is not
  /// documented.
  public let billing: Billing

  /// - Parameters:
  ///   - isEncrypted: whether transfers use HTTPS; only the price depends on it.
  ///   - path: begins with `/`.
  public init(account: Configuration.SecretAccount, isEncrypted: Bool, path: String = "/resolve") {
    self.account = account
    self.path = path
    billing = .byName(
      isEncrypted ? 5 : 1, source: "Volcengine HTTPDNS bills by resolutions, HTTPS at five times the price of HTTP")
  }

  /// Ten; the service's own limit is not documented.
  public var mostNames: Int { 10 }

  /// A transfer has `type=0`.
  public var families: TransferFamilies { .both }

  /// An attacker who forges the time over http can forge the addresses as well.
  public var learnsTimeInTheClear: Bool { true }

  /// A GET with `domain`, `account_id`, `sign`, `timestamp`, if applicable `ip`, and `type`. `timestamp` is the end of the
  /// signature's life, in milliseconds since 1970.
  public func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest {
    precondition(batch.names.count <= mostNames, "more names than a transfer may carry")
    let names = batch.plainNames
    let address = batch.clientAddress?.description
    let expiry = String((unixTime + VolcengineDialect.signatureLifetime) * 1000)
    var target = QueryTarget(path: path)
    target.add("domain", plain: names)
    target.add("account_id", encoding: account.id)
    let signature = VolcengineDialect.signature(
      of: account.secret, [expiry, account.id, names, address ?? "", VolcengineDialect.bothFamilies])
    target.add("sign", plain: signature)
    target.add("timestamp", plain: expiry)
    if let address { target.add("ip", plain: address) }
    target.add("type", plain: VolcengineDialect.bothFamilies)
    return HTTPRequest(method: .get, target: target.text)
  }

  /// The lower-case hexadecimal MD5 of the secret key and the values of all other parameters, sorted by octets and joined by
  /// underscores. A parameter that is not sent takes part as an empty text.
  static func signature(of secretKey: Secret, _ values: [String]) -> String {
    var texts = values.map { Array($0.utf8) } + [secretKey.reveal]
    texts.sort { $0.lexicographicallyPrecedes($1) }
    return Hexadecimal.encode(Digest.md5(Array(texts.joined(separator: [UInt8(ascii: "_")]))))
  }

  /// Reads an object with `ips`, an object with a list `dns` of such objects, or such a list: the form of several names is not
  /// documented. 403 is a wrong signature, an old one, or a name that the account does not list.
  public func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    guard response.status != 403 else { throw .notListed }
    return try response.withAnswer { root throws(HTTPDNSFailure) in
      var lists = AddressLists(batch, member: "ips")
      let elements = root.isArray ? root : root["dns"]
      guard let elements else {
        guard root["ips"] != nil || root["host"] != nil else { throw .unreadable(.shape("ips")) }
        VolcengineDialect.read(root, into: &lists)
        return try lists.results()
      }
      guard elements.isArray else { throw .unreadable(.shape("dns")) }
      for element in elements.elements { VolcengineDialect.read(element, into: &lists) }
      return try lists.results()
    }
  }

  private static func read(_ element: JSONValue, into lists: inout AddressLists) {
    lists.add(
      element["ips"], of: element["host"], ttl: element["ttl"], standardTTL: VolcengineDialect.standardTTL)
  }
}

extension VolcengineDialect: Concealed {
  /// The dialect's name, without the account and its key.
  public var description: String { "volcengine" }
}
