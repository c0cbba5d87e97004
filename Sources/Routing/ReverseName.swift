// ReverseName.swift -- the name for the reverse look-up of an address.

import DNSWire

extension IPAddress {
  /// The owner name of the address's PTR record (RFC 1035 section 3.5, RFC 3596 section 2.5).
  public var reverseName: DomainName {
    var octets: [UInt8] = []
    octets.reserveCapacity(isIPv6 ? 74 : 30)
    for octet in self.octets.reversed() {
      if isIPv6 {
        octets += [1, hexadecimalDigit(octet & 15), 1, hexadecimalDigit(octet >> 4)]
      } else {
        let digits = String(octet).utf8
        octets.append(UInt8(digits.count))
        octets += digits
      }
    }
    octets += isIPv6 ? DomainName(text: "ip6.arpa")!.octets : DomainName(text: "in-addr.arpa")!.octets
    return DomainName(unchecked: octets)
  }

  /// Whether this is `0.0.0.0` or `::`, which no host has.
  var isUnspecified: Bool { octets.allSatisfy { $0 == 0 } }
}

private func hexadecimalDigit(_ value: UInt8) -> UInt8 { value < 10 ? 48 + value : 87 + value }
