// Base64Digits.swift -- the common part of the Base64 alphabets and of Base32: some bits per character.

/// An alphabet of RFC 4648. Those of Base64, sections 4 and 5, differ in the characters for 62 and 63.
struct Base64Digits: Sendable {
  static let common = Base64Digits(most + "+/", bits: 6)
  static let url = Base64Digits(most + "-_", bits: 6)
  /// Base32 with the extended hexadecimal alphabet, section 7: read in any case.
  static let base32 = Base64Digits("0123456789abcdefghijklmnopqrstuv", bits: 5)
  private static let most = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

  /// The value of an invalid character.
  private static let foreign: UInt8 = 64

  /// The character of each value.
  private let characters: [UInt8]
  /// The value of each character.
  private let values: [UInt8]

  /// The bits of a character.
  private let bits: UInt32

  private init(_ alphabet: String, bits: UInt32) {
    characters = Array(alphabet.utf8)
    self.bits = bits
    var values = [UInt8](repeating: Base64Digits.foreign, count: 256)
    for (value, character) in characters.enumerated() {
      values[Int(character)] = UInt8(value)
      // An upper-case letter is the lower-case one without bit 0x20.
      if bits == 5, character >= UInt8(ascii: "a") { values[Int(character & ~0x20)] = UInt8(value) }
    }
    self.values = values
  }

  /// Writes the octets as characters without padding. `output` must have room for them.
  ///
  /// - Returns: the number of characters.
  func encode(_ octets: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var written = 0
    var last: UInt32 = 0
    var held: UInt32 = 0
    for octet in octets {
      last = last << 8 | UInt32(octet)
      held += 8
      while held >= bits {
        held -= bits
        output[written] = characters[Int(last >> held & (1 << bits - 1))]
        written += 1
      }
    }
    if held > 0 {
      output[written] = characters[Int(last << (bits - held) & (1 << bits - 1))]
      written += 1
    }
    return written
  }

  /// The octets of a text without padding; nil for an invalid character, an impossible length, or nonzero trailing bits
  /// (RFC 4648 section 3.5), so that every sequence of octets has exactly one text.
  func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    var octets = [UInt8](repeating: 0, count: text.count * Int(bits) / 8)
    var written = 0
    var last: UInt32 = 0
    var held: UInt32 = 0
    for character in text {
      let value = values[Int(character)]
      guard value != Base64Digits.foreign else { return nil }
      last = last << bits | UInt32(value)
      held += bits
      if held >= 8 {
        held -= 8
        octets[written] = UInt8(truncatingIfNeeded: last >> held)
        written += 1
      }
    }
    return held < bits && last & (1 << held - 1) == 0 ? octets : nil
  }
}
