// ReverseName.swift -- the name for the reverse look-up of an address.

import DNSWire

extension IPAddress {
  /// The owner name of the address's PTR record (RFC 1035 section 3.5, RFC 3596 section 2.5).
  public var reverseName: DomainName {
    var octets: [UInt8] = []
    octets.reserveCapacity(isIPv6 ? 74 : 30)
    for octet in self.octets.reversed() {
      if isIPv6 {
        octets += [1, Hexadecimal.digit(octet & 15), 1, Hexadecimal.digit(octet >> 4)]
      } else {
        let digits = String(octet).utf8
        octets.append(UInt8(digits.count))
        octets += digits
      }
    }
    octets += isIPv6 ? DomainName(text: "ip6.arpa")!.octets : DomainName(text: "in-addr.arpa")!.octets
    return DomainName(unchecked: octets)
  }

  /// The IPv6 address that a name is the reverse name of; nil for another name.
  public init?(ipv6ReverseName name: DomainName) {
    let zone = DomainName(text: "ip6.arpa")!.octets
    guard name.octets.count == 64 + zone.count, name.lowercased.octets.suffix(zone.count) == zone[...] else {
      return nil
    }
    var octets = [UInt8](repeating: 0, count: 16)
    for place in 0..<32 {
      guard name.octets[2 * place] == 1, let digit = Hexadecimal.value(name.octets[2 * place + 1]) else { return nil }
      octets[15 - place / 2] |= place % 2 == 0 ? digit : digit << 4
    }
    self.init(octets: octets)
  }

  /// Whether this is `0.0.0.0` or `::`, which no host has.
  var isUnspecified: Bool { octets.allSatisfy { $0 == 0 } }
}
