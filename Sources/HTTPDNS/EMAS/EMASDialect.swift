// EMASDialect.swift -- Alibaba Cloud EMAS HTTPDNS, version 1 of the API.

import Ciphers
import DNSWire
import HTTPMessage
import JSON

/// `GET /{account}/d` for one name and `/{account}/resolve` for several names (alibabacloud.com/help/en/httpdns),
/// signed with MD5 if there is a secret key (`sign_d`, `sign_resolve`).
///
/// A reply does not distinguish a name without addresses from a name that does not exist or that the account does not
/// serve: an empty reply is an uncertain NODATA (`isEmptyAmbiguous`).
public struct EMASDialect: BatchDialect {
  /// The part of every target before the resource.
  private let pathPrefix: String
  private let secretKey: Secret?
  private let parameters: [EMAS.Parameter]
  /// Each name and family with addresses costs one unit over HTTP and five units over HTTPS.
  public let billing: Billing

  /// - Parameters:
  ///   - secretKey: nil sends unsigned requests, which an account may forbid.
  ///   - parameters: parameters of the account's own, whose names need no encoding. The signature does not cover them.
  ///   - isEncrypted: whether transfers use HTTPS; only the price depends on it.
  public init(accountID: String, secretKey: Secret?, parameters: [String: String] = [:], isEncrypted: Bool) {
    pathPrefix = "/\(PercentText.encode(accountID))/\(secretKey == nil ? "" : "sign_")"
    self.secretKey = secretKey
    self.parameters = EMAS.sorted(parameters)
    billing = EMAS.billing(isEncrypted: isEncrypted)
  }

  /// Five.
  public var mostNames: Int { EMAS.mostNames }

  /// A GET with `host` and `query`, and if applicable `ip`, `t` and `s`. The signature is valid for ten minutes.
  public func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest {
    precondition(batch.names.count <= mostNames, "more names than EMAS takes")
    let resource = batch.names.count == 1 ? "d" : "resolve"
    let hosts = batch.plainNames
    var target = QueryTarget(path: pathPrefix + resource)
    target.add("host", plain: hosts)
    target.add("query", plain: batch.emasFamilies)
    if let address = batch.clientAddress { target.add("ip", plain: address.description) }
    if let secretKey {
      let expiry = String(unixTime + EMAS.signatureLifetime)
      target.add("t", plain: expiry)
      target.add("s", plain: nameSignature(of: hosts, secretKey, expiry: expiry))
    }
    for parameter in parameters { target.add(given: parameter.name, encoding: parameter.value) }
    return HTTPRequest(method: .get, target: target.text)
  }

  /// The service's own error code, if it is a documented one.
  public func errorCode(in response: HTTPResponse) -> String? { EMASErrorCode.text(in: response) }

  /// Reads a body with `ips` and `ipsv6`, or with a list `dns` of such elements.
  public func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    try EMASErrorCode.withReply(response) { root throws(HTTPDNSFailure) in
      var answers = EMASAnswers(batch)
      guard let list = root["dns"] else {
        guard EMASDialect.read(root, into: &answers) else { throw .unreadable(.shape("host")) }
        return try answers.results()
      }
      guard list.isArray else { throw .unreadable(.shape("dns")) }
      for element in list.elements { EMASDialect.read(element, into: &answers) }
      return try answers.results()
    }
  }

  /// Reads an element. With `type` it has one family, whose addresses are in `ips` for A and for AAAA; without `type`
  /// it has both families.
  ///
  /// - Returns: whether it says anything about a name.
  @discardableResult
  private static func read(_ element: JSONValue, into answers: inout EMASAnswers) -> Bool {
    let (host, ips, ipsv6) = (element["host"]?.octets, element["ips"], element["ipsv6"])
    guard host != nil || ips != nil || ipsv6 != nil else { return false }
    // What is left of the TTL, then the zone's own.
    let ttls = [element["ttl"], element["origin_ttl"]]
    guard let member = element["type"] else {
      answers.add(EMASAddressList(addresses: ips, ttls: ttls), of: host, .a)
      answers.add(EMASAddressList(addresses: ipsv6, ttls: ttls), of: host, .aaaa)
      return true
    }
    guard let type = member.number(upTo: 65_535) else { return false }
    answers.add(EMASAddressList(addresses: ips, ttls: ttls), of: host, RecordType(UInt16(type)))
    if ipsv6 != nil, type == RecordType.aaaa.rawValue {
      answers.add(EMASAddressList(addresses: ipsv6, ttls: ttls), of: host, .aaaa)
    }
    return true
  }
}

extension EMASDialect: Concealed {
  /// The dialect's name, without the account and its key.
  public var description: String { "emas" }
}
