// EDNSTests.swift -- OPT records, client subnets and extended errors.

import DNSWire
import Testing

@Suite struct EDNSTests {
  @Test func `an OPT record is read into its fields`() throws {
    let message = try Message.parse(
      response(additionals: 1, "00 0029 04D0 01 00 8000 0010 000F 0006 0017 74696D65 0003 0002 4142"))
    let edns = try #require(message.edns)
    #expect(edns.udpPayloadSize == 1232)
    #expect(edns.version == 0)
    #expect(edns.dnssecOK)
    #expect(message.responseCode == .badVers)
    #expect(edns.extendedErrors == [ExtendedErrorReport(code: .networkError, text: "time")])
    #expect(edns.option(EDNS.OptionCode(rawValue: 3)) == [0x41, 0x42])
    #expect(message.additionals.isEmpty)
  }

  @Test(arguments: [
    ("the second of two", 0, 2, "00 0029 04D0 00000000 0000 00 0029 0200 01000000 0000", UInt16(1232)),
    ("one that is not at the root", 0, 1, "C00C 0029 04D0 00000000 0000", nil),
    ("one in the answer section", 1, 0, "00 0029 04D0 00000000 0000", nil),
    ("an option longer than the record", 0, 1, "00 0029 04D0 00000000 0005 000C 0002 00", 1232),
    ("an option without a length", 0, 1, "00 0029 04D0 00000000 0003 000C 00", 1232),
    ("a record that the message cuts", 0, 1, "00 0029 04D0 00000000 0005 000C", nil),
  ])
  func `an OPT record that is no use is skipped`(
    what: String, answers: UInt8, additionals: UInt8, hexadecimal: String, size: UInt16?
  ) throws {
    let message = try Message.parse(response(answers: answers, additionals: additionals, hexadecimal))
    #expect(message.edns?.udpPayloadSize == size, "\(what)")
    #expect(message.edns?.options.isEmpty ?? true && message.responseCode == .noError)
  }

  @Test func `an OPT record whose owner is a pointer to the root is skipped`() throws {
    let query = try Message.query(Question(name: DomainName(text: "a.example")!, type: .a), id: 1, edns: EDNS())
      .compose()
    #expect(try Message.parse(query).edns != nil)
    let opt = query.count - 11
    // Octet 5 of the header is zero.
    let pointing = query[..<opt] + [0xC0, 4] + query[(opt + 1)...]
    #expect(try Message.parse(Array(pointing)).edns == nil)
  }

  @Test func `an extended error may end with a NUL, and invalid UTF-8 in it is repaired`() {
    #expect(ExtendedErrorReport(octets: [0, 22, 0x61, 0])?.text == "a")
    #expect(ExtendedErrorReport(octets: [0, 22])?.text == "")
    #expect(ExtendedErrorReport(octets: [0, 22, 0xFF])?.text == "\u{FFFD}")
    #expect(ExtendedErrorReport(octets: [0]) == nil)
    #expect(ExtendedErrorReport(code: .staleAnswer, text: "é").option.data == [0, 3, 0xC3, 0xA9])
  }

  /// RFC 7871 section 6: FAMILY, SOURCE PREFIX-LENGTH, SCOPE PREFIX-LENGTH, and the octets that the prefix needs.
  @Test(arguments: [
    ("0001 18 00 C00002", "192.0.2.0/24", 0), ("0001 18 10 C00002", "192.0.2.0/24", 16),
    ("0002 38 00 20010DB8000000", "2001:db8::/56", 0), ("0001 00 00", "0.0.0.0/0", 0),
    ("0001 13 20 C00000", "192.0.0.0/19", 32),
  ])
  func `a client subnet is parsed and composed`(hexadecimal: String, prefix: String, scope: UInt8) throws {
    let subnet = try #require(ClientSubnet(octets: octets(hexadecimal)))
    #expect(subnet.prefix.description == prefix)
    #expect(subnet.scope == scope)
    #expect(subnet.option.data == octets(hexadecimal))
    #expect(EDNS(options: [subnet.option]).clientSubnet == subnet)
  }

  @Test(arguments: [
    ("too few octets", "0001 18 00 C000"), ("too many octets", "0001 18 00 C0000200"),
    ("bits behind the prefix", "0001 13 00 C0003F"), ("an unknown family", "0003 08 00 C0"),
    ("a prefix longer than IPv4", "0001 21 00 C000020100"), ("a scope longer than IPv4", "0001 18 21 C00002"),
    ("a prefix longer than IPv6", "0002 81 00" + String(repeating: "00", count: 17)), ("no fields", "0001 18"),
  ])
  func `a malformed client subnet is ignored`(what: String, hexadecimal: String) {
    #expect(ClientSubnet(octets: octets(hexadecimal)) == nil, "\(what)")
  }
}
