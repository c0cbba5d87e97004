// RebindFilterTests.swift -- addresses that public names must not have.

import DNSWire
import Routing
import Testing

@Suite struct `Rebind protection` {
  @Test(arguments: [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.168.0.1", "255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "::ffff:8.8.8.8",
    "::10.0.0.1", "fc00::1", "fd12:3456::1", "fe80::1", "febf::1", "fec0::1", "64:ff9b::10.0.0.1", "64:ff9b:1::1",
    // 6to4, Teredo by its client (inverted) and by its server, SIIT, ISATAP in both forms, IETF, reserved, multicast
    "2002:c0a8:101::1", "2002:7f00:1::", "2001:0:808:808::3f57:fefe", "2001:0:a00:1::f7f7:f7f7", "::ffff:0:8.8.8.8",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:192.168.1.1", "192.0.0.8", "240.0.0.1", "255.255.255.254",
    "224.0.0.251", "ff02::fb",
  ])
  func `private addresses are refused`(text: String) {
    #expect(RebindFilter.isPrivate(IPAddress(text: text)!.octets))
  }

  @Test(arguments: [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.0.1", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "192.0.1.1", "223.255.255.255",
    "2001:db8::1",
    "2606:4700::1111", "fe00::1", "fe7f::1", "fb00::1", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7",
    "2606:4700::5efe:8.8.8.8", "2001:1::1", "2606:4700::1:5efe:0:1", "64:ff9b::8.8.8.8", "0:0:0:0:0:1::1",
    "::fffe:10.0.0.1",
  ])
  func `public addresses are accepted`(text: String) {
    #expect(!RebindFilter.isPrivate(IPAddress(text: text)!.octets))
  }

  private let name = DomainName(text: "www.example")!

  private func record(_ type: RecordType, _ rdata: [UInt8]) -> ResourceRecord {
    ResourceRecord(owner: name, type: type, ttl: 60, rdata: rdata)
  }

  @Test func `one private address among public ones is refused`() {
    let filter = RebindFilter(allowed: [])
    #expect(!filter.refuses([record(.a, [192, 0, 2, 1])], for: name))
    #expect(filter.refuses([record(.a, [192, 0, 2, 1]), record(.a, [192, 168, 1, 1])], for: name))
    #expect(!filter.refuses([record(.txt, [192, 168, 1, 1])], for: name))
    #expect(!filter.refuses([], for: name))
  }

  @Test func `allowed names may have private addresses`() {
    let filter = RebindFilter(allowed: [NamePattern(text: "*.Example")!])
    #expect(!filter.refuses([record(.a, [10, 0, 0, 1])], for: name))
    #expect(filter.refuses([record(.a, [10, 0, 0, 1])], for: DomainName(text: "example")!))
  }

  @Test func `configured prefixes count as private, in hints too`() {
    let filter = RebindFilter(
      allowed: [], prefixes: [IPPrefix(text: "198.51.100.0/24")!, IPPrefix(text: "2001:db8::/32")!])
    #expect(filter.refuses([record(.a, [198, 51, 100, 7])], for: name))
    #expect(!filter.refuses([record(.a, [198, 51, 101, 7])], for: name))
    #expect(filter.refuses([record(.aaaa, IPAddress(text: "2001:db8::1")!.octets)], for: name))
    #expect(filter.refuses([record(.https, [0, 1, 0, 0, 4, 0, 4, 198, 51, 100, 7])], for: name))
  }

  @Test(arguments: ["router.lan", "nas", "db.internal", "printer.local", "x.home.arpa", "192.168.1.1", "a.localhost"])
  func `an alias or service target in a local zone is refused for public names only`(text: String) {
    let filter = RebindFilter(allowed: [])
    let target = DomainName(text: text)!.octets
    for records in [[record(.cname, target)], [record(.https, [0, 1] + target)], [record(.svcb, [0, 0] + target)]] {
      #expect(filter.refuses(records, for: name))
      #expect(!filter.refuses(records, for: DomainName(text: "web.lan")!))
      #expect(!RebindFilter(allowed: [NamePattern(text: "www.example")!]).refuses(records, for: name))
    }
  }

  @Test func `public targets are accepted`() {
    let target = DomainName(text: "cdn.example.net")!.octets
    for record in [record(.cname, target), record(.https, [0, 1] + target), record(.https, [0, 1, 0])] {
      #expect(!RebindFilter(allowed: []).refuses([record], for: name))
    }
  }

  @Test func `private address hints of HTTPS records are refused`() {
    let filter = RebindFilter(allowed: [])
    let alpn: [UInt8] = [0, 1, 0, 3, 2, 104, 50]
    let target: [UInt8] = [0, 1, 3, 119, 119, 119, 1, 97, 0]
    let fine: [UInt8] = target + alpn + [0, 4, 0, 4, 192, 0, 2, 1]
    #expect(!filter.refuses([record(.https, fine)], for: name))
    #expect(filter.refuses([record(.https, target + alpn + [0, 4, 0, 8, 192, 0, 2, 1, 10, 0, 0, 1])], for: name))
    #expect(
      filter.refuses([record(.svcb, [0, 1, 0] + [0, 6, 0, 16] + IPAddress(text: "fd00::1")!.octets)], for: name))
    // Key 5 has no addresses, and truncated RDATA has no more of them.
    #expect(!filter.refuses([record(.https, [0, 1, 0, 0, 5, 0, 4, 10, 0, 0, 1])], for: name))
    #expect(!filter.refuses([record(.https, [0, 1, 0, 0, 4, 0, 4, 10, 0])], for: name))
    #expect(!filter.refuses([record(.https, [])], for: name))
  }
}
