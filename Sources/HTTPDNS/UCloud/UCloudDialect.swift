// UCloudDialect.swift -- UCloud HTTPDNS.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /AUTH_ID/resolve`, signed with MD5. A request has one name and one family.
///
/// The service has one code for a name without a record and for one that it could not resolve, and another one for a
/// name that the account does not list. All are an uncertain NODATA (`isEmptyAmbiguous`), like a reply without
/// addresses.
public struct UCloudDialect: Dialect {
  private let request: UCloudRequest

  /// - Parameter appID: bundle ID or package name; nil unless the account is that of an application.
  public init(account: Configuration.SecretAccount, appID: String? = nil) {
    request = UCloudRequest(account: account, appID: appID)
  }

  /// An estimate: the service is called a free trial, and no price has been published.
  public var billing: Billing {
    Billing(
      unitsPerTransfer: 1, isEstimate: true, source: "UCloud HTTPDNS: no price is published, a request has one name")
  }

  /// A and AAAA. Names consist of letters, digits, hyphens and underscores; not the root.
  public func serves(_ question: HTTPDNSQuestion) -> Bool { question.isForAddresses }

  /// An attacker who forges the time over http can forge the addresses as well.
  public var learnsTimeInTheClear: Bool { true }

  /// No parameter carries the client's address.
  public func sends(_ subnet: IPPrefix) -> Bool { false }

  /// A GET with `timestamp`, `host`, `type` and, if applicable, `app_id`.
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> HTTPRequest {
    request.get(
      "resolve", host: plainText(of: question.name), type: question.type == .a ? "4" : "6", unixTime: unixTime)
  }

  /// `code` of a refusal, also one that is not documented.
  public func errorCode(in response: HTTPResponse) -> String? { response.word("code") }

  /// Reads an object with `host`, `ip_list` and `ttl`. A refusal with status 200 is unreadable.
  public func answer(
    to question: HTTPDNSQuestion, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    var lists = AddressLists(QuestionBatch(question), member: "ip_list")
    if let code = UCloudErrorCode(of: response) {
      guard code.isEmpty else { throw .authentication }
      return try lists.results()[0].get()
    }
    return try response.withAnswer { root throws(HTTPDNSFailure) in
      guard root["ip_list"] != nil || root["host"] != nil && root["code"] == nil else {
        throw .unreadable(.shape("ip_list"))
      }
      lists.add(root["ip_list"], of: root["host"], family: question.type, ttl: root["ttl"])
      return try lists.results()[0].get()
    }
  }
}

extension UCloudDialect: Concealed {
  /// The dialect's name, without the account and its secret.
  public var description: String { "ucloud" }
}
