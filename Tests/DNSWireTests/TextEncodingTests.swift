// TextEncodingTests.swift -- hexadecimal text and Base64 for URLs, in both directions.

import DNSWire
import Testing

@Suite struct TextEncodingTests {
  @Test func `hexadecimal text of every octet decodes to it`() {
    let octets = Array(UInt8.min...UInt8.max)
    let text = Hexadecimal.encode(octets)
    #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
    #expect(Hexadecimal.decode(text) == octets)
    #expect(Hexadecimal.decode(text.uppercased()) == octets)
  }

  @Test(arguments: ["0", "0g", "00 ", "é0", "0x00"])
  func `text that is not hexadecimal is refused`(text: String) {
    #expect(Hexadecimal.decode(text) == nil)
  }

  /// RFC 4648 section 10 without its padding, and the two characters that differ from plain Base 64.
  @Test(arguments: [
    ("", ""), ("66", "Zg"), ("666f", "Zm8"), ("666f6f", "Zm9v"), ("666f6f62", "Zm9vYg"), ("666f6f6261", "Zm9vYmE"),
    ("666f6f626172", "Zm9vYmFy"), ("fbff", "-_8"),
  ])
  func `Base64URL gives the texts of RFC 4648`(hexadecimal: String, text: String) throws {
    let octets = try #require(Hexadecimal.decode(hexadecimal))
    #expect(Base64URL.encode(octets) == text)
    #expect(Base64URL.decode(text) == octets)
  }

  @Test(arguments: ["A", "Zg==", "Zh", "Zm9", "Zm+v", "Zm/v", "Zm9v\n"])
  func `text that is not unpadded Base64URL is refused`(text: String) {
    #expect(Base64URL.decode(text) == nil)
  }

  @Test func `octets of every length up to 300 survive Base64URL`() {
    for length in 0...300 {
      let octets = randomOctets(length)
      #expect(Base64URL.decode(Base64URL.encode(octets)) == octets)
    }
  }

  private func randomOctets(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  @Test func `text survives its encoding in a URL`() {
    for text in ["", "www.example.com.", "a b%/?&=#", "\\000\\.é\u{1F600}"] {
      #expect(PercentText.decode(PercentText.encode(text)) == text)
      #expect(PercentText.encode(text).allSatisfy { $0.isASCII && !" /?&=#".contains($0) })
    }
    for broken in ["%", "%4", "%zz", "%FF", "a%+1"] { #expect(PercentText.decode(broken) == nil) }
  }
}
