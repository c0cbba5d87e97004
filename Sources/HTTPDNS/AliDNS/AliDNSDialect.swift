// AliDNSDialect.swift -- Alibaba Cloud DNS: public DNS and "Mobile Resolution HTTPDNS", signed and unsigned.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /resolve` (alibabacloud.com/help/en/dns/httpdns-doh-json-api), signed as the provider's own SDK does it
/// (github.com/aliyun/alibaba-pdns-sdk-c).
public struct AliDNSDialect: Dialect {
  /// The form of a reply.
  public enum Form: Hashable, Sendable {
    /// An object with status, records and TTLs.
    case full
    /// An array of addresses without status and TTL.
    case short
  }

  /// The TTL in seconds of an address in a short reply, which has none: the minimum that the provider's own SDK uses.
  static let shortTTL: UInt32 = 60

  private let account: Configuration.AliDNSAccount?
  private let form: Form
  private let path: String
  /// An HTTPS transfer costs as much as five HTTP transfers.
  public let billing: Billing

  /// - Parameters:
  ///   - account: nil for the public service, which takes unsigned requests.
  ///   - isEncrypted: whether transfers use HTTPS; only the price depends on it.
  public init(
    account: Configuration.AliDNSAccount?, form: Form = .full, isEncrypted: Bool, path: String = "/resolve"
  ) {
    self.account = account
    self.form = form
    self.path = path
    billing = Billing(
      unitsPerTransfer: isEncrypted ? 5 : 1, isBilled: account != nil,
      source: "Alibaba Cloud DNS, HTTPDNS SDK guides: HTTPS is billed at five times the price of HTTP")
  }

  /// Every data type, in the short form A and AAAA only. Names consist of letters, digits, hyphens and underscores; not
  /// the root.
  public func serves(_ question: HTTPDNSQuestion) -> Bool {
    let isServedType = form == .short ? question.type == .a || question.type == .aaaa : question.type.isDataType
    return isServedType && question.name.isPlain && !question.name.isRoot
  }

  /// A GET with `name` and `type`, and if applicable `uid`, `ts`, `key`, `ak`, `edns_client_subnet` and `short`. The
  /// service does not support DNSSEC, so that no parameter carries DO or CD.
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> HTTPRequest {
    let name = plainText(of: question.name)
    var target = QueryTarget(path: path)
    target.add("name", plain: name)
    target.add("type", plain: String(question.type.rawValue))
    if let account {
      let timestamp = String(unixTime)
      target.add("uid", encoding: account.accountID)
      target.add("ts", plain: timestamp)
      target.add("key", plain: account.key(name: name, timestamp: timestamp))
      target.add("ak", encoding: account.accessKeyID)
    }
    if let subnet = question.clientSubnet { target.addClientSubnet(subnet) }
    if form == .short { target.add("short", plain: "1") }
    return HTTPRequest(method: .get, target: target.text)
  }

  /// The service's own error code, if it is a documented one.
  public func errorCode(in response: HTTPResponse) -> String? { AliDNSErrorCode.text(in: response) }

  /// Reads a full or a short body. A short body has no TTL and no status: its addresses live for a minute, and an empty
  /// one is an uncertain NODATA (`isEmptyAmbiguous`).
  public func answer(
    to question: HTTPDNSQuestion, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    let isShort = form == .short
    return try AliDNSErrorCode.withReply(response) { root throws(HTTPDNSFailure) in
      if isShort, root.isArray { return try addresses(in: root, for: question) }
      var reader = DNSJSONReader(question: question, requiresQuestion: true)
      return try reader.read(root).answer(to: question)
    }
  }

  private func addresses(in root: JSONValue, for question: HTTPDNSQuestion) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    var reply = ProviderReply(responseCode: .noError)
    for element in root.elements {
      guard let address = element.text.flatMap({ IPAddress(text: $0) }), question.type == (address.isIPv6 ? .aaaa : .a)
      else {
        reply.leftOut = .unreadable(.rdata)
        continue
      }
      reply.answers.append(
        ResourceRecord(
          owner: question.name, type: question.type, ttl: AliDNSDialect.shortTTL, rdata: address.octets))
    }
    var answer = try reply.answer(to: question)
    answer.isEmptyAmbiguous = answer.isNegative
    return answer
  }
}

extension AliDNSDialect: Concealed {
  /// The dialect's name, without the account and its key.
  public var description: String { "alidns" }
}

extension Configuration.AliDNSAccount {
  /// Returns `key`: the lower-case hexadecimal SHA-256 of account, secret, time, name and access key ID,
  /// concatenated. The name is hashed octet by octet as it is sent. The signature covers nothing else of the request.
  func key(name: String, timestamp: String) -> String {
    var message: [UInt8] = []
    message.reserveCapacity(256)
    message.append(accountID)
    message.append(contentsOf: accessKeySecret.reveal)
    message.append(timestamp)
    message.append(name)
    message.append(accessKeyID)
    return Hexadecimal.encode(Digest.sha256(message))
  }
}
