// Base64URL.swift -- octets as text that may stand in a URL, and back.

/// Base 64 with the alphabet for URLs (RFC 4648 section 5), without padding, as RFC 8484 section 6 has it.
public enum Base64URL {
  /// The text, without padding.
  ///
  /// - Complexity: O(*n*) in the octets.
  public static func encode(_ octets: [UInt8]) -> String {
    let length = (octets.count * 4 + 2) / 3
    return String(unsafeUninitializedCapacity: length) { output in
      var written = 0
      var bits: UInt32 = 0
      var held: UInt32 = 0
      for octet in octets {
        bits = bits << 8 | UInt32(octet)
        held += 8
        while held >= 6 {
          held -= 6
          output[written] = character(UInt8(truncatingIfNeeded: bits >> held & 63))
          written += 1
        }
      }
      if held > 0 {
        output[written] = character(UInt8(truncatingIfNeeded: bits << (6 - held) & 63))
        written += 1
      }
      return written
    }
  }

  /// The octets of a text without padding; nil for a foreign character, an impossible length, or bits set behind
  /// the last octet (RFC 4648 section 3.5), so that every sequence of octets has exactly one text.
  ///
  /// - Complexity: O(*n*) in the characters.
  public static func decode(_ text: String) -> [UInt8]? {
    guard text.utf8.count % 4 != 1 else { return nil }
    var octets: [UInt8] = []
    octets.reserveCapacity(text.utf8.count * 3 / 4)
    var bits: UInt32 = 0
    var held: UInt32 = 0
    for character in text.utf8 {
      guard let value = value(character) else { return nil }
      bits = bits << 6 | UInt32(value)
      held += 6
      if held >= 8 {
        held -= 8
        octets.append(UInt8(truncatingIfNeeded: bits >> held))
      }
    }
    return bits & (1 << held - 1) == 0 ? octets : nil
  }

  private static func character(_ value: UInt8) -> UInt8 {
    switch value {
    case 0..<26: UInt8(ascii: "A") + value
    case 26..<52: UInt8(ascii: "a") + value - 26
    case 52..<62: UInt8(ascii: "0") + value - 52
    case 62: UInt8(ascii: "-")
    default: UInt8(ascii: "_")
    }
  }

  private static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
