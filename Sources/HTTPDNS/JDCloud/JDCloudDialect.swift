// JDCloudDialect.swift -- JD Cloud HTTPDNS.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /v1/ACCOUNT/d` (github.com/jdcloudcom/cn, HTTPDNS/Getting-Started), signed with MD5. A request has one family.
///
/// A name without addresses is an uncertain NODATA (`isEmptyAmbiguous`), and so is one that the service refuses because the
/// account does not list it.
public struct JDCloudDialect: BatchDialect {
  /// Lifetime of a signature in seconds; the service accepts up to a day.
  static let signatureLifetime: Int64 = 600
  /// `ret_code` of a name that is not in the account's list.
  static let notListed: UInt32 = 10_015

  private let account: Configuration.SecretAccount

  public init(account: Configuration.SecretAccount) { self.account = account }

  /// Each name costs one unit. How a batch, HTTPS, or a name without addresses is billed is not documented.
  public var billing: Billing { .byName(1, source: "JD Cloud HTTPDNS bills by resolutions") }

  /// Ten; the service's own limit is not documented.
  public var mostNames: Int { 10 }

  /// `qt` has one type.
  public var families: TransferFamilies { .one }

  /// An attacker who forges the time over http can forge the addresses as well.
  public var learnsTimeInTheClear: Bool { true }

  /// `ip` is an IPv4 address.
  public func sends(_ subnet: IPPrefix) -> Bool { !subnet.address.isIPv6 }

  /// A GET with `dn`, `qt`, if applicable `ip`, `t` and `s`. The signature covers names, key and
  /// expiry.
  public func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest {
    precondition(batch.names.count <= mostNames && batch.types.count == 1, "more than a transfer may carry")
    let names = batch.plainNames
    let expiry = String(unixTime + JDCloudDialect.signatureLifetime)
    var target = QueryTarget(path: account.jdcloudPath)
    target.add("dn", plain: names)
    target.add("qt", plain: batch.types[0] == .a ? "A" : "AAAA")
    if let subnet = batch.clientSubnet, sends(subnet), let address = batch.clientAddress {
      target.add("ip", plain: address.description)
    }
    target.add("t", plain: expiry)
    target.add("s", plain: nameSignature(of: names, account.secret, expiry: expiry))
    return HTTPRequest(method: .get, target: target.text)
  }

  /// `ret_code` of a refusal.
  public func errorCode(in response: HTTPResponse) -> String? {
    JDCloudDialect.code(of: response).flatMap { $0 == 0 ? nil : String($0) }
  }

  /// Reads a body with `ret_code` and `data`, an array with an element for each name.
  public func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    guard response.status == 200 else {
      guard response.mayExplainRefusal, let code = JDCloudDialect.code(of: response) else {
        throw .status(response.status, retryAfter: response.retryAfter)
      }
      return try refused(batch, code, status: response.status)
    }
    return try response.withAnswer { root throws(HTTPDNSFailure) in
      guard let code = root["ret_code"]?.number(upTo: .max) else { throw .unreadable(.shape("ret_code")) }
      guard code == 0 else { return try refused(batch, code, status: 200) }
      guard let data = root["data"], data.isArray else { throw .unreadable(.shape("data")) }
      var lists = AddressLists(batch, member: "ips")
      for element in data.elements {
        lists.add(element["ips"], of: element["domain"], family: batch.types[0], ttl: element["ttl"])
      }
      return try lists.results()
    }
  }

  /// What `ret_code` means. Only that of an unlisted name is documented: with several names each may be the one.
  private func refused(
    _ batch: QuestionBatch, _ code: UInt32, status: Int
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    guard code == JDCloudDialect.notListed else { throw status == 401 ? .authentication : .unexplained }
    guard batch.names.count == 1 else { throw .oneNotListed }
    return try AddressLists(batch, member: "ips").results()
  }

  private static func code(of response: HTTPResponse) -> UInt32? {
    response.inJSON { $0["ret_code"]?.number(upTo: .max) }
  }
}

extension JDCloudDialect: Concealed {
  /// The dialect's name, without the account and its key.
  public var description: String { "jdcloud" }
}
