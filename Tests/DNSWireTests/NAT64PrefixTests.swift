// NAT64PrefixTests.swift -- IPv4 addresses inside IPv6 addresses.

import DNSWire
import Testing

@Suite struct `A NAT64 prefix` {
  /// RFC 6052 section 2.4: 192.0.2.33 under prefixes of each length.
  private static let vectors = [
    ("2001:db8::/32", "2001:db8:c000:221::"), ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
    ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"), ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
    ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100:0"), ("2001:db8:122:344::/96", "2001:db8:122:344::c000:221"),
    ("64:ff9b::/96", "64:ff9b::c000:221"),
  ]

  private static func prefix(_ text: String) -> NAT64Prefix? { IPPrefix(text: text).flatMap { NAT64Prefix($0) } }

  @Test(arguments: vectors) func `puts an IPv4 address where RFC 6052 has it`(text: String, expected: String) throws {
    let prefix = try #require(Self.prefix(text))
    let ipv4 = IPAddress(text: "192.0.2.33")!
    let address = prefix.address(of: ipv4)
    #expect(address == IPAddress(text: expected))
    #expect(prefix.ipv4Address(in: address) == ipv4)
    #expect(prefix.ipv4Address(in: IPAddress(text: "2001:db9::1")!) == nil)
  }

  @Test(arguments: vectors) func `is found in the address of ipv4only.arpa`(text: String, _: String) throws {
    let prefix = try #require(Self.prefix(text))
    for known in ["192.0.0.170", "192.0.0.171"] {
      #expect(NAT64Prefix(of: prefix.address(of: IPAddress(text: known)!)) == prefix)
    }
    #expect(NAT64Prefix(of: prefix.address(of: IPAddress(text: "192.0.0.172")!)) == nil)
  }

  @Test(arguments: ["192.0.2.0/24", "2001:db8::/33", "2001:db8::/128", "2001:db8::/0", "2001:db8:0:0:100::/96"])
  func `has one of six lengths and no bit in octet 8`(text: String) { #expect(Self.prefix(text) == nil) }

  @Test func `is not guessed from an address that several prefixes fit`() {
    let address = IPAddress(octets: [192, 0, 0, 170, 192, 0, 0, 170, 0, 192, 0, 0, 170, 0, 0, 0])!
    #expect(NAT64Prefix(of: address) == nil)
    #expect(NAT64Prefix(of: IPAddress(text: "192.0.0.170")!) == nil)
  }
}
