// RebindFilter.swift -- refuses answers that point public names at private addresses.
//
// A page of a stranger that makes its own name mean 192.168.1.1 reaches into the network of whoever looks at it. Asked
// on the cold path only, about answers of providers; LocalDNS, rules and the hosts file may say what they like.

import DNSWire

/// The check of `[names] rebind_protection`.
public struct RebindFilter: Sendable {
  private let allowed: [NamePattern]

  /// A filter that lets the names of these patterns have private addresses.
  public init(allowed: [NamePattern]) { self.allowed = allowed }

  /// Whether an answer to a question about `name` holds a private address, in an A or AAAA record or in the address
  /// hints of an SVCB or HTTPS record, which browsers use just as well.
  ///
  /// - Complexity: O(octets of the records)
  public func refuses(_ records: [ResourceRecord], for name: DomainName) -> Bool {
    guard records.contains(where: RebindFilter.hasPrivateAddress) else { return false }
    return !allowed.contains { $0.matches(name) }
  }

  /// Whether an address is one that the public Internet does not route to: this network, private, shared (RFC 6598),
  /// loopback, link-local with the clouds' metadata services in it, and what embeds such an address in IPv6.
  /// False for anything that has not 4 or 16 octets.
  @inlinable
  public static func isPrivate(_ address: some RandomAccessCollection<UInt8>) -> Bool {
    let start = address.startIndex
    func octet(_ offset: Int) -> UInt8 { address[address.index(start, offsetBy: offset)] }
    if address.count == 4 { return isPrivateIPv4(octet(0), octet(1), octet(2), octet(3)) }
    guard address.count == 16 else { return false }
    let first = octet(0)
    let second = octet(1)
    if first & 0xFE == 0xFC { return true }  // fc00::/7, unique local
    if first == 0xFE, second & 0x80 == 0x80 { return true }  // fe80::/10, and fec0::/10, which was site-local
    if first == 0, second == 0x64, octet(2) == 0xFF, octet(3) == 0x9B {
      if octet(4) == 0, octet(5) == 1 { return true }  // 64:ff9b:1::/48, RFC 8215
      guard (4..<12).allSatisfy({ octet($0) == 0 }) else { return false }
      return isPrivateIPv4(octet(12), octet(13), octet(14), octet(15))  // 64:ff9b::/96, RFC 6052
    }
    guard (0..<10).allSatisfy({ octet($0) == 0 }) else { return false }
    // ::/96 with loopback and the unspecified address in it, and ::ffff:0:0/96: neither has a place in the DNS.
    return octet(10) == octet(11) && (octet(10) == 0 || octet(10) == 0xFF)
  }

  @inlinable
  static func isPrivateIPv4(_ first: UInt8, _ second: UInt8, _ third: UInt8, _ fourth: UInt8) -> Bool {
    switch first {
    case 0, 10, 127: true
    case 100: second & 0xC0 == 64
    case 169: second == 254
    case 172: second & 0xF0 == 16
    case 192: second == 168
    case 255: second == 255 && third == 255 && fourth == 255
    default: false
    }
  }

  private static func hasPrivateAddress(_ record: ResourceRecord) -> Bool {
    switch record.type {
    case .a, .aaaa: isPrivate(record.rdata)
    case .svcb, .https: hasPrivateHint(record.rdata[...])
    default: false
    }
  }

  /// Looks through the SvcParams (RFC 9460 section 2.2); RDATA that is cut off has no more hints.
  private static func hasPrivateHint(_ rdata: ArraySlice<UInt8>) -> Bool {
    var rest = rdata.dropFirst(2)
    while let length = rest.first, length != 0 { rest = rest.dropFirst(Int(length) + 1) }
    rest = rest.dropFirst()
    while rest.count >= 4 {
      let header = Array(rest.prefix(4))
      let key = Int(header[0]) << 8 | Int(header[1])
      let value = rest.dropFirst(4).prefix(Int(header[2]) << 8 | Int(header[3]))
      rest = rest.dropFirst(4 + value.count)
      guard key == 4 || key == 6 else { continue }
      let size = key == 4 ? 4 : 16
      for start in stride(from: value.startIndex, to: value.endIndex, by: size)
      where isPrivate(value[start..<min(start + size, value.endIndex)]) {
        return true
      }
    }
    return false
  }
}
