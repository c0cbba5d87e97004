// Base64URL.swift -- Base64 with the alphabet for URLs.

/// Base64 with the alphabet for URLs (RFC 4648 section 5), without padding, as in RFC 8484 section 6.
public enum Base64URL {
  /// The text, without padding.
  ///
  /// - Complexity: O(*n*) in the octets.
  public static func encode(_ octets: [UInt8]) -> String {
    octets.withUnsafeBufferPointer { octets in
      String(unsafeUninitializedCapacity: (octets.count * 4 + 2) / 3) { Base64Digits.url.encode(octets, into: $0) }
    }
  }

  /// The octets of a text without padding; nil for an invalid character, an impossible length, or nonzero trailing bits
  /// (RFC 4648 section 3.5), so that every sequence of octets has exactly one text.
  ///
  /// - Complexity: O(*n*) in the characters.
  public static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8(Base64Digits.url.decode)
  }
}
