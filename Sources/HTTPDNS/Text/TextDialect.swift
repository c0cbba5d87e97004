// TextDialect.swift -- services that answer in plain text: addresses between semicolons, TTLs behind commas.

import Configuration
import DNSWire
import HTTPMessage

/// The form of Tencent's former free service, `192.0.2.1;192.0.2.2,60`, and that of 114DNS,
/// `192.0.2.1,60;192.0.2.2,30`.
///
/// An empty reply does not say why: it is an uncertain NODATA (`isEmptyAmbiguous`), like one with the other family
/// alone. The text has no other mark of an error than that it is no list of addresses.
public struct TextDialect: Dialect {
  /// Maximum octets of a body.
  static let bodyLimit = 65_536
  /// The TTL in seconds of a reply that states none.
  static let standardTTL: UInt32 = 600
  /// Any other media type may be right: self-built servers send what their language sends.
  private static let pages = MediaTypes(names: ["text/html", "application/xhtml+xml"], acceptsAbsent: false)

  private let form: Configuration.TextForm
  private let path: String

  /// - Parameter path: begins with `/`.
  public init(form: Configuration.TextForm, path: String) {
    self.form = form
    self.path = path
  }

  /// Nothing: there is no account.
  public var billing: Billing { .free }

  /// A, and with 114DNS's form AAAA. Names consist of letters, digits, hyphens and underscores; not the root.
  public func serves(_ question: HTTPDNSQuestion) -> Bool {
    question.isForAddresses && (form == .oneOneFour || question.type == .a)
  }

  /// A GET with `dn` and `ttl`, with 114DNS's form `type`, and if applicable `ip`.
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> HTTPRequest {
    var target = QueryTarget(path: path)
    target.add("dn", plain: plainText(of: question.name))
    switch form {
    case .dnspod: target.add("ttl", plain: "1")
    case .oneOneFour:
      target.add("type", plain: question.type == .a ? "a" : "aaaa")
      target.add("ttl", plain: "y")
    }
    if let address = QuestionBatch(question).clientAddress { target.add("ip", plain: address.description) }
    return HTTPRequest(method: .get, target: target.text)
  }

  /// Reads the text in either form, whichever was asked for.
  public func answer(
    to question: HTTPDNSQuestion, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    try response.requireStatus(in: 200...200)
    guard !TextDialect.pages.contains(response.contentType) else { throw .unreadable(.mediaType) }
    guard response.body.count <= TextDialect.bodyLimit else { throw .unreadable(.tooLarge) }
    let text = trimmed(response.body[...])
    guard text.first != UInt8(ascii: "<") else { throw .unreadable(.page) }
    let (addresses, ttl) = try TextDialect.read(text)
    let records = addresses.filter { ($0.count == 16) == (question.type == .aaaa) }.map {
      ResourceRecord(owner: question.name, type: question.type, ttl: ttl, rdata: $0)
    }
    var answer = try ProviderReply(responseCode: .noError, answers: records).answer(to: question)
    answer.isEmptyAmbiguous = answer.isNegative
    return answer
  }

  /// Reads a list, which is empty or has an address in each of its places. Its TTL is the lowest one that stands there.
  private static func read(
    _ text: ArraySlice<UInt8>
  ) throws(HTTPDNSFailure) -> (addresses: [[UInt8]], ttl: UInt32) {
    guard !text.isEmpty else { return ([], standardTTL) }
    var addresses: [[UInt8]] = []
    var lowest: UInt32?
    // Tencent's clients accept one more semicolon at the end.
    let list = text.last == UInt8(ascii: ";") ? text.dropLast() : text
    for place in list.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false) {
      let parts = place.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map(trimmed)
      guard parts.count <= 2, let address = addressOctets(parts[0], isIPv6: parts[0].contains(UInt8(ascii: ":"))) else {
        throw .unreadable(.syntax)
      }
      addresses.append(address)
      // A TTL that is not a number does not count.
      guard parts.count > 1, let ttl = try? HTTPDNS.ttl(in: parts[1]) else { continue }
      lowest = min(lowest ?? ttl, ttl)
    }
    return (addresses, lowest ?? standardTTL)
  }
}
