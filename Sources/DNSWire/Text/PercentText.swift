// PercentText.swift -- percent-encoded text, as it stands in URLs.

/// Percent-encoding (RFC 3986 section 2.1).
public enum PercentText {
  /// Everything but the unreserved characters (RFC 3986 section 2.3) as `%XX`.
  ///
  /// - Complexity: O(*n*) in the octets.
  public static func encode(_ text: String) -> String {
    var octets: [UInt8] = []
    append(text, to: &octets)
    return String(decoding: octets, as: UTF8.self)
  }

  /// Appends the encoded text.
  ///
  /// - Complexity: O(*n*) in the octets.
  public static func append(_ text: String, to octets: inout [UInt8]) {
    for octet in text.utf8 {
      if isUnreserved(octet) {
        octets.append(octet)
      } else {
        octets.append(UInt8(ascii: "%"))
        octets.append(upperCaseDigit(octet >> 4))
        octets.append(upperCaseDigit(octet & 15))
      }
    }
  }

  /// The decoded text; nil for an invalid escape, or if the result is not UTF-8.
  ///
  /// - Complexity: O(*n*) in the octets.
  public static func decode(_ text: some StringProtocol) -> String? {
    var octets: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let octet = rest.popFirst() {
      guard octet == UInt8(ascii: "%") else {
        octets.append(octet)
        continue
      }
      guard let decoded = Hexadecimal.decode(rest.prefix(2)), decoded.count == 1 else { return nil }
      octets += decoded
      rest = rest.dropFirst(2)
    }
    return String(validating: octets, as: UTF8.self)
  }

  private static func upperCaseDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
  }

  private static func isUnreserved(_ octet: UInt8) -> Bool {
    switch octet {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
