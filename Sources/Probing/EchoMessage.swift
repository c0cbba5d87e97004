// EchoMessage.swift -- the octets of ICMP and ICMPv6 echo messages (RFC 792, RFC 4443 section 4).
//
// The kernel writes identifier and checksum, and gives each socket only the replies to its own identifier.

/// An echo request with 16 octets of content: a token that a stranger cannot guess.
struct EchoMessage: Hashable {
  /// The octets of header and content.
  static let length = 24

  var sequence: UInt16
  var token: (high: UInt64, low: UInt64)

  static func == (left: EchoMessage, right: EchoMessage) -> Bool {
    left.sequence == right.sequence && left.token == right.token
  }

  func hash(into hasher: inout Hasher) { hasher.combine(sequence) }

  /// The request.
  func octets(isIPv6: Bool) -> [UInt8] {
    var octets: [UInt8] = [isIPv6 ? 128 : 8, 0, 0, 0, 0, 0, UInt8(sequence >> 8), UInt8(sequence & 0xFF)]
    for word in [token.high, token.low] {
      for shift in stride(from: 56, through: 0, by: -8) {
        octets.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    return octets
  }

  /// Reads a reply; nil for any other message.
  static func reply(_ octets: [UInt8], isIPv6: Bool) -> EchoMessage? {
    guard octets.count == length, octets[0] == (isIPv6 ? 129 : 0), octets[1] == 0 else { return nil }
    func word(_ start: Int) -> UInt64 { octets[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    return EchoMessage(sequence: UInt16(octets[6]) << 8 | UInt16(octets[7]), token: (word(8), word(16)))
  }
}
