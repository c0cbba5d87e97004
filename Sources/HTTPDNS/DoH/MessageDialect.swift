// MessageDialect.swift -- RFC 8484: a DNS message in the body of a transfer.

import Ciphers
import DNSWire

/// DNS over HTTPS in wire form. It carries every name and every type.
public struct MessageDialect: Dialect {
  /// Octets of a reply's body, which is one DNS message.
  static let maximumBody = Message.maximumOctetCount

  private let method: TransferRequest.Method
  private let path: String

  /// A dialect for the service at a path.
  ///
  /// - Parameters:
  ///   - method: POST sends the message as the body; GET, which HTTP caches can answer, as the parameter `dns`.
  ///   - path: begins with `/`; may end with a query of its own, or with the template expression `{?dns}`.
  public init(method: TransferRequest.Method = .post, path: String = "/dns-query") {
    self.method = method
    let template = "{?dns}"
    self.path = path.hasSuffix(template) ? String(path.dropLast(template.utf8.count)) : path
  }

  /// Public services are free of charge.
  public var billing: Billing { .free }

  /// DO and CD are bits of the message.
  public var knowsDNSSECFlags: Bool { true }

  /// Every name, and every type that a record can have.
  public func serves(_ question: HTTPDNSQuestion) -> Bool { question.type.isDataType }

  /// A GET or POST with the query; padded, so that its length says nothing of the name (RFC 8467).
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> TransferRequest {
    let message = query(for: question)
    let accept = (name: "Accept", value: MediaTypes.message.names[0])
    switch method {
    case .get:
      var target = QueryTarget(path: path)
      target.add("dns", plain: Base64URL.encode(message))
      return TransferRequest(method: .get, target: target.text, headers: [accept])
    case .post:
      let contentType = (name: "Content-Type", value: accept.value)
      return TransferRequest(method: .post, target: path, headers: [accept, contentType], body: message)
    }
  }

  /// The answer in a DNS message. TTLs count from when the message was fresh: the reply's age is taken off, and they
  /// end with its freshness (RFC 8484 section 5.1).
  public func answer(
    to question: HTTPDNSQuestion, from response: TransferResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    try response.requireStatus(in: 200...299)
    try response.requireBody(.message, limit: MessageDialect.maximumBody)
    let message: Message
    do { message = try Message.parse(response.body) } catch { throw .unreadable(UnreadableReason(error)) }
    var reply = try ProviderReply(message, to: question)
    reply.scopePrefixLength = try scope(in: message, for: question)
    let age = response.age ?? 0
    // Without max-age nothing but the TTLs themselves ends the freshness; 0 is for HTTP caches alone.
    let freshness = response.maxAge.flatMap { $0 == 0 ? nil : $0 > age ? $0 - age : 0 } ?? .max
    for index in reply.answers.indices { reply.answers[index].age(by: age, freshness: freshness) }
    for index in reply.authorities.indices { reply.authorities[index].age(by: age, freshness: freshness) }
    return try reply.answer(to: question)
  }

  /// The query. Its ID is 0 and its name in lower case, so that equal questions are equal octets to an HTTP cache; AD
  /// asks for the AD bit of the response (RFC 6840 section 5.7).
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

  /// The scope; a response to a query with another subnet must not be used (RFC 7871 section 7.3).
  private func scope(in message: Message, for question: HTTPDNSQuestion) throws(HTTPDNSFailure) -> Int? {
    guard let sent = question.clientSubnet, let returned = message.edns?.clientSubnet else { return nil }
    guard returned.prefix == sent else { throw .wrongQuestion }
    return Int(returned.scope)
  }
}

extension UnreadableReason {
  /// Whoever owns a zone decides on RDATA and on how much work the names are; the rest is the server's.
  fileprivate init(_ error: WireError) {
    self =
      switch error {
      case .rdata: .rdata
      case .tooMuchWork: .tooLarge
      default: .message
      }
  }
}

extension ResourceRecord {
  fileprivate mutating func age(by age: UInt32, freshness: UInt32) {
    let value = ttlValue(ttl)
    ttl = min(value > age ? value - age : 0, freshness)
  }
}

extension ProviderReply {
  /// What a response says; refused where it is none, to another question, or not whole.
  fileprivate init(_ message: Message, to question: HTTPDNSQuestion) throws(HTTPDNSFailure) {
    guard message.header.qr, message.header.opcode == 0 else { throw .unreadable(.message) }
    let code = message.responseCode
    let isAnswer = code == .noError || code == .nxDomain
    // A server that could not even read the query has no question to repeat.
    guard message.asks(Question(name: question.name, type: question.type)) || message.questions.isEmpty && !isAnswer
    else { throw .wrongQuestion }
    guard !message.header.tc else { throw .truncated }
    self.init(responseCode: code)
    isAuthenticated = message.header.ad
    extendedError = message.extendedError
    answers = message.answers
    authorities = message.authorities
  }
}

extension HTTPDNSAnswer {
  /// The answer that a response by plain DNS holds, by the same rules as one from a provider.
  public init(_ message: Message, to question: HTTPDNSQuestion) throws(HTTPDNSFailure) {
    self = try ProviderReply(message, to: question).answer(to: question)
  }
}
