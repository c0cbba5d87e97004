// Dialect.swift -- what every provider's dialect can do: say what it serves, ask for it, read the reply.
//
// A dialect is a value without state, clock or I/O: it may be used on any thread, and the same input always gives
// the same output.

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

  /// What one transfer costs.
  var billing: Billing { get }
}

/// What a provider charges for.
public struct Billing: Hashable, Sendable {
  /// Billing units that one transfer costs; 0 where the service is free of charge.
  public let unitsPerRequest: Int
  /// The document that says so.
  public let source: String

  /// A price and where it is written.
  public init(unitsPerRequest: Int, source: String) {
    self.unitsPerRequest = unitsPerRequest
    self.source = source
  }

  /// A public service without an account: nobody is billed.
  public static let free = Billing(unitsPerRequest: 0, source: "public service, no account")
}

extension RecordType {
  /// Whether a record of this type can exist: neither type 0 nor OPT nor one of the types that only a question has
  /// (RFC 6895 section 3.1).
  var isDataType: Bool {
    self != RecordType(0) && self != .opt && !(128...255).contains(rawValue)
  }
}
