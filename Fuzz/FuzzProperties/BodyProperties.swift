// BodyProperties.swift -- what every dialect makes of a body: an answer to what was asked, or a refusal.

import DNSWire
import HTTPDNS

/// The JSON dialects. The input is the type that is asked for, a line end, and the body.
public struct JSONBodyProperty: Property {
  /// The fuzz target.
  public static let name = "JSONBody"
  private let dialects: [any Dialect] = [
    JSONDialect(flavour: .google, path: "/resolve"), JSONDialect(flavour: .cloudflare, path: "/dns-query"),
    JSONDialect(flavour: .generic, path: "/dns-query"), AliDNSDialect(credential: nil, isEncrypted: true),
    AliDNSDialect(credential: nil, form: .short, isEncrypted: true),
  ]

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let type = RecordType(text: String(decoding: parts[0], as: UTF8.self)) else { return }
    let response = TransferResponse(status: 200, contentType: "application/json", body: Array(parts[1]))
    for dialect in dialects where dialect.serves(question(type)) {
      try check(dialect, type, response)
    }
  }
}

/// RFC 8484. The input is the body that answers for addresses of www.example.com.
public struct DoHBodyProperty: Property {
  /// The fuzz target.
  public static let name = "DoHBody"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let response = TransferResponse(
      status: 200, contentType: "application/dns-message", age: 10, maxAge: 300, body: input)
    try check(MessageDialect(), .a, response)
  }
}

extension Property {
  fileprivate func question(_ type: RecordType) -> HTTPDNSQuestion {
    HTTPDNSQuestion(
      name: DomainName(text: "www.example.com")!, type: type, dnssecOK: true,
      clientSubnet: IPPrefix(text: "203.0.113.0/24"))
  }

  fileprivate func check(
    _ dialect: any Dialect, _ type: RecordType, _ response: TransferResponse
  ) throws(Violation) {
    let question = question(type)
    guard let answer = try? dialect.answer(to: question, from: response) else { return }
    let records = answer.answers + answer.authorities
    try require(records.allSatisfy { $0.ttl <= Int32.max }, "a TTL of 32 bits")
    try require(records.allSatisfy { RDATA.isValid($0.rdata, type: $0.type) }, "RDATA that is not of its type's form")
    if let first = answer.answers.first {
      try require(first.owner == question.name || first.type == .dname, "a chain that does not begin at QNAME")
    }
    let hasData = answer.answers.contains { $0.type == type }
    let isAnswer = answer.responseCode == .noError || answer.responseCode == .nxDomain
    try require(hasData || answer.isNegative || !isAnswer, "a positive answer without data")
    try require(!hasData || answer.responseCode == .noError, "data with \(answer.responseCode)")
    var message = Message.query(Question(name: question.name, type: type), id: 1)
    message.header.qr = true
    (message.answers, message.authorities) = (answer.answers, answer.authorities)
    // JSON can hold more than a message.
    guard let octets = try? message.compose() else { return }
    try require((try? Message.parse(octets)) == message, "records that are others in a message")
  }
}
