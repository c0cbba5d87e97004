// JSONBody.swift -- reads the JSON in a body; what the parser refuses is a failure of the reply.

import HTTPMessage
import JSON

/// Parses a body and passes its root to `read`. Values are valid until `read` returns.
func withJSON<Value>(
  _ body: [UInt8], limit: Int = JSONLimit.octets, _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
) throws(HTTPDNSFailure) -> Value {
  try withJSON(body, limit: limit, orThrow: HTTPDNSFailure.init(_:), read)
}

extension HTTPResponse {
  /// Passes the root of an answer in JSON, which has status 200, to `read`.
  func withAnswer<Value>(_ read: (JSONValue) throws(HTTPDNSFailure) -> Value) throws(HTTPDNSFailure) -> Value {
    try requireStatus(in: 200...200)
    try requireBody(.undocumentedJSON, limit: JSONLimit.octets)
    return try withJSON(body, read)
  }

  /// Whether the status refuses the request, so that the body may say why. Too many requests and faults of the server are what
  /// their status says.
  var mayExplainRefusal: Bool { status != 429 && (400...499).contains(status) }

  /// What `read` finds in the JSON of a body of any status; nil if there is none.
  func inJSON<Value>(_ read: (JSONValue) -> Value?) -> Value? {
    guard body.count <= JSONLimit.octets else { return nil }
    do throws(HTTPDNSFailure) { return try withJSON(body) { read($0) } } catch { return nil }
  }

  /// A text of the body in which the service names a refusal; nil unless it is plain and short enough for a line of the log.
  func word(_ member: StaticString) -> String? {
    guard let text = inJSON({ $0[member]?.text }), (1...64).contains(text.utf8.count),
      text.utf8.allSatisfy({ 0x20...0x7E ~= $0 && $0 != UInt8(ascii: "\"") })
    else { return nil }
    return text
  }
}

extension HTTPDNSFailure {
  init(_ refusal: JSONRefusal) {
    switch refusal {
    case .syntax: self = .unreadable(.syntax)
    case .tooLarge: self = .unreadable(.tooLarge)
    case .nesting: self = .unreadable(.nesting)
    }
  }
}

extension JSONValue {
  /// The octets of the address in a string; nil for the other family and for any other value.
  func address(isIPv6: Bool) -> [UInt8]? {
    octets.flatMap { addressOctets($0.baseAddress!.assumingMemoryBound(to: CChar.self), isIPv6: isIPv6) }
  }
}
