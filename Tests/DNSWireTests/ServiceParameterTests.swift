// ServiceParameterTests.swift -- SVCB and HTTPS text: the test vectors of RFC 9460 appendix D, and texts of services.

import DNSWire
import Testing

@Suite struct ServiceParameterTests {
  static let target = "03666F6F 076578616D706C65 03636F6D 00"

  /// Text, RDATA. The first ones are RFC 9460 appendix D.1 and D.2.
  static let vectors: [(String, String)] = [
    ("0 foo.example.com.", "0000" + target),
    ("1 .", "0001 00"),
    ("16 foo.example.com. port=53", "0010" + target + "0003 0002 0035"),
    ("1 foo.example.com. key667=hello", "0001" + target + "029B 0005 68656C6C6F"),
    (#"1 foo.example.com. key667="hello\210qoo""#, "0001" + target + "029B 0009 68656C6C6FD2716F6F"),
    (
      #"1 foo.example.com. ipv6hint="2001:db8::1,2001:db8::53:1""#,
      "0001" + target + "0006 0020 20010DB8000000000000000000000001 20010DB8000000000000000000530001"
    ),
    (
      #"16 foo.example.com. alpn="h2,h3-19" mandatory="ipv4hint,alpn" ipv4hint="192.0.2.1""#,
      "0010" + target + "0000 0004 0001 0004 0001 0009 026832 0568332D3139 0004 0004 C0000201"
    ),
    (#"16 foo.example.com. alpn="f\\\\oo\\,bar,h2""#, "0010" + target + "0001 000C 08665C6F6F2C626172 026832"),
    (#"16 foo.example.com. alpn=f\\\092oo\092,bar,h2"#, "0010" + target + "0001 000C 08665C6F6F2C626172 026832"),
    ("1 . alpn=h3,h2 ipv4hint=192.0.2.1", "0001 00 0001 0006 026833 026832 0004 0004 C0000201"),
    (
      ##"\# 21 00 01 00 00 01 00 06 02 68 33 02 68 32 00 04 00 04 c0 00 02 01"##,
      "0001 00 0001 0006 026833 026832 0004 0004 C0000201"
    ),
    ("1 . alpn=h2 no-default-alpn", "0001 00 0001 0003 026832 0002 0000"),
    (#"1 . no-default-alpn="" alpn=h2"#, "0001 00 0001 0003 026832 0002 0000"),
    ("1 . ech=AAEC", "0001 00 0005 0003 000102"),
    ("1 . dohpath=/dns-query{?dns}", "0001 00 0007 0010 2F646E732D71756572797B3F646E737D"),
    ("1 . ohttp", "0001 00 0008 0000"),
    ("1 . key65534", "0001 00 FFFE 0000"), ("1 . key65534=", "0001 00 FFFE 0000"),
    (#"1 . key65534="""#, "0001 00 FFFE 0000"),
    // The value of a key given by number is opaque, even that of a known key.
    (#"1 . key1=\002h2"#, "0001 00 0001 0003 026832"),
  ]

  @Test(arguments: vectors, [RecordType.svcb, .https])
  func `the text of SvcParams is parsed into RDATA`(vector: (String, String), type: RecordType) {
    #expect(RDATA.parse(text: vector.0, type: type) == octets(vector.1))
  }

  @Test(arguments: vectors)
  func `SvcParams are written as equivalent text`(vector: (String, String)) {
    let text = RDATA.text(octets(vector.1), type: .https)
    #expect(!text.hasPrefix("\\#"))
    #expect(RDATA.parse(text: text, type: .https) == octets(vector.1))
  }

  @Test(arguments: [
    ("0001 00 0001 0006 026833 026832 0004 0004 C0000201", "1 . alpn=h3,h2 ipv4hint=192.0.2.1"),
    ("0001 00 0001 000C 08665C6F6F2C626172 026832", #"1 . alpn="f\\\\oo\\,bar,h2""#),
    ("0001 00 0003 0001 35", "1 . key3=5"),
    ("0001 00 0000 0002 0001", #"1 . key0="\000\001""#),
    ("0001 00 0005 0000", "1 . key5"),
    ("0000 00", "0 ."),
  ])
  func `a value without its key's form is written under the key's number`(hexadecimal: String, text: String) {
    #expect(RDATA.text(octets(hexadecimal), type: .svcb) == text)
    #expect(RDATA.parse(text: text, type: .svcb) == octets(hexadecimal))
  }

  /// The first ones are RFC 9460 appendix D.3.
  @Test(arguments: [
    "1 foo.example.com. key123=abc key123=def", "1 foo.example.com. mandatory", "1 foo.example.com. alpn",
    "1 foo.example.com. port", "1 foo.example.com. ipv4hint", "1 foo.example.com. ipv6hint",
    "1 foo.example.com. no-default-alpn=abc", "1 foo.example.com. mandatory=key123",
    "1 foo.example.com. mandatory=mandatory", "1 foo.example.com. mandatory=key123,key123 key123=abc",
    "1", "1 . port=65536", "1 . port=+1", "1 . port=", #"1 . port="""#, "1 . port=53 port=54", "1 . alpn=",
    "1 . alpn=h2,,h3",
    #"1 . alpn=h2\\x"#, "1 . ipv4hint=192.0.2.1,", "1 . ipv4hint=::1", "1 . ipv6hint=192.0.2.1", "1 . ech=",
    "1 . ech=A",
    "1 . ech=AAE", "1 . nosuch=1", "1 . key065=a", "1 . key65536=a", "1 . key=a", "1 . =a", "1 . PORT=53",
    "1 . port =53",
    "1 . port= 53", #"1 . alpn="h2"x"#, #"1 . "alpn=h2""#, "1 . ohttp=1", "1 . dohpath", "1 . alpn=h2;h3", "65536 .",
    "1 . mandatory=nosuch", "1 . key3=a port=53",
  ])
  func `invalid text of SvcParams is refused`(text: String) {
    #expect(RDATA.parse(text: text, type: .https) == nil)
  }
}
