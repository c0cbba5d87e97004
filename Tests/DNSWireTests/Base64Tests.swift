// Base64Tests.swift -- the standard alphabet: RFC 4648's examples, and invalid texts.

import DNSWire
import Testing

@Suite struct Base64Tests {
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"),
  ])
  func `Base64 reproduces the examples of RFC 4648`(octets: String, text: String) {
    #expect(Base64.encode(Array(octets.utf8)) == text)
    #expect(Base64.decode(text.utf8) == Array(octets.utf8))
  }

  @Test func `decoding returns the encoded octets`() {
    var generator = SystemRandomNumberGenerator()
    for length in 0..<200 {
      let octets = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let text = Base64.encode(octets)
      #expect(text.utf8.count % 4 == 0 && !text.contains("-") && !text.contains("_"))
      #expect(Base64.decode(text.utf8) == octets)
    }
    #expect(Base64.encode([0xFB, 0xEF, 0xFF]) == "++//")
    #expect(Base64.decode("++//".utf8) == [0xFB, 0xEF, 0xFF])
  }

  @Test(arguments: [
    "Zg", "Zg=", "Zg===", "=", "====", "A===", "Z=g=", "Zg==Zg==", "Zm9v=", "--__", "Zm9v\n", "Zm9 ", "Zh==", "Zm9=",
    "Zm9\u{e9}", " Zg=",
  ])
  func `invalid Base64 is refused`(text: String) {
    #expect(Base64.decode(text.utf8) == nil)
  }
}
