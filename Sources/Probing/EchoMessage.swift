// EchoMessage.swift -- the octets of ICMP and ICMPv6 echo messages (RFC 792, RFC 4443 section 4).
//
// The kernel sets the identifier and the checksum, and delivers to each socket only replies with its own identifier.

/// An echo request. Its 16 octets of data are a random token, so that an off-path attacker cannot forge the reply.
struct EchoMessage: Hashable {
  /// The number of octets of header and data.
  static let length = 24

  var sequence: UInt16
  var token: (high: UInt64, low: UInt64)

  static func == (left: EchoMessage, right: EchoMessage) -> Bool {
    left.sequence == right.sequence && left.token == right.token
  }

  func hash(into hasher: inout Hasher) { hasher.combine(sequence) }

  /// Composes the request.
  func octets(isIPv6: Bool) -> [UInt8] {
    var octets: [UInt8] = [isIPv6 ? 128 : 8, 0, 0, 0, 0, 0, UInt8(sequence >> 8), UInt8(sequence & 0xFF)]
    for word in [token.high, token.low] {
      for shift in stride(from: 56, through: 0, by: -8) {
        octets.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    return octets
  }

  /// Parses an echo reply; nil for any other message.
  static func reply(_ octets: [UInt8], isIPv6: Bool) -> EchoMessage? {
    guard octets.count == length, octets[0] == (isIPv6 ? 129 : 0), octets[1] == 0 else { return nil }
    func word(_ start: Int) -> UInt64 { octets[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    return EchoMessage(sequence: UInt16(octets[6]) << 8 | UInt16(octets[7]), token: (word(8), word(16)))
  }
}
