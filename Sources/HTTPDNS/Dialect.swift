// Dialect.swift -- the interface of every provider's dialect: which questions it serves, the request, the reply.
//
// A dialect is a value without state, clock or I/O. It may be used on any thread, and equal input gives equal output,
// except for the initialisation vectors of dialects that encrypt.

import DNSWire
import HTTPMessage

/// A provider's way of carrying DNS over HTTP.
public protocol Dialect: Sendable {
  /// Whether this dialect can carry the question, by its type and its name.
  func serves(_ question: HTTPDNSQuestion) -> Bool

  /// The transfer that carries the question.
  ///
  /// - Parameter unixTime: seconds since 1970 on the provider's clock, for dialects that sign.
  /// - Precondition: `serves(question)`.
  func request(for question: HTTPDNSQuestion, unixTime: Int64) -> HTTPRequest

  /// Reads the answer in the reply to such a transfer.
  ///
  /// - Throws: the reason why there is no answer; what it counts against follows from it.
  /// - Complexity: O(*n*) in the octets of the body.
  func answer(to question: HTTPDNSQuestion, from response: HTTPResponse) throws(HTTPDNSFailure) -> HTTPDNSAnswer

  /// The code or text by which the service refuses, which its documents may not list: one printable line. Nil if none.
  func errorCode(in response: HTTPResponse) -> String?

  /// The service's time in the body of a refusal, in seconds since 1970; nil if the body has none, so that `Date` counts.
  func unixTime(in response: HTTPResponse) -> Int64?

  /// Whether a refusal over http corrects the clock that requests are signed by, too. An attacker on the path who can forge
  /// its time can forge the answers of such a service anyway.
  var learnsTimeInTheClear: Bool { get }

  /// Whether requests carry the client's address of such a subnet. If not, an answer is the same for all clients.
  func sends(_ subnet: IPPrefix) -> Bool

  /// The price of a transfer.
  var billing: Billing { get }
}

extension Dialect {
  /// Nil by default: the service has no error codes of its own.
  public func errorCode(in response: HTTPResponse) -> String? { nil }

  /// Nil by default: the service's time is that of `Date`.
  public func unixTime(in response: HTTPResponse) -> Int64? { nil }

  /// False by default: only TLS authenticates the time.
  public var learnsTimeInTheClear: Bool { false }

  /// True by default, for IPv4 and IPv6.
  public func sends(_ subnet: IPPrefix) -> Bool { true }
}

/// Which address families a transfer of a service has.
public enum TransferFamilies: Sendable {
  /// One: each batch has one.
  case one
  /// One or both, as the batch wants them.
  case wanted
  /// Both, also where one is wanted.
  case both
}

/// A dialect in which one transfer can carry several names and both address families.
///
/// It serves A and AAAA only.
public protocol BatchDialect: Dialect {
  /// Maximum names in one transfer; 1 if only the families can share a transfer.
  var mostNames: Int { get }

  /// The address families that a transfer asks for: those of its batch by default.
  var families: TransferFamilies { get }

  /// The transfer that carries all questions of the batch.
  ///
  /// - Precondition: the dialect serves each question, and there are no more than `mostNames` names.
  func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest

  /// Reads the answers to `batch.questions`, in their order. A question that the reply omits does not affect the others:
  /// it fails with `.wrongQuestion`, or is empty if the service may leave out what it has no addresses for
  /// (`AddressLists`).
  ///
  /// - Throws: the reason why no question has an answer.
  /// - Complexity: O(*n*) in the octets of the body.
  func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>]
}

extension BatchDialect {
  /// As the batch wants them.
  public var families: TransferFamilies { .wanted }

  /// A and AAAA. Names consist of letters, digits, hyphens and underscores; not the root.
  public func serves(_ question: HTTPDNSQuestion) -> Bool { question.isForAddresses }

  /// The transfer of a batch of one question.
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> HTTPRequest {
    request(for: QuestionBatch(question), unixTime: unixTime)
  }

  /// Reads the answer to a batch of one question.
  public func answer(
    to question: HTTPDNSQuestion, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    try answers(to: QuestionBatch(question), from: response)[0].get()
  }
}

/// Names and address families that share one transfer: each name is combined with each family.
public struct QuestionBatch: Hashable, Sendable {
  /// The names, without duplicates; at least one.
  public var names: [DomainName]
  /// A, AAAA or both, in that order.
  public var types: [RecordType]
  /// The subnet that the answers are tailored to; nil adds no subnet to the request.
  public var clientSubnet: IPPrefix?

  /// Traps unless there is a name and `types` is `[.a]`, `[.aaaa]` or `[.a, .aaaa]`.
  public init(names: [DomainName], types: [RecordType], clientSubnet: IPPrefix? = nil) {
    let isFamilies =
      types.count == 2 ? types[0] == .a && types[1] == .aaaa : types.count == 1 && (types[0] == .a || types[0] == .aaaa)
    precondition(!names.isEmpty && isFamilies)
    self.names = names
    self.types = types
    self.clientSubnet = clientSubnet
  }

  /// Creates a batch of one question, which must be of type A or AAAA. DO and CD are dropped, because these dialects do
  /// not carry them.
  public init(_ question: HTTPDNSQuestion) {
    self.init(names: [question.name], types: [question.type], clientSubnet: question.clientSubnet)
  }

  /// Every question of the batch: name by name, A before AAAA.
  public var questions: [HTTPDNSQuestion] {
    names.flatMap { name in types.map { HTTPDNSQuestion(name: name, type: $0, clientSubnet: clientSubnet) } }
  }
}

/// The price list of a provider.
public struct Billing: Hashable, Sendable {
  /// Units per transfer that was replied to, whether or not it has an answer.
  public var unitsPerTransfer: Int
  /// Units per name that is asked for, whether or not it has an answer.
  public var unitsPerName = 0
  /// Units per name and address family that addresses were returned for.
  public var unitsPerAnswer = 0
  /// Whether the price is an estimate that no document confirms.
  public var isEstimate = false
  /// Whether an account is billed; false without an account. Units are counted in both cases.
  public var isBilled = true
  /// The document that states the price, or the basis of the estimate.
  public var source: String

  /// A public service without an account and without a price.
  public static let free = Billing(unitsPerTransfer: 0, isBilled: false, source: "public service, no account")

  /// An estimate for services that bill names, whose documents do not say how they count a request with several.
  static func byName(_ units: Int, source: String) -> Billing {
    Billing(unitsPerTransfer: 0, unitsPerName: units, isEstimate: true, source: source)
  }

  /// Returns the units of one transfer.
  ///
  /// - Parameters:
  ///   - names: the number of names that were asked for.
  ///   - answers: the number of names and families that addresses were returned for.
  public func units(names: Int = 1, answers: Int) -> Int {
    unitsPerTransfer + unitsPerName * names + unitsPerAnswer * answers
  }
}
