// RDATAFormTests.swift -- the text of rarer types: RFC examples, a comparison with dnspython, and invalid texts.

import DNSWire
import TestSupport
import Testing

@Suite struct `The text of rarer types` {
  /// Text that dnspython reads too, mostly from the RFCs.
  static let shared: [(RecordType, String)] = [
    (.rrsig, "A 5 3 86400 20030322173103 20030220173103 2642 example.com. oJB1W6WNGv+ldvQ3WDG0MQkg5IEhjRip8WTr"),
    (.rrsig, "A 5 3 86400 20030322173103 20030220173103 2642 example.com. oJB1 W6WN Gv+l dvQ3"),
    (.rrsig, "TYPE1234 ECDSAP256SHA256 1 300 1704067200 1701388800 1 . AAAA"),
    (.rrsig, "DNSKEY 13 0 172800 20240229235959 21060207062815 20326 . 4Zw="),
    (.nsec, "host.example.com. A MX RRSIG NSEC TYPE1234"), (.nsec, #"\000.example. NS SOA CAA"#),
    (RecordType(50), "1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr MX DNSKEY NS SOA NSEC3PARAM RRSIG"),
    (RecordType(50), "1 0 0 - 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR"), (RecordType(51), "1 0 12 aabbccdd"),
    (RecordType(51), "1 0 0 -"), (RecordType(42), "1:192.168.32.0/21 !1:192.168.38.0/28 2:ff00:0:0:0:0:0:0:0/8"),
    (RecordType(42), ""), (RecordType(258), #""app-name:WOLFGANG|app-class:OAM""#),
    (RecordType(37), "PGP 3 RSASHA256 AAECAw=="), (RecordType(37), "65534 3 8 AAECAw=="),
    (RecordType(62), "66 3 A NS AAAA"), (RecordType(49), "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA="),
    (RecordType(32_769), "60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118"),
    (RecordType(108), "00-00-5e-00-53-2a"), (RecordType(109), "00-00-5e-ef-10-00-00-2a"),
    (RecordType(27), "-32.6882 116.8652 10.0"),
    (RecordType(55), "2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc rvs.example.com."),
    (RecordType(55), "2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc"), (RecordType(105), "10 10.1.2.0"),
    (RecordType(106), "10 2001:0DB8:1140:1000"), (RecordType(107), "10 l64-subnet1.example.com."),
    (RecordType(104), "10 0014:4fff:ff20:ee64"), (RecordType(29), "42 21 54 N 71 06 18 W -24m 30m"),
    (RecordType(29), "52 14 05.000 N 00 08 50.000 E 10m"),
    (RecordType(29), "32 7 19.000 S 116 2 25.123 E 10.00m 1.00m 10000.00m 10.00m"),
    (RecordType(29), "90 N 180 W 0.05m 0m 0m 0m"), (RecordType(29), "42 21 28.764 N 71 00 51.617 W -44m 2000m"),
    (RecordType(61), "AAECAw=="), (RecordType(99), #""v=spf1" "-all""#),
    (RecordType(256), #"10 1 "ftp://ftp1.example.com/public""#), (RecordType(19), "311061700956"),
    (RecordType(20), #""150862028003217" "004""#), (RecordType(20), "150862028003217"),
    (RecordType(22), "0x47.0005.80.005a00.0000.0001.e133.ffffff000161.00"), (RecordType(23), "foo."),
    (RecordType(63), "2018031500 1 240 FEBE3D4CE2EC2FFA4BA99D46CD69D6D29711E55217057BEE"),
    (RecordType(45), "10 1 2 192.0.2.38 AQNRU3mG7TVTO2Bk"), (RecordType(45), "10 3 2 mygateway.example.com. AQNRU3mG"),
    (RecordType(45), "10 2 2 2001:db8:0:8002::2000:1 AQNRU3mG"), (RecordType(45), "10 0 2 . AQNRU3mG"),
    (RecordType(260), "128 1 3 amtrelays.example.com."), (RecordType(260), "10 0 2 2001:db8::15"),
    (RecordType(260), "0 1 0 ."), (RecordType(262), #""EXAMPLE" "01234567890abcdef""#),
    (RecordType(261), #""qnamemin" "exterr=15,16,17""#),
  ]

  @Test func `text of rarer types survives our writer and dnspython's reader`() throws {
    let vectors = `The text of rarer types`.shared
    let theirs = try IndependentParser.rdata(of: vectors.map { ($0.0.rawValue, $0.1) })
    let parsed = vectors.map { RDATA.parse(text: $0.1, type: $0.0) }
    for (vector, (rdata, their)) in zip(vectors, zip(parsed, theirs)) {
      #expect(rdata.map(IndependentParser.hexadecimal) == their, "\(vector)")
    }
    let written = zip(vectors, parsed).map { (type: $0.0.0.rawValue, text: RDATA.text($0.1 ?? [], type: $0.0.0)) }
    #expect(try IndependentParser.rdata(of: written) == theirs)
    for text in written where !text.text.isEmpty { #expect(!text.text.hasPrefix("\\#"), "\(text)") }
    let theirTexts = try IndependentParser.texts(of: zip(vectors, parsed).map { ($0.0.rawValue, $1 ?? []) })
    for (vector, (rdata, text)) in zip(vectors, zip(parsed, theirTexts)) {
      #expect(RDATA.parse(text: text, type: vector.0) == rdata, "\(vector.0) \(text)")
    }
  }

  /// Text of types that dnspython does not know.
  @Test(arguments: [
    (RecordType(58), "h0.example. h2.example.", "026830 076578616D706C6500 026832 076578616D706C6500"),
    (RecordType(32_768), "26 8 2 AABB", "001A 08 02 AABB"), (RecordType(56), #""zs""#, "027A73"),
    (RecordType(57), "0 255 1 AAEC", "0000 FF 01 0001 02"),
    (RecordType(25), "49152 3 0", "C000 03 00"), (RecordType(25), "256 3 5 AAEC", "0100 03 05 0001 02"),
    (RecordType(31), "AB CD", "ABCD"),
    (RecordType(66), "CDS 1 5359 rr.example.", "003B 01 14EF 027272 076578616D706C6500"),
    (RecordType(67), "AAEC", "0001 02"),
    (
      RecordType(24), "A 5 3 300 19700101000001 20380119031408 1 . AAEC",
      "0001 05 03 0000012C 00000001 80000000 0001 00 000102"
    ),
  ])
  func `text of types that dnspython does not know is read`(type: RecordType, text: String, expected: String) {
    let rdata = RDATA.parse(text: text, type: type)
    #expect(rdata == octets(expected))
    #expect(RDATA.parse(text: RDATA.text(rdata ?? [], type: type), type: type) == rdata)
  }

  @Test(arguments: [
    ("A 8 2 3600 20260230000000 20250101000000 1 a. AAAA", RecordType.rrsig),
    ("A 8 2 3600 20260101240000 20250101000000 1 a. AAAA", .rrsig),
    ("A 8 2 3600 2026010100000 20250101000000 1 a. AAAA", .rrsig), ("A 8 2 3600 1 1 1 a.", .rrsig),
    ("NOSUCH 8 2 3600 1 1 1 a. AAAA", .rrsig), ("a. NOSUCH", .nsec), ("", .nsec),
    ("1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojw A", RecordType(50)), ("1 0 0 - - A", RecordType(50)),
    ("1 0 0 abc", RecordType(51)), ("3:1.2.3.4/8", RecordType(42)), ("1:1.2.3.4/33", RecordType(42)),
    ("2:1.2.3.4/8", RecordType(42)), ("1:1.2.3.4", RecordType(42)), ("91 N 0 E 0m", RecordType(29)),
    ("42 60 N 0 E 0m", RecordType(29)), ("42 21 54 71 06 18 W 1m", RecordType(29)), ("1 N 1 E", RecordType(29)),
    ("1 N 1 E 42849673m", RecordType(29)), ("1 N 1 E 0m 100000000m", RecordType(29)),
    ("1 N 1 E 0m 1m 1m 1m 1m", RecordType(29)), ("00-00-5e-00-53", RecordType(108)),
    ("0-0-5e-00-53-2a", RecordType(108)),
    ("10 0014:4fff:ff20", RecordType(104)), ("10 14:4fff:ff20:ee64", RecordType(104)), ("2 20 !", RecordType(55)),
    ("10 4 2 . AAAA", RecordType(45)), ("10 0 2 a. AAAA", RecordType(45)), ("10 2 3 a.", RecordType(260)),
    ("47.0005", RecordType(22)), ("0x", RecordType(22)), ("1 1 ftp://a b", RecordType(256)),
  ])
  func `text of a rarer type without its type's form is refused`(text: String, type: RecordType) {
    #expect(RDATA.parse(text: text, type: type) == nil)
  }

  @Test func `text of random RDATA of every type is read back as the same octets`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<20_000 {
      let type = `The text of rarer types`.shared.randomElement(using: &random)!.0
      let octets = random.octets(Int.random(in: 0...24, using: &random)).map { random.oneIn(3) ? $0 : $0 & 3 }
      let text = RDATA.text(octets, type: type)
      if RDATA.isValid(octets, type: type) { #expect(RDATA.parse(text: text, type: type) == octets, "\(type) \(text)") }
    }
  }

  @Test func `a text form does not restrict the RDATA in messages`() throws {
    // LOC of another version and a truncated APL item are opaque.
    for (type, rdata) in [(29, "FF00"), (42, "0001"), (50, "01"), (55, "FF")] {
      let record = "C00C 00\(String(type, radix: 16)) 0001 00000001 000\(rdata.count / 2) \(rdata)"
      let message = try Message.parse(response(answers: 1, record))
      #expect(message.answers.map(\.rdata) == [octets(rdata)])
    }
  }
}
