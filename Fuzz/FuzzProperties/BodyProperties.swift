// BodyProperties.swift -- what every dialect makes of a body: an answer to what was asked, or a refusal.

import Ciphers
import Configuration
import DNSWire
import HTTPDNS
import HTTPMessage
import LocalDNS
import Resolver

/// The JSON dialect in its flavours. The input is the type that is asked for, a line end, and the body.
public struct JSONBodyProperty: Property {
  /// The fuzz target.
  public static let name = "JSONBody"
  private let dialects: [any Dialect] = [
    JSONDialect(flavour: .google, path: "/resolve"), JSONDialect(flavour: .cloudflare, path: "/dns-query"),
    JSONDialect(flavour: .generic, path: "/dns-query"),
  ]

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) { try check(typeAndBody: input, dialects) }
}

/// Both forms of alidns. The input is the type that is asked for, a line end, and the body.
public struct AliDNSBodyProperty: Property {
  /// The fuzz target.
  public static let name = "AliDNSBody"
  private let dialects: [any Dialect] = [
    AliDNSDialect(account: nil, isEncrypted: true), AliDNSDialect(account: nil, form: .short, isEncrypted: true),
  ]

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) { try check(typeAndBody: input, dialects) }
}

/// RFC 8484. The input is the body that answers for addresses of www.example.com.
public struct DoHBodyProperty: Property {
  /// The fuzz target.
  public static let name = "DoHBody"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let response = HTTPResponse(
      status: 200, contentType: "application/dns-message", age: 10, maxAge: 300, body: input)
    try check(MessageDialect(), .a, response)
  }
}

/// Plain DNS. The input is the response to a query for addresses of www.example.com, but for its ID.
public struct LocalDNSReplyProperty: Property {
  /// The fuzz target.
  public static let name = "LocalDNSReply"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    var asked = question(.a)
    asked.clientSubnet = nil
    let sent = Question(name: asked.name, type: asked.type)
    let query = PreparedQuery(sent, edns: EDNS(dnssecOK: true), checkingDisabled: false)
    let reply = query.octets.prefix(2) + input.dropFirst(2)
    guard case .response(let message) = query.judge(reply[...]) else { return }
    try require(message.asks(sent) || message.questions.isEmpty, "another question")
    try require(!message.header.tc, "a response that is cut off")
    guard let answer = try? HTTPDNSAnswer(message, to: asked) else { return }
    try check(answer, to: asked)
  }
}

/// Tencent, in clear text and with a cipher. The input is the body.
public struct TencentBodyProperty: Property {
  /// The fuzz target.
  public static let name = "TencentBody"
  private let dialects = [
    TencentDialect(account: .https(token: Secret("123456789"), id: "1234")),
    TencentDialect(account: .aes(id: "1234", key: Secret("AesKey0123456789"))),
    TencentDialect(account: .des(id: "1234", key: Secret("DesKey01"))),
  ]

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    for dialect in dialects { try check(batches: dialect, HTTPResponse(status: 200, body: input)) }
  }
}

/// Version 1 of EMAS. The input is the body.
public struct EMASBodyProperty: Property {
  /// The fuzz target.
  public static let name = "EMASBody"
  private let dialect = EMASDialect(accountID: "100000", secretKey: nil, isEncrypted: true)
  private let schedule = EMASSchedule(accountID: "100000")

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    for status in [200, 403] {
      let response = HTTPResponse(status: status, body: input)
      try check(batches: dialect, response)
      guard let servers = try? schedule.servers(from: response), !servers.isEmpty else { continue }
      try require((1...32).contains(servers.count), "a list of \(servers.count) servers")
    }
  }
}

/// Version 2 of EMAS. The input is the body, or the encrypted part of one.
public struct EMASv2BodyProperty: Property {
  /// The fuzz target.
  public static let name = "EMASv2Body"
  private let dialects: [(String, EMASv2Dialect)]
  private let cipher: BlockCipher

  /// With whatever it needs set up.
  public init() {
    let key = "00112233445566778899aabbccddeeff"
    cipher = BlockCipher(.aesCBC, key: Hexadecimal.decode(Array(key.utf8)) ?? [])
    do throws(EMASKeyError) {
      dialects = [
        ("0", try EMASv2Dialect(accountID: "100000", secretKey: nil, isEncrypted: true)),
        (
          "1",
          try EMASv2Dialect(
            accountID: "100000", secretKey: nil, aesSecretKey: Secret(key), aesMode: .cbc, isEncrypted: true)
        ),
        (
          "2",
          try EMASv2Dialect(
            accountID: "100000", secretKey: nil, aesSecretKey: Secret(key), aesMode: .gcm, isEncrypted: true)
        ),
      ]
    } catch { preconditionFailure("\(error)") }
  }

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    for (_, dialect) in dialects {
      for status in [200, 403] { try check(batches: dialect, HTTPResponse(status: status, body: input)) }
    }
    // No fuzzer guesses ciphertext: the input is what was encrypted, too.
    let vector = [UInt8](repeating: 7, count: 16)
    let sealed = Base64.encode(vector + cipher.encrypt(input, vector: vector))
    let body = #"{"code":"success","mode":"1","data":"\#(sealed)"}"#
    try check(batches: dialects[1].1, HTTPResponse(status: 200, body: Array(body.utf8)))
  }
}

/// Baidu. The input is the body.
public struct BaiduBodyProperty: Property {
  /// The fuzz target.
  public static let name = "BaiduBody"
  private let dialect = BaiduDialect(account: .init(id: "1", secret: Secret("secret")), isEncrypted: true)

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    for status in [200, 401, 403] {
      let response = HTTPResponse(status: status, contentType: "application/json", body: input)
      try check(batches: dialect, response)
      try require(dialect.unixTime(in: response) ?? 0 >= 0, "a time before 1970")
    }
  }
}

/// Volcengine. The input is the body.
public struct VolcengineBodyProperty: Property {
  /// The fuzz target.
  public static let name = "VolcengineBody"
  private let dialect = VolcengineDialect(
    account: .init(id: "1", secret: Secret("secret")), isEncrypted: true)

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    for status in [200, 403] {
      try check(batches: dialect, HTTPResponse(status: status, contentType: "application/json", body: input))
    }
  }
}

/// JD Cloud. The input is the body.
public struct JDCloudBodyProperty: Property {
  /// The fuzz target.
  public static let name = "JDCloudBody"
  private let dialect = JDCloudDialect(account: .init(id: "1", secret: Secret("key")))

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    for status in [200, 401, 403] {
      try check(batches: dialect, HTTPResponse(status: status, contentType: "application/json", body: input))
    }
  }
}

/// UCloud. The input is the body, of an answer or of a list of nodes.
public struct UCloudBodyProperty: Property {
  /// The fuzz target.
  public static let name = "UCloudBody"
  private let dialect = UCloudDialect(account: .init(id: "1", secret: Secret("secret")))
  private let nodes = UCloudNodes(account: .init(id: "1", secret: Secret("secret")))

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    for status in [200, 401, 404] {
      let response = HTTPResponse(status: status, contentType: "application/json", body: input)
      for type in [RecordType.a, .aaaa] { try check(dialect, type, response) }
      guard let list = try? nodes.list(from: response) else { continue }
      try require(status == 200 && (1...16).contains(list.servers.count), "a list of \(list.servers.count) nodes")
    }
  }
}

/// Plain text, in the form of either service. The input is the body.
public struct TextBodyProperty: Property {
  /// The fuzz target.
  public static let name = "TextBody"
  private let dialects = [Configuration.TextForm.dnspod, .oneOneFour].map { TextDialect(form: $0, path: "/d") }

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let response = HTTPResponse(status: 200, body: input)
    for dialect in dialects {
      for type in [RecordType.a, .aaaa] where dialect.serves(question(type)) { try check(dialect, type, response) }
    }
  }
}

/// Self-built tables. The input is the table.
public struct TableBodyProperty: Property {
  /// The fuzz target.
  public static let name = "TableBody"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard let table = try? AddressTable(text: input) else { return }
    try require(table.isEnabled || table.count == 0, "names in a table that is switched off")
    for name in ["a.example.com", "b.example.com", "www.example.com"] {
      for type in [RecordType.a, .aaaa, .txt] {
        let asked = HTTPDNSQuestion(name: DomainName(text: name)!, type: type)
        guard let answer = table.answer(to: asked, ttl: 60) else { continue }
        try require(type != .txt, "an answer that no table has")
        try check(answer, to: asked)
      }
    }
  }
}

extension Property {
  fileprivate func question(_ type: RecordType) -> HTTPDNSQuestion {
    HTTPDNSQuestion(
      name: DomainName(text: "www.example.com")!, type: type, dnssecOK: true,
      clientSubnet: IPPrefix(text: "203.0.113.0/24"))
  }

  fileprivate func check(typeAndBody input: [UInt8], _ dialects: [any Dialect]) throws(Violation) {
    let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let type = RecordType(text: String(decoding: parts[0], as: UTF8.self)) else { return }
    let response = HTTPResponse(status: 200, contentType: "application/json", body: Array(parts[1]))
    for dialect in dialects where dialect.serves(question(type)) {
      try check(dialect, type, response)
    }
  }

  fileprivate func check(
    _ dialect: any Dialect, _ type: RecordType, _ response: HTTPResponse
  ) throws(Violation) {
    try checkErrorCode(dialect, response)
    let question = question(type)
    guard let answer = try? dialect.answer(to: question, from: response) else { return }
    try check(answer, to: question)
  }

  /// Asks for one name in one family and in both, and for several names.
  fileprivate func check(batches dialect: any BatchDialect, _ response: HTTPResponse) throws(Violation) {
    try checkErrorCode(dialect, response)
    let names = ["www.example.com", "a.example.com", "b.example.com"].map { DomainName(text: $0)! }
    for (count, types) in [(1, [.a]), (1, [.aaaa]), (1, [.a, .aaaa]), (3, [.a, .aaaa]), (3, [.a])]
      as [(Int, [RecordType])]
    where dialect.families != .one || types.count == 1 {
      let batch = QuestionBatch(
        names: Array(names.prefix(count)), types: types, clientSubnet: IPPrefix(text: "203.0.113.0/24"))
      guard let results = try? dialect.answers(to: batch, from: response) else { continue }
      try require(results.count == batch.questions.count, "more or fewer answers than questions")
      for (question, result) in zip(batch.questions, results) {
        if case .success(let answer) = result { try check(answer, to: question) }
      }
    }
  }

  private func checkErrorCode(_ dialect: any Dialect, _ response: HTTPResponse) throws(Violation) {
    try require(dialect.errorCode(in: response).map(isOneLine) ?? true, "an error code of several lines")
  }

  fileprivate func check(_ answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) throws(Violation) {
    let type = question.type
    let records = answer.answers + answer.authorities
    try require(records.allSatisfy { $0.ttl <= Int32.max }, "a TTL of 32 bits")
    try require(records.allSatisfy { RDATA.isValid($0.rdata, type: $0.type) }, "RDATA that is not of its type's form")
    if let first = answer.answers.first {
      try require(first.owner == question.name || first.type == .dname, "a chain that does not begin at QNAME")
    }
    let hasData = answer.answers.contains { $0.type == type }
    let isAnswer = answer.responseCode == .noError || answer.responseCode == .nxDomain
    try require(hasData || answer.isNegative || !isAnswer, "a positive answer without data")
    // The DNAME record that made an alias is no answer to a question for DNAME.
    try require(!hasData || answer.responseCode == .noError || type == .dname, "data with \(answer.responseCode)")
    var message = Message.query(Question(name: question.name, type: type), id: 1)
    message.header.qr = true
    (message.answers, message.authorities) = (answer.answers, answer.authorities)
    // JSON can hold more than a message.
    guard let octets = try? message.compose() else { return }
    try require((try? Message.parse(octets)) == message, "records that are others in a message")
    try checkComposed(answer, to: question)
  }

  /// What is kept and sent is the same, names in RDATA compressed, and no longer.
  private func checkComposed(_ answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) throws(Violation) {
    guard
      let composed = ComposedResponse(
        .noError, to: question.name, answers: answer.answers, authorities: answer.authorities)
    else { return }
    guard let read = composed.message(to: Question(name: question.name, type: question.type)) else {
      throw Violation("what was composed cannot be parsed")
    }
    let (before, after) = (answer.answers + answer.authorities, read.answers + read.authorities)
    try require(before.count == after.count, "more or fewer records than were composed")
    for (one, other) in zip(before, after) {
      try require(
        one.owner == other.owner && one.type == other.type && one.ttl == other.ttl
          && one.rdata.map(asciiLowercase) == other.rdata.map(asciiLowercase), "another record than was composed")
    }
  }
}
