// Base64Digits.swift -- the common part of both Base64 alphabets: six bits per character.

/// A Base64 alphabet. Those of RFC 4648 sections 4 and 5 differ in the characters for 62 and 63.
struct Base64Digits: Sendable {
  static let common = Base64Digits(value62: UInt8(ascii: "+"), value63: UInt8(ascii: "/"))
  static let url = Base64Digits(value62: UInt8(ascii: "-"), value63: UInt8(ascii: "_"))

  /// The value of an invalid character.
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

  /// Writes the octets as characters without padding. `output` must have room for four characters per three octets.
  ///
  /// - Returns: the number of characters.
  func encode(_ octets: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>) -> Int {
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

  /// The octets of a text without padding; nil for an invalid character, an impossible length, or nonzero trailing bits
  /// (RFC 4648 section 3.5), so that every sequence of octets has exactly one text.
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
