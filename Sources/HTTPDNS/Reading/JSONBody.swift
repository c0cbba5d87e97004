// JSONBody.swift -- reads the JSON in a body; what the parser refuses is a failure of the reply.

import JSON

/// Parses a body and passes its root to `read`. Values are valid until `read` returns.
func withJSON<Value>(
  _ body: [UInt8], limit: Int = JSONLimit.octets, _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
) throws(HTTPDNSFailure) -> Value {
  try withJSON(body, limit: limit, orThrow: HTTPDNSFailure.init(_:), read)
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
