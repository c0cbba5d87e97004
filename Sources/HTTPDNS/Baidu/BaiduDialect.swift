// BaiduDialect.swift -- Baidu Cloud HTTPDNS, version 4 of the API.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /v4/resolve` (cloud.baidu.com/doc/HTTPDNS, "API v4"), signed with MD5.
///
/// A reply does not distinguish a name without addresses from a name that does not exist or that the account does not list:
/// an empty one is an uncertain NODATA (`isEmptyAmbiguous`).
public struct BaiduDialect: BatchDialect {
  /// Lifetime of a signature in seconds, as in the provider's mobile SDKs.
  static let signatureLifetime: Int64 = 300

  private let account: Configuration.SecretAccount
  private let path: String
  /// Each name costs one unit over HTTP and five over HTTPS. How a batch, or a name without addresses, is billed is not
  /// documented.
  public let billing: Billing

  /// - Parameters:
  ///   - isEncrypted: whether transfers use HTTPS; only the price depends on it.
  ///   - path: begins with `/`.
  public init(account: Configuration.SecretAccount, isEncrypted: Bool, path: String = "/v4/resolve") {
    self.account = account
    self.path = path
    billing = .byName(
      isEncrypted ? 5 : 1, source: "Baidu Cloud HTTPDNS bills by resolutions, HTTPS at five times the price of HTTP")
  }

  /// Ten.
  public var mostNames: Int { 10 }

  /// An attacker who forges the time over http can forge the addresses as well.
  public var learnsTimeInTheClear: Bool { true }

  /// A GET with `account_id`, `dn`, `sign`, `t` and `type`, and if applicable `ip`. The signature covers names, secret and
  /// expiry; it is valid for five minutes.
  public func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest {
    precondition(batch.names.count <= mostNames, "more names than Baidu takes")
    let names = batch.plainNames
    let expiry = String(unixTime + BaiduDialect.signatureLifetime)
    var target = QueryTarget(path: path)
    target.add("account_id", encoding: account.id)
    target.add("dn", plain: names)
    target.add("sign", plain: nameSignature(of: names, account.secret, expiry: expiry))
    target.add("t", plain: expiry)
    target.add("type", plain: batch.types.count > 1 ? "dual_stack" : batch.types[0] == .a ? "ipv4" : "ipv6")
    if let address = batch.clientAddress { target.add("ip", plain: address.description) }
    return HTTPRequest(method: .get, target: target.text)
  }

  /// The `msg` of a refusal, if it is a plain text.
  public func errorCode(in response: HTTPResponse) -> String? {
    response.word("msg").flatMap { $0 == "ok" ? nil : $0 }
  }

  /// `timestamp` in the body of a refusal.
  public func unixTime(in response: HTTPResponse) -> Int64? {
    response.inJSON { $0["timestamp"]?.number(upTo: .max) }.map(Int64.init)
  }

  /// Reads a body with `msg` and `data`, an object with a member for each name.
  public func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    if response.status != 200 { throw BaiduDialect.refusal(response) }
    return try response.withAnswer { root throws(HTTPDNSFailure) in
      guard let message = root["msg"]?.octets else { throw .unreadable(.shape("msg")) }
      guard message.elementsEqual("ok".utf8) else { throw BaiduDialect.refusal(message, status: 200) }
      guard let data = root["data"], data.isObject else { throw .unreadable(.shape("data")) }
      var lists = AddressLists(batch, member: "ip")
      data.forEachMember { name, value in
        for (member, family) in [("ipv4", RecordType.a), ("ipv6", .aaaa)] as [(StaticString, RecordType)] {
          // What is no object is no list either.
          let found = value.isObject ? value[member] : value.isNull ? nil : value
          let list = found.flatMap { $0.isObject ? $0["ip"] : $0 }
          lists.add(list, ofName: name, family: family, ttl: found?["ttl"])
        }
      }
      return try lists.results()
    }
  }

  /// What a status and, if the body has it, `msg` say.
  private static func refusal(_ response: HTTPResponse) -> HTTPDNSFailure {
    let status = HTTPDNSFailure.status(response.status, retryAfter: response.retryAfter)
    guard response.mayExplainRefusal else { return status }
    return response.inJSON { $0["msg"]?.octets.map { refusal($0, status: response.status) } } ?? status
  }

  /// The meaning of `msg`. Its texts are not documented but for one, nor are the statuses that come with them.
  private static func refusal(_ message: UnsafeRawBufferPointer, status: Int) -> HTTPDNSFailure {
    if message.elementsEqual("ok".utf8) { return .status(status) }
    if message.elementsEqual("SignatureExpired".utf8), status != 401 { return .expired }
    return status == 401 ? .authentication : .unexplained
  }
}

extension BaiduDialect: Concealed {
  /// The dialect's name, without the account and its secret.
  public var description: String { "baidu" }
}
