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

  /// Decodes a text as above into its own memory, without allocation.
  ///
  /// - Returns: the number of octets, which begin where the text began; -1 for what `decode` refuses, and then the memory has
  ///   changed as well.
  /// - Complexity: O(*n*) in the characters.
  @_noAllocation
  public static func decode(inPlace text: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var written = 0
    var last: UInt32 = 0
    var held: UInt32 = 0
    var index = 0
    while index < text.count {
      let value = value(of: text[index])
      guard value < 64 else { return -1 }
      last = last << 6 | value
      held += 6
      if held >= 8 {
        held -= 8
        text[written] = UInt8(truncatingIfNeeded: last >> held)
        written += 1
      }
      index += 1
    }
    return held < 6 && last & (1 << held - 1) == 0 ? written : -1
  }

  /// The value of a character, 64 for an invalid one.
  @_noAllocation @inline(__always)
  private static func value(of character: UInt8) -> UInt32 {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character &- UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character &- UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character &- UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: 64
    }
  }
}
