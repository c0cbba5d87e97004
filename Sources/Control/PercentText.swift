// PercentText.swift -- encodes and decodes text for URLs.

/// Percent-encoding for the query of a URL (RFC 3986 section 2.1).
enum PercentText {
  /// Encodes everything but letters, digits, hyphen, dot and underscore as `%XX`.
  static func encode(_ text: String) -> String {
    var result = ""
    for octet in text.utf8 {
      switch octet {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        result.unicodeScalars.append(Unicode.Scalar(octet))
      default: result += "%\(octet < 16 ? "0" : "")\(String(octet, radix: 16, uppercase: true))"
      }
    }
    return result
  }

  /// Decodes text; nil for an invalid escape, or if the result is not UTF-8.
  static func decode(_ text: some StringProtocol) -> String? {
    var octets: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let octet = rest.popFirst() {
      guard octet == UInt8(ascii: "%") else {
        octets.append(octet)
        continue
      }
      let digits = rest.prefix(2)
      guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      else { return nil }
      octets.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: octets, as: UTF8.self)
  }
}
