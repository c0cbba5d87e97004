// Dialect.swift -- what every provider's dialect is: a pure function from a request to a reply.
//
// A new dialect is one file with a conforming type, and one entry in `allDialects`.

import DNSWire
import EventLoop
import HTTPServer

/// One request as a dialect sees it.
struct Transfer: Sendable {
  let request: HTTPServerRequest
  let parameters: Parameters
  /// Seconds since 1970 by the service's clock.
  let now: Int64
  /// Whether it came over TLS.
  let isSecure: Bool
  /// What shall be wrong with the answer.
  var distortion: Distortion?

  init(_ request: HTTPServerRequest, now: Int64, isSecure: Bool = false) {
    self.request = request
    parameters = Parameters(query: request.query)
    self.now = now
    self.isSecure = isSecure
  }

  /// The address from which the client asks.
  var clientAddress: IPAddress {
    request.peer.flatMap { IPAddress(octets: $0.octets) } ?? IPAddress(text: "127.0.0.1")!
  }

  /// Whether the Host field names one of these hosts, with or without a port.
  func isFor(_ hosts: String...) -> Bool {
    guard let host = request.field("Host") else { return false }
    return hosts.contains { host == $0 || host.hasPrefix("\($0):") }
  }
}

/// What a dialect answers, and what it understood of the request.
struct DialectReply: Sendable {
  var status = 200
  var contentType: String
  var fields: [HTTPServerField] = []
  var body: [UInt8]
  /// What was asked, name by name; empty where the request was not understood.
  var questions: [Question] = []
  /// Whether a signature, a token or a key was right; nil where none was sent.
  var isVerified: Bool?
  /// The cipher in which names and reply travel.
  var cipher: BlockCipher.Mode?
  /// The client's subnet that was sent along.
  var subnet: String?
  /// What the real service would charge, in its own units.
  var units = 0

  /// The first question.
  var question: Question? { questions.first }

  /// A refusal with a line of text.
  static func refusal(_ status: Int, _ text: String, contentType: String = "text/plain") -> DialectReply {
    DialectReply(status: status, contentType: contentType, body: Array(text.utf8))
  }
}

/// A provider's way of asking and answering over HTTP.
protocol Dialect: Sendable {
  /// What the record of requests calls it.
  var name: String { get }
  /// Whether the request is meant for this dialect; the first one that says so answers.
  func claims(_ transfer: Transfer) -> Bool
  /// The reply, from nothing but the request and the service.
  func reply(to transfer: Transfer, from service: Service) -> DialectReply
}

/// Every dialect; one that is recognized by more stands before those that take what is left of a path.
let allDialects: [any Dialect] = [
  AliDNS(), AliDNSConfiguration(), DohPub(), Cloudflare(), Google(), WireFormat(), Tencent(), EMAS(), DomainTable(),
]

/// The record type of a `type` parameter: a number or a mnemonic in any case; A without one.
///
/// - Returns: nil for anything else, and for 0.
func recordType(_ text: String?) -> RecordType? {
  guard let text else { return .a }
  if let number = UInt16(text) { return number == 0 ? nil : RecordType(number) }
  return RecordType(text: text)
}

/// A switch of a query: `1` and `true` are on, the empty text, `0` and `false` are off; nil for anything else.
func flag(_ text: String?) -> Bool? {
  switch text {
  case "1", "true": true
  case nil, "", "0", "false": false
  default: nil
  }
}
