// Dialect.swift -- what every provider's dialect can do: say what it serves, ask for it, read the reply.
//
// A dialect is a value without state, clock or I/O: it may be used on any thread, and the same input always gives
// the same output, but for the initialisation vectors of those that encrypt.

import DNSWire

/// A provider's way of carrying DNS over HTTP.
public protocol Dialect: Sendable {
  /// Whether this dialect can carry the question, by its type and its name.
  func serves(_ question: HTTPDNSQuestion) -> Bool

  /// The transfer that asks the question.
  ///
  /// - Parameter unixTime: seconds since 1970 on the provider's clock, for dialects that sign.
  /// - Precondition: `serves(question)`.
  func request(for question: HTTPDNSQuestion, unixTime: Int64) -> TransferRequest

  /// The answer that the reply to such a transfer holds.
  ///
  /// - Throws: why there is none, and with it whom to blame.
  /// - Complexity: O(*n*) in the octets of the body.
  func answer(
    to question: HTTPDNSQuestion, from response: TransferResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer

  /// The service's own word for what is wrong, where the reply has one that its documents name.
  func errorCode(in response: TransferResponse) -> String?

  /// What a transfer costs.
  var billing: Billing { get }

  /// Whether it has a word for DO and CD. Without one questions that differ in nothing else are the same transfer.
  var knowsDNSSECFlags: Bool { get }
}

extension Dialect {
  /// Whether it has a word for DO and CD: not where nothing else is said.
  public var knowsDNSSECFlags: Bool { false }

  /// The service's own word for what is wrong: none, where nothing else is said.
  public func errorCode(in response: TransferResponse) -> String? { nil }
}

/// A dialect in which one transfer can ask for several names, and for both address families of them.
///
/// It serves A and AAAA only.
public protocol BatchDialect: Dialect {
  /// Names that one transfer may carry; 1 where only the families can travel together.
  var mostNames: Int { get }

  /// The transfer that asks all questions of the batch.
  ///
  /// - Precondition: each of them is served, and there are no more than `mostNames` names.
  func request(for batch: QuestionBatch, unixTime: Int64) -> TransferRequest

  /// What the reply to such a transfer says to each of `batch.questions`, in their order. A question that the reply
  /// leaves out has failed with `.wrongQuestion`; the others count.
  ///
  /// - Throws: why there is no answer to any of them.
  /// - Complexity: O(*n*) in the octets of the body.
  func answers(
    to batch: QuestionBatch, from response: TransferResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>]
}

extension BatchDialect {
  /// The transfer that asks one question.
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> TransferRequest {
    request(for: QuestionBatch(question), unixTime: unixTime)
  }

  /// What the reply to such a transfer says.
  public func answer(
    to question: HTTPDNSQuestion, from response: TransferResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    try answers(to: QuestionBatch(question), from: response)[0].get()
  }
}

/// Names and address families that travel in one transfer: each name is asked for in each family.
public struct QuestionBatch: Hashable, Sendable {
  /// The names, none twice.
  public var names: [DomainName]
  /// A, AAAA or both, in that order.
  public var types: [RecordType]
  /// The subnet that the answers shall suit; nil says nothing about it.
  public var clientSubnet: IPPrefix?

  /// Those names in those families.
  ///
  /// - Precondition: there is a name, and `types` is `[.a]`, `[.aaaa]` or `[.a, .aaaa]`.
  public init(names: [DomainName], types: [RecordType], clientSubnet: IPPrefix? = nil) {
    let isFamilies =
      types.count == 2 ? types[0] == .a && types[1] == .aaaa : types.count == 1 && (types[0] == .a || types[0] == .aaaa)
    precondition(!names.isEmpty && isFamilies)
    self.names = names
    self.types = types
    self.clientSubnet = clientSubnet
  }

  /// The one question. DO and CD are left out: these dialects have no word for them.
  public init(_ question: HTTPDNSQuestion) {
    self.init(names: [question.name], types: [question.type], clientSubnet: question.clientSubnet)
  }

  /// Every question of the batch: name by name, A before AAAA.
  public var questions: [HTTPDNSQuestion] {
    names.flatMap { name in types.map { HTTPDNSQuestion(name: name, type: $0, clientSubnet: clientSubnet) } }
  }
}

/// What a provider charges for.
public struct Billing: Hashable, Sendable {
  /// Units for each transfer that was replied to, whatever it carried.
  public let unitsPerTransfer: Int
  /// Units for each name and address family to which addresses came back.
  public let unitsPerAnswer: Int
  /// Whether no document says so, and the numbers are the best guess.
  public let isEstimate: Bool
  /// The document that says so, or what the guess rests on.
  public let source: String
  /// Whether anybody is billed: not where there is no account. Units are counted all the same.
  public let isBilled: Bool

  /// A price and where it is written.
  public init(
    unitsPerTransfer: Int, unitsPerAnswer: Int = 0, isEstimate: Bool = false, isBilled: Bool = true, source: String
  ) {
    self.isBilled = isBilled
    self.unitsPerTransfer = unitsPerTransfer
    self.unitsPerAnswer = unitsPerAnswer
    self.isEstimate = isEstimate
    self.source = source
  }

  /// A public service without an account: nobody is billed.
  public static let free = Billing(
    unitsPerTransfer: 0, isBilled: false, source: "public service, no account")

  /// Units for one transfer.
  ///
  /// - Parameter answers: names and families to which addresses came back.
  public func units(answers: Int) -> Int { unitsPerTransfer + unitsPerAnswer * answers }
}

extension RecordType {
  /// Whether a record of this type can exist: neither type 0 nor OPT nor one of the types that only a question has
  /// (RFC 6895 section 3.1).
  var isDataType: Bool {
    self != RecordType(0) && self != .opt && !(128...255).contains(rawValue)
  }
}
