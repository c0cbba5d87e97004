// Fault.swift -- what may be made to go wrong, to which requests, and how often.

import DNSWire
import HTTPServer

/// A fault on demand.
struct Fault: Equatable, Sendable {
  /// What goes wrong.
  enum Kind: String, CaseIterable, Sendable {
    /// Nothing but the delay.
    case delay
    /// No answer ever; the connection stays open until the client closes it.
    case stall
    /// The connection is reset.
    case reset
    /// An HTTP status other than 200.
    case status
    /// Status 200 with a page of HTML, as a captive portal sends it.
    case html
    /// The first half of the body.
    case cut
    /// An answer to a question that nobody asked.
    case wrongQuestion = "wrong-question"
    /// The second half of the body is octets that are no UTF-8, and no name of a message either.
    case garble
    /// An address of three octets.
    case badRDATA = "bad-rdata"
    /// An alias whose target cannot be read.
    case badName = "bad-name"
    /// An alias that leads back to its own name.
    case loop
    /// More aliases in a row than any resolver follows.
    case chain
    /// SERVFAIL with an Extended DNS Error (RFC 8914), as a validator says it.
    case bogus
    /// A body of many octets.
    case big
    /// A refusal with a code of EMAS's, and the status that belongs to it.
    case error
  }

  let kind: Kind
  /// How much later the reply comes, whatever it is.
  var delay = Duration.zero
  /// The status of `status`.
  var code = 503
  /// The Retry-After field of `status`, in seconds.
  var retryAfter: UInt32?
  /// The code of `error`.
  var error = EMASError.internalError
  /// The Extended DNS Error of `bogus`: DNSKEY Missing.
  var extendedError: UInt16 = 9
  /// The length of `big`.
  var octets = 10_000_000
  /// How many more requests it hits; nil for no end.
  var remaining: Int?
  /// The share of matching requests that it hits, 0…1.
  var probability = 1.0
  /// What the path begins with.
  var path: String?
  /// The name that is asked for.
  var name: DomainName?
  /// A name that is asked for, or that one is below.
  var below: DomainName?
  /// The type that is asked for.
  var type: RecordType?
  /// The dialect's name.
  var dialect: String?
}

/// A fault that cannot be understood: what was found, and what is allowed.
struct FaultError: Error, Equatable, CustomStringConvertible {
  let description: String
}

extension Fault {
  static let delayLimit: UInt32 = 3_600_000
  static let bodyLimit = 100_000_000

  /// A fault from parameters such as `kind=status&code=429&retry-after=5&count=2&path=/resolve`.
  ///
  /// - Throws: `FaultError` for an unknown parameter or a value out of range.
  init(_ parameters: Parameters) throws(FaultError) {
    let kinds = Kind.allCases.map(\.rawValue).joined(separator: ", ")
    guard let kind = parameters["kind"].flatMap(Kind.init(rawValue:)) else {
      throw FaultError(description: "kind is one of \(kinds)")
    }
    self.init(kind: kind)
    for pair in parameters.pairs {
      let text = String(decoding: pair.value, as: UTF8.self)
      guard let isTaken = take(pair.name, text) else { throw FaultError(description: "\(pair.name) is not known") }
      guard isTaken else { throw FaultError(description: "\"\(text)\" is no value for \(pair.name)") }
    }
  }

  /// Sets one parameter: nil if it is unknown, false if its value is invalid.
  private mutating func take(_ key: String, _ value: String) -> Bool? {
    switch key {
    case "kind": break
    case "ms":
      guard let milliseconds = UInt32(value), milliseconds <= Fault.delayLimit else { return false }
      delay = .milliseconds(milliseconds)
    case "code":
      guard let code = Int(value), (200...599).contains(code) else { return false }
      self.code = code
    case "retry-after":
      guard let seconds = UInt32(value) else { return false }
      retryAfter = seconds
    case "error":
      guard let error = EMASError(rawValue: value) else { return false }
      self.error = error
    case "octets":
      guard let octets = Int(value), (0...Fault.bodyLimit).contains(octets) else { return false }
      self.octets = octets
    case "count":
      guard let count = Int(value), count > 0 else { return false }
      remaining = count
    case "probability":
      guard let share = Double(value), (0...1).contains(share) else { return false }
      probability = share
    case "path": path = value
    case "name":
      guard let name = DomainName(text: value) else { return false }
      self.name = name
    case "below":
      guard let name = DomainName(text: value) else { return false }
      below = name
    case "ede":
      guard let code = UInt16(value) else { return false }
      extendedError = code
    case "type":
      guard let type = RecordType(text: value) else { return false }
      self.type = type
    case "dialect":
      guard allDialects.contains(where: { $0.name == value }) else { return false }
      dialect = value
    default: return nil
    }
    return true
  }

  /// Whether the fault is meant for such a request.
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
  /// What becomes of the answer itself, in whatever form the dialect writes it.
  var distortion: Distortion? {
    switch kind {
    case .wrongQuestion: .question
    case .badRDATA: .rdata
    case .badName: .name
    case .loop: .loop
    case .chain: .chain
    case .bogus: .bogus(extendedError)
    case .delay, .stall, .reset, .status, .html, .cut, .big, .error, .garble: nil
    }
  }
}

extension DialectReply {
  /// The reply as the fault spoils it; kinds that concern the connection leave it alone. What was understood of the
  /// request stays; what somebody else answers in the service's place is not charged.
  func spoiled(by fault: Fault) -> DialectReply {
    var reply = self
    switch fault.kind {
    case .delay, .stall, .reset, .wrongQuestion, .badRDATA, .badName, .loop, .chain, .bogus: break
    case .garble: for index in body.indices.suffix(body.count / 2) { reply.body[index] = 0xFF }
    case .cut: reply.body.removeLast((body.count + 1) / 2)
    case .status:
      reply = .refusal(fault.code, "refused on demand")
      if let seconds = fault.retryAfter { reply.fields = [HTTPServerField("Retry-After", "\(seconds)")] }
    case .html:
      let page = "<!DOCTYPE html><title>Sign in</title><p>Welcome to this network."
      reply = .refusal(200, page, contentType: "text/html")
    case .error: reply = .refusal(fault.error)
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
