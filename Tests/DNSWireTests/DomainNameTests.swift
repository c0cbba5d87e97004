// DomainNameTests.swift -- names between octets and text, and how they compare.

import DNSWire
import Testing

@Suite struct DomainNameTests {
  @Test(arguments: UInt8.min...UInt8.max)
  func `every octet of a label survives its text`(octet: UInt8) {
    let original = DomainName(octets: [3, 97, octet, 98, 0])!
    #expect(DomainName(text: original.text)?.octets == original.octets)
    #expect(original.text.utf8.allSatisfy { (0x21...0x7E).contains($0) })
  }

  @Test(arguments: [
    ("example.com", "example.com."), ("example.com.", "example.com."), (".", "."), (#"a\.b.c."#, #"a\.b.c."#),
    (#"\097\032."#, #"a\032."#), (#"\"\\."#, #"\"\\."#),
  ])
  func `escapes in the text of a name are decoded`(text: String, expected: String) {
    #expect(DomainName(text: text)?.text == expected)
  }

  @Test(arguments: [
    "", "..", ".a", "a..b", #"a\"#, #"a\25"#, #"a\256."#, #"a\2x5."#, String(repeating: "a", count: 64),
    String(repeating: "a.", count: 128),
  ])
  func `a text that is not a name is refused`(text: String) {
    #expect(DomainName(text: text) == nil)
  }

  @Test(arguments: [
    [], [1], [1, 97], [0, 0], [64] + [UInt8](repeating: 97, count: 64) + [0], [1, 97, 0, 0], [0xC0, 0],
  ])
  func `octets that are not a name are refused`(octets: [UInt8]) {
    #expect(DomainName(octets: octets) == nil)
  }

  @Test func `names compare and hash without regard to ASCII case`() {
    #expect(name("WWW.Example.") == name("www.exAMPLE."))
    #expect(name("WWW.Example.").hashValue == name("www.exAMPLE.").hashValue)
    // 0xC9 and 0xE9 are one letter in Latin-1, and two here; so are the neighbours of A…Z and a…z.
    #expect(name(#"\201."#) != name(#"\233."#))
    #expect(name(#"\@."#) != name("`."))
    #expect(name("[.") != name("{."))
  }

  @Test func `a name is below its ancestors and no other name`() {
    #expect(name("a.example.").isAtOrBelow(name("EXAMPLE.")))
    #expect(name("example.").isAtOrBelow(.root))
    #expect(!name("aexample.").isAtOrBelow(name("example.")))
    #expect(!name("example.").isAtOrBelow(name("a.example.")))
    #expect(name("a.example.").parent == name("example."))
    #expect(DomainName.root.parent == nil)
  }

  @Test func `an address with trailing text, even a NUL, is refused`() {
    #expect(IPAddress(text: "192.0.2.1")?.octets == [192, 0, 2, 1])
    for text in ["192.0.2.1\0", "192.0.2.1\0.5", "192.0.2.1 ", "192.0.2", "::1%1", "[::1]", "", "2001:db8::1\0"] {
      #expect(IPAddress(text: text) == nil)
    }
  }

  @Test func `a type is a mnemonic, a generic name or a number`() {
    #expect(RecordType(text: "aaaa") == .aaaa)
    #expect(RecordType(text: "TYPE65534") == RecordType(65_534))
    #expect(RecordType(text: "28") == .aaaa)
    #expect(RecordType(text: "nsec3param") == RecordType(51) && RecordType(text: "Nsap-Ptr") == RecordType(23))
    #expect(
      [RecordType(44), RecordType(32_769), RecordType(65_534)].map(\.description) == ["SSHFP", "DLV", "TYPE65534"])
    for text in ["", "TYPE", "TYPE+5", "+5", "-5", "TYPE65536", "AAAA ", "AAAAA"] {
      #expect(RecordType(text: text) == nil)
    }
  }
}
