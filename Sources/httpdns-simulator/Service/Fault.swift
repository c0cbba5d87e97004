// Fault.swift -- a deliberate fault: what goes wrong, for which requests, and how often.

import DNSWire
import HTTPMessage
import HTTPServer

/// A deliberate fault.
struct Fault: Equatable, Sendable {
  /// What goes wrong.
  enum Kind: String, CaseIterable, Sendable {
    /// Only the delay.
    case delay
    /// No reply; the connection stays open until the client closes it.
    case stall
    /// The connection is reset.
    case reset
    /// An HTTP status of the caller's choice.
    case status
    /// Status 200 with an HTML page, like that of a captive portal.
    case html
    /// Only the first half of the body.
    case cut
    /// An answer to a different question.
    case wrongQuestion = "wrong-question"
    /// The second half of the body is neither valid UTF-8 nor valid in a DNS message.
    case garble
    /// An address of three octets.
    case badRDATA = "bad-rdata"
    /// A CNAME record with a malformed target.
    case badName = "bad-name"
    /// A loop of CNAME records.
    case loop
    /// More CNAME records in a chain than any resolver follows.
    case chain
    /// SERVFAIL with an Extended DNS Error (RFC 8914), like that of a validator.
    case bogus
    /// A body of many octets.
    case big
    /// A refusal with an error code of EMAS and its HTTP status.
    case error
    /// JSON of the caller's choice, with the status `code`.
    case body
  }

  let kind: Kind
  /// The delay of the reply, for any kind.
  var delay = Duration.zero
  /// The status for `status`.
  var code = 503
  /// The Retry-After field for `status`, in seconds.
  var retryAfter: UInt32?
  /// The body for `body`.
  var text = ""
  /// The code for `error`.
  var error = EMASError.internalError
  /// The Extended DNS Error for `bogus`; by default DNSKEY Missing.
  var extendedError: UInt16 = 9
  /// The length of the body for `big`.
  var octets = 10_000_000
  /// The number of requests that remain to be affected; nil for no limit.
  var remaining: Int?
  /// The fraction of matching requests to affect, 0…1.
  var probability = 1.0
  /// Matches paths with this prefix.
  var path: String?
  /// Matches questions for this name.
  var name: DomainName?
  /// Matches questions for this name and names below it.
  var below: DomainName?
  /// Matches questions of this type.
  var type: RecordType?
  /// Matches the dialect of this name.
  var dialect: String?
}

extension Fault {
  static let delayLimit = 3_600_000
  static let bodyLimit = 100_000_000

  /// Creates a fault from parameters such as `kind=status&code=429&retry-after=5&count=2&path=/resolve`.
  ///
  /// - Throws: `SimulatorError` for an unknown parameter or a value out of range.
  init(_ parameters: Parameters) throws(SimulatorError) {
    let kinds = Kind.allCases.map(\.rawValue).joined(separator: ", ")
    guard let kind = parameters["kind"].flatMap(Kind.init(rawValue:)) else {
      throw SimulatorError(description: "kind is one of \(kinds)")
    }
    self.init(kind: kind)
    for pair in parameters.pairs {
      let text = String(decoding: pair.value, as: UTF8.self)
      guard let isTaken = take(pair.name, text) else { throw SimulatorError(description: "\(pair.name) is not known") }
      guard isTaken else { throw SimulatorError(description: "\"\(text)\" is no value for \(pair.name)") }
    }
  }

  /// Parses one parameter; nil if it is unknown, false if its value is not allowed.
  private mutating func take(_ key: String, _ value: String) -> Bool? {
    switch key {
    case "kind": true
    case "ms": set(\.delay, number(value, in: 0...Fault.delayLimit).map { .milliseconds($0) })
    case "text": set(\.text, value)
    case "code": set(\.code, number(value, in: 200...599))
    case "retry-after": set(\.retryAfter, UInt32(value))
    case "error": set(\.error, EMASError(rawValue: value))
    case "octets": set(\.octets, number(value, in: 0...Fault.bodyLimit))
    case "count": set(\.remaining, number(value, in: 1...Int.max))
    case "probability": set(\.probability, Double(value).flatMap { (0...1).contains($0) ? $0 : nil })
    case "path": set(\.path, value)
    case "name": set(\.name, DomainName(text: value))
    case "below": set(\.below, DomainName(text: value))
    case "ede": set(\.extendedError, UInt16(value))
    case "type": set(\.type, RecordType(text: value))
    case "dialect": set(\.dialect, allDialects.first { $0.name == value }?.name)
    default: nil
    }
  }

  /// Sets a property to a parsed value; false if the value is not allowed.
  private mutating func set<Value>(_ property: WritableKeyPath<Fault, Value>, _ value: Value?) -> Bool {
    guard let value else { return false }
    self[keyPath: property] = value
    return true
  }

  private mutating func set<Value>(_ property: WritableKeyPath<Fault, Value?>, _ value: Value?) -> Bool {
    self[keyPath: property] = value
    return value != nil
  }

  private func number(_ text: String, in range: ClosedRange<Int>) -> Int? {
    Int(text).flatMap { range.contains($0) ? $0 : nil }
  }

  /// Whether the fault applies to a request.
  func matches(path: String, dialect: String, questions: [Question]) -> Bool {
    if let wanted = self.path, !path.hasPrefix(wanted) { return false }
    if let wanted = self.dialect, dialect != wanted { return false }
    guard name != nil || below != nil || type != nil else { return true }
    return questions.contains { question in
      (question.name == name ?? question.name) && (question.type == type ?? question.type)
        && (below.map { question.name.isAtOrBelow($0) } ?? true)
    }
  }
}

extension Fault {
  /// The change to the answer itself, in the form of each dialect; nil if the fault does not change the answer.
  var distortion: Distortion? {
    switch kind {
    case .wrongQuestion: .question
    case .badRDATA: .rdata
    case .badName: .name
    case .loop: .loop
    case .chain: .chain
    case .bogus: .bogus(extendedError)
    case .delay, .stall, .reset, .status, .html, .cut, .big, .error, .body, .garble: nil
    }
  }
}

extension DialectReply {
  /// Applies the fault to a reply; faults of the connection do not change it. What was parsed from the request stays. A
  /// reply that does not come from the service has no price.
  func spoiled(by fault: Fault) -> DialectReply {
    var reply = self
    switch fault.kind {
    case .delay, .stall, .reset, .wrongQuestion, .badRDATA, .badName, .loop, .chain, .bogus: break
    case .garble: for index in body.indices.suffix(body.count / 2) { reply.body[index] = 0xFF }
    case .cut: reply.body.removeLast((body.count + 1) / 2)
    case .status:
      reply = .refusal(fault.code, "refused on demand")
      if let seconds = fault.retryAfter { reply.fields = [HTTPField("Retry-After", "\(seconds)")] }
    case .html:
      let page = "<!DOCTYPE html><title>Sign in</title><p>Welcome to this network."
      reply = .refusal(200, page, contentType: "text/html")
    case .error: reply = .refusal(fault.error)
    case .body: reply = .refusal(fault.code, fault.text, contentType: "application/json")
    case .big:
      reply.fields = []
      reply.body = [UInt8](repeating: UInt8(ascii: " "), count: fault.octets)
    }
    reply.questions = questions
    reply.isVerified = isVerified
    reply.cipher = cipher
    reply.subnet = subnet
    return reply
  }
}
