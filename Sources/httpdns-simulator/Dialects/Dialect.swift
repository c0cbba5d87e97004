// Dialect.swift -- the interface of every provider's dialect: a pure function from a request to a reply.
//
// A new dialect needs one file with a conforming type and one entry in `allDialects`.

import Ciphers
import DNSWire
import EventLoop
import HTTPMessage
import HTTPServer

/// A request as dialects see it: whole, with its time and its transport.
struct DialectRequest: Sendable {
  let request: HTTPServerRequest
  let parameters: Parameters
  /// Seconds since 1970 on the service's clock.
  let now: Int64
  /// Whether the request arrived over TLS.
  let isSecure: Bool
  /// The deliberate error in the answer.
  var distortion: Distortion?

  init(_ request: HTTPServerRequest, now: Int64, isSecure: Bool = false) {
    self.request = request
    parameters = Parameters(query: request.query)
    self.now = now
    self.isSecure = isSecure
  }

  var clientAddress: IPAddress {
    request.peer.flatMap { IPAddress(octets: $0.octets) } ?? IPAddress(text: "127.0.0.1")!
  }

  /// Whether the Host field has one of these hosts, with or without a port.
  func isFor(_ hosts: String...) -> Bool {
    guard let host = request.field("Host") else { return false }
    return hosts.contains { host == $0 || host.hasPrefix("\($0):") }
  }
}

/// A dialect's reply and what the dialect parsed from the request.
struct DialectReply: Sendable {
  var status = 200
  var contentType: String
  var fields: [HTTPField] = []
  var body: [UInt8]
  /// The questions, name by name; empty if the request could not be parsed.
  var questions: [Question] = []
  /// Whether the signature, token or key was correct; nil if there was none to check.
  var isVerified: Bool?
  /// The cipher of names and reply.
  var cipher: BlockCipher.Mode?
  /// The client subnet or address in the request.
  var subnet: String?
  /// The price that the real service would charge, in its own units.
  var units = 0

  var question: Question? { questions.first }

  static func refusal(_ status: Int, _ text: String, contentType: String = "text/plain") -> DialectReply {
    DialectReply(status: status, contentType: contentType, body: Array(text.utf8))
  }

  /// Status and body of a refusal, with what was parsed from the request and its price.
  func refused(by refusal: DialectReply) -> DialectReply {
    var reply = self
    (reply.status, reply.body) = (refusal.status, refusal.body)
    return reply
  }
}

/// A provider's protocol over HTTP.
protocol Dialect: Sendable {
  /// The name in the record of requests and in faults.
  var name: String { get }
  /// The account that the service has from the start; nil if it has none, or one of another form.
  var account: SecretAccount? { get }
  /// Whether the request is meant for this dialect; the first dialect that returns true replies.
  func claims(_ transfer: DialectRequest) -> Bool
  /// Returns the reply, which depends only on the request and the service.
  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply
}

extension Dialect {
  /// Nil by default.
  var account: SecretAccount? { nil }
}

/// Every dialect. A dialect with a specific match comes before those that match any other request for the same path.
let allDialects: [any Dialect] = [
  AliDNS(), Volcengine(), AliDNSConfiguration(), AdGuard(), DohPub(), Cloudflare(), Google(), WireFormat(), Tencent(),
  Baidu(), JDCloud(), UCloud(), EMAS(), DomainTable(), PlainText(),
]

extension DialectRequest {
  /// The question and CD in Google's form: `name`, `type` and `cd`; nil if one of them is malformed.
  var googleQuestion: (question: Question, cd: Bool)? {
    guard let name = parameters["name"].flatMap({ DomainName(text: $0) }), let type = recordType(parameters["type"]),
      let cd = flag(parameters["cd"])
    else { return nil }
    return (Question(name: name, type: type), cd)
  }
}

/// Parses a `type` parameter: a number or a mnemonic in any case; A if the parameter is missing.
///
/// - Returns: nil for any other text, and for 0.
func recordType(_ text: String?) -> RecordType? {
  guard let text else { return .a }
  if let number = UInt16(text) { return number == 0 ? nil : RecordType(number) }
  return RecordType(text: text)
}

/// Parses a Boolean parameter: `1` and `true` are true; no parameter, an empty text, `0` and `false` are false; nil for
/// any other text.
func flag(_ text: String?) -> Bool? {
  switch text {
  case "1", "true": true
  case nil, "", "0", "false": false
  default: nil
  }
}
