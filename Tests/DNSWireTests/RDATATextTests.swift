// RDATATextTests.swift -- RDATA text as HTTPDNS services and as we write it.

import DNSWire
import Testing

@Suite struct RDATATextTests {
  /// Text, type, RDATA. Google's and Cloudflare's documentation, captured answers and computed values.
  static let vectors: [(String, RecordType, String)] = [
    ("192.0.2.1", .a, "C0000201"),
    ("2001:db8::1", .aaaa, "20010DB8000000000000000000000001"),
    ("::ffff:192.0.2.1", .aaaa, "00000000000000000000FFFFC0000201"),
    ("a.example.", .cname, "0161 076578616D706C65 00"),
    // Some services omit the final dot.
    ("a.example", .ns, "0161 076578616D706C65 00"),
    (#"a\.b\032c.example."#, .ptr, "05612E622063 076578616D706C65 00"),
    (".", .dname, "00"),
    ("10 mx.a.", .mx, "000A 026D78 0161 00"),
    // RFC 7505: no mail.
    ("0 .", .mx, "0000 00"),
    ("1 1 443 192.0.2.53.ipv4.", .srv, "0001 0001 01BB 03313932 0130 0132 023533 0469707634 00"),
    ("ns.a. h.a. 2026 7200 3600 1209600 300", .soa, "026E73016100 0168016100 000007EA00001C2000000E10001275000000012C"),
    (#""hello" "world""#, .txt, "0568656C6C6F 05776F726C64"),
    (#""hello world""#, .txt, "0B68656C6C6F20776F726C64"),
    ("v=spf1 -all", .txt, "0B763D73706631202D616C6C"),
    (#""""#, .txt, "00"),
    (#""a\"b\\c\009;""#, .txt, "076122625C63093B"),
    (#"k="v""#, .txt, "056B3D227622"),
    (#"v=DKIM1; p=\"x\"\065"#, .txt, "0F763D444B494D313B20703D2278 22 41"),
    (#"0 issue "ca.example.net""#, .caa, "0005697373756563612E6578616D706C652E6E6574"),
    ("0 issue ca.example.net", .caa, "0005697373756563612E6578616D706C652E6E6574"),
    (#"128 issue ";""#, .caa, "8005697373 75 65 3B"),
    (#"0 iodef """#, .caa, "0005696F646566"),
    (
      ##"\# 21 00 05 69 73 73 75 65 63 61 2e 65 78 61 6d 70 6c 65 2e 6e 65 74"##, .caa,
      "0005697373756563612E6578616D706C652E6E6574"
    ),
    ("60485 8 2 AABB CCDD", .ds, "EC45 08 02 AABBCCDD"),
    ("60485 RSASHA256 SHA-256 aabbccdd", .ds, "EC45 08 02 AABBCCDD"),
    ("60485 ecdsap256sha256 SHA384 aabbccdd", .ds, "EC45 0D 04 AABBCCDD"),
    ("1 RSASHA1-NSEC3-SHA1 SHA-1 00", .ds, "0001 07 01 00"),
    (
      #"100 50 "s" "http+I2L+I2C" "" _http._tcp.a."#, .naptr,
      "0064 0032 0173 0C687474702B4932 4C2B493243 00 055F68747470 045F746370 0161 00"
    ),
    ("RFC8482 \"\"", .hinfo, "0752464338343832 00"),
    (##"\# 0"##, RecordType(65_534), ""),
    (##"\# 3 ab cdef"##, RecordType(65_534), "ABCDEF"),
    (##"  \# 4 c0 00 02 01  "##, .a, "C0000201"),
    (##"\#  5 0461626364"##, .txt, "0461626364"),
  ]

  @Test(arguments: vectors)
  func `presentation text is parsed into RDATA`(text: String, type: RecordType, expected: String) {
    #expect(RDATA.parse(text: text, type: type) == octets(expected))
  }

  /// RDATA, type, our text.
  @Test(arguments: [
    ("C0000201", RecordType.a, "192.0.2.1"), ("20010DB8000000000000000000000001", .aaaa, "2001:db8::1"),
    ("000A 026D78 0161 00", .mx, "10 mx.a."), ("0568656C6C6F 05776F726C64", .txt, #""hello" "world""#),
    ("0422 5C 09 3B", .txt, #""\"\\\009;""#), ("8005697373756563612E", .caa, #"128 issue "ca.""#),
    ("EC45 08 02 AABBCCDD", .ds, "60485 8 2 aabbccdd"), ("ABCDEF", RecordType(65_534), ##"\# 3 abcdef"##),
    ("", RecordType(65_534), ##"\# 0"##), ("0752464338343832 00", .hinfo, #""RFC8482" """#),
    ("C00002", .a, ##"\# 3 c00002"##), ("0001 08 02", .ds, ##"\# 4 00010802"##),
    ("0100 03 0D AABB", .dnskey, "256 3 13 qrs="), ("0164", .cname, ##"\# 2 0164"##),
    ("026E73016100 0168016100 000007EA00001C2000000E10001275000000012C", .soa, "ns.a. h.a. 2026 7200 3600 1209600 300"),
  ])
  func `RDATA is written as presentation text`(hexadecimal: String, type: RecordType, expected: String) {
    #expect(RDATA.text(octets(hexadecimal), type: type) == expected)
  }

  @Test(arguments: [
    ("192.0.2", RecordType.a), ("2001:db8::1", .a), ("192.0.2.1", .aaaa), ("192.0.2.1 192.0.2.2", .a), ("", .a),
    ("192.0.2.1\n", .a), ("192.0.2.1\0", .a), ("a b.", .cname), ("", .cname), ("a..b.", .cname), ("@", .cname),
    (#""a.""#, .cname), ("bücher.example.", .cname), ("a;b.", .cname), (#"a\"#, .cname),
    ("mx.a.", .mx), ("10", .mx), ("65536 mx.a.", .mx), ("-1 mx.a.", .mx), ("+1 mx.a.", .mx), ("10 mx.a. x", .mx),
    ("1 1 443", .srv), ("ns.a. h.a. 1 2 3 4", .soa), ("ns.a. h.a. 1 2h 3 4 5", .soa),
    ("ns.a. h.a. 1 2 3 4 4294967296", .soa),
    ("", .txt), ("   ", .txt), (#""a"#, .txt), (#""a" b"#, .txt), (#""a "b" c""#, .txt), (#""a""b""#, .txt),
    ("a\nb", .txt), (#"C:\dir"#, .txt), (#""a\"#, .txt), (#""\256""#, .txt), (#"a\"#, .txt),
    ("0 issue", .caa), (#"0 is-sue "x""#, .caa), ("0 issue a b", .caa), ("0 issue a; b", .caa),
    (#"256 issue "x""#, .caa),
    (#"0 "issue" "x""#, .caa),
    ("1 8 2", .ds), ("1 NOSUCH 2 00", .ds), ("1 8 2 0", .ds), ("1 8 2 0g", .ds), ("1 8 256 00", .ds),
    ("100 50 s s", .naptr), (#"100 50 s "" !^.*$!\1! ."#, .naptr), ("x", RecordType(65_534)),
    (##"\# 2 ab"##, RecordType(65_534)), (##"\# 1 abc"##, RecordType(65_534)),
    (##"\#"##, RecordType(65_534)), (##"\# x"##, RecordType(65_534)), (##"\# 65536 00"##, RecordType(65_534)),
    // The generic form of a known type must have that type's form, without pointers.
    (##"\# 3 c00002"##, .a), (##"\# 2 c00c"##, .cname), (##"\# 3 016100 x"##, .cname),
    (##"\# a"##, .txt),
  ])
  func `invalid or ambiguous RDATA text is refused`(text: String, type: RecordType) {
    #expect(RDATA.parse(text: text, type: type) == nil)
  }

  @Test func `a joined TXT of more than 255 octets is split again, quoted or not`() {
    let long = String(repeating: "x", count: 300)
    let expected = [255] + [UInt8](repeating: 0x78, count: 255) + [45] + [UInt8](repeating: 0x78, count: 45)
    #expect(RDATA.parse(text: long, type: .txt) == expected)
    #expect(RDATA.parse(text: "\"\(long)\"", type: .txt) == expected)
    #expect(RDATA.parse(text: "\"a\" \"\(long)\"", type: .txt) == nil)
    #expect(RDATA.parse(text: String(repeating: "x", count: 65_536), type: .txt) == nil)
  }

  @Test func `an unquoted TXT keeps its spaces and its UTF-8`() {
    #expect(RDATA.parse(text: " é ", type: .txt) == [4, 0x20, 0xC3, 0xA9, 0x20])
  }
}
