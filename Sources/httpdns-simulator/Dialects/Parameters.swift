// Parameters.swift -- the decoded parameters of a request's query.

import DNSWire

/// Names and values in the order in which they were sent.
struct Parameters: Sendable {
  private(set) var pairs: [(name: String, value: [UInt8])] = []

  /// Splits at `&` and at the first `=`, and decodes `%XX`. A malformed escape and `+` stay as they are.
  init(query: String?) {
    guard let query, !query.isEmpty else { return }
    for part in query.utf8.split(separator: UInt8(ascii: "&")) {
      let end = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
      let value = end < part.endIndex ? part[part.index(after: end)...] : part[end...]
      pairs.append((String(decoding: Parameters.decoded(part[..<end]), as: UTF8.self), Parameters.decoded(value)))
    }
  }

  /// Uses pairs that need no decoding.
  init(pairs: [(name: String, value: [UInt8])]) { self.pairs = pairs }

  /// The value's octets; the first one counts if a name is repeated.
  func octets(_ name: String) -> [UInt8]? { pairs.first { $0.name == name }?.value }

  /// The value as text.
  subscript(name: String) -> String? { octets(name).map { String(decoding: $0, as: UTF8.self) } }

  private static func decoded(_ text: Substring.UTF8View) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var rest = text
    while let octet = rest.popFirst() {
      if octet == UInt8(ascii: "%"), let decoded = Hexadecimal.decode(rest.prefix(2)), decoded.count == 1 {
        result += decoded
        rest = rest.dropFirst(2)
      } else {
        result.append(octet)
      }
    }
    return result
  }
}
