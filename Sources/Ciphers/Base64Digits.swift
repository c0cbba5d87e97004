// Base64Digits.swift -- six bits a character: what the alphabets of Base 64 have in common.

/// An alphabet of RFC 4648, which sections 4 and 5 give different characters for the values 62 and 63.
struct Base64Digits: Sendable {
  static let common = Base64Digits(value62: UInt8(ascii: "+"), value63: UInt8(ascii: "/"))
  static let url = Base64Digits(value62: UInt8(ascii: "-"), value63: UInt8(ascii: "_"))

  /// In the place of a foreign character's value.
  private static let foreign: UInt8 = 64

  /// The character of each value.
  private let characters: [UInt8]
  /// The value of each character.
  private let values: [UInt8]

  private init(value62: UInt8, value63: UInt8) {
    let characters =
      Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8) + [value62, value63]
    var values = [UInt8](repeating: Base64Digits.foreign, count: 256)
    for (value, character) in characters.enumerated() { values[Int(character)] = UInt8(value) }
    self.characters = characters
    self.values = values
  }

  /// Writes the characters of the octets, without padding; `output` has room for a third more than they are.
  ///
  /// - Returns: how many characters there are.
  func encode(_ octets: [UInt8], into output: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var written = 0
    var bits: UInt32 = 0
    var held: UInt32 = 0
    for octet in octets {
      bits = bits << 8 | UInt32(octet)
      held += 8
      while held >= 6 {
        held -= 6
        output[written] = characters[Int(bits >> held & 63)]
        written += 1
      }
    }
    if held > 0 {
      output[written] = characters[Int(bits << (6 - held) & 63)]
      written += 1
    }
    return written
  }

  /// The octets of a text without padding; nil for a foreign character, an impossible length, or bits set behind the
  /// last octet (RFC 4648 section 3.5), so that every sequence of octets has exactly one text.
  func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var octets = [UInt8](repeating: 0, count: text.count / 4 * 3 + max(0, text.count % 4 - 1))
    var written = 0
    var bits: UInt32 = 0
    var held: UInt32 = 0
    for character in text {
      let value = values[Int(character)]
      guard value != Base64Digits.foreign else { return nil }
      bits = bits << 6 | UInt32(value)
      held += 6
      if held >= 8 {
        held -= 8
        octets[written] = UInt8(truncatingIfNeeded: bits >> held)
        written += 1
      }
    }
    return bits & (1 << held - 1) == 0 ? octets : nil
  }
}
