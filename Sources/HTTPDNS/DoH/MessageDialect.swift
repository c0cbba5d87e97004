// MessageDialect.swift -- RFC 8484: a DNS message in the body of a transfer.

import DNSWire
import HTTPMessage

/// DNS over HTTPS in wire format. It carries every name and every data type.
public struct MessageDialect: Dialect {
  /// Maximum octets of a reply's body, which is one DNS message.
  static let maximumBody = Message.maximumOctetCount

  private let method: HTTPMethod
  private let path: String

  private static let getFields = [HTTPField("Accept", MediaTypes.message.names[0])]
  private static let postFields = getFields + [HTTPField("Content-Type", MediaTypes.message.names[0])]

  /// - Parameters:
  ///   - method: POST sends the message as the body; GET, which HTTP caches can answer, sends it as the parameter
  ///     `dns`.
  ///   - path: begins with `/`; may end with a query of its own, or with the template expression `{?dns}`.
  public init(method: HTTPMethod = .post, path: String = "/dns-query") {
    self.method = method
    let template = "{?dns}"
    self.path = path.hasSuffix(template) ? String(path.dropLast(template.utf8.count)) : path
  }

  /// Free: public services have no price.
  public var billing: Billing { .free }

  /// Every name and every data type.
  public func serves(_ question: HTTPDNSQuestion) -> Bool { question.type.isDataType }

  /// A GET or POST with the query, padded so that its length does not reveal the name (RFC 8467).
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> HTTPRequest {
    let message = query(for: question)
    guard method == .get else {
      return HTTPRequest(method: .post, target: path, fields: MessageDialect.postFields, body: message)
    }
    var target = QueryTarget(path: path)
    target.add("dns", plain: Base64URL.encode(message))
    return HTTPRequest(target: target.text, fields: MessageDialect.getFields)
  }

  /// Reads the DNS message in the body. The reply's age is subtracted from the TTLs, and no TTL exceeds the remaining
  /// freshness lifetime (RFC 8484 section 5.1).
  public func answer(
    to question: HTTPDNSQuestion, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    try response.requireStatus(in: 200...299)
    try response.requireBody(.message, limit: MessageDialect.maximumBody)
    let message: Message
    do { message = try Message.parse(response.body) } catch { throw .unreadable(UnreadableReason(error)) }
    var reply = try ProviderReply(message, to: question)
    reply.scopePrefixLength = try scope(in: message, for: question)
    let age = response.age ?? 0
    // Without max-age only the TTLs limit the freshness lifetime. A max-age of 0 addresses HTTP caches only.
    let freshness = response.maxAge.flatMap { $0 == 0 ? nil : $0 > age ? $0 - age : 0 } ?? .max
    for index in reply.answers.indices { reply.answers[index].age(by: age, freshness: freshness) }
    for index in reply.authorities.indices { reply.authorities[index].age(by: age, freshness: freshness) }
    return try reply.answer(to: question)
  }

  /// Composes the query. Its ID is 0 and its name in lower case, so that equal questions have equal octets for an HTTP
  /// cache. AD requests the AD bit in the response (RFC 6840 section 5.7).
  private func query(for question: HTTPDNSQuestion) -> [UInt8] {
    let options = question.clientSubnet.map { [ClientSubnet($0).option] } ?? []
    var message = Message.query(
      Question(name: question.name.lowercased, type: question.type), id: 0,
      edns: EDNS(dnssecOK: question.dnssecOK, options: options))
    message.header.ad = true
    message.header.cd = question.checkingDisabled
    do {
      return try message.compose(paddedTo: Message.queryPaddingBlock)
    } catch {
      preconditionFailure("one question and one option are too long for a message")
    }
  }

  /// The scope. A response for another subnet must not be used (RFC 7871 section 7.3).
  private func scope(in message: borrowing Message, for question: HTTPDNSQuestion) throws(HTTPDNSFailure) -> Int? {
    guard let sent = question.clientSubnet, let returned = message.edns?.clientSubnet else { return nil }
    guard returned.prefix == sent else { throw .wrongQuestion }
    return Int(returned.scope)
  }
}

extension UnreadableReason {
  /// The owner of a zone controls the work that names cause; any other error is the server's.
  fileprivate init(_ error: WireError) { self = error == .tooMuchWork ? .tooLarge : .message }
}

extension ResourceRecord {
  fileprivate mutating func age(by age: UInt32, freshness: UInt32) {
    let value = ttlValue(ttl)
    ttl = min(value > age ? value - age : 0, freshness)
  }
}

extension ProviderReply {
  /// Checks the header and the question of a response. Throws if it is not a response, answers another question, or is
  /// truncated.
  fileprivate init(_ message: borrowing Message, to question: HTTPDNSQuestion) throws(HTTPDNSFailure) {
    guard message.header.qr, message.header.opcode == 0 else { throw .unreadable(.message) }
    let code = message.responseCode
    let isAnswer = code == .noError || code == .nxDomain
    // A server that could not parse the query has no question to repeat.
    guard message.asks(Question(name: question.name, type: question.type)) || message.questions.isEmpty && !isAnswer
    else { throw .wrongQuestion }
    guard !message.header.tc else { throw .truncated }
    self.init(responseCode: code)
    if message.unreadableRecordCount > 0 { leftOut = .unreadable(.rdata) }
    isAuthenticated = message.header.ad
    extendedError = message.extendedError
    answers = message.answers
    authorities = message.authorities
  }
}

extension HTTPDNSAnswer {
  /// Reads the answer in a response over plain DNS, with the checks that also apply to a provider's reply.
  public init(_ message: Message, to question: HTTPDNSQuestion) throws(HTTPDNSFailure) {
    self = try ProviderReply(message, to: question).answer(to: question)
  }
}
