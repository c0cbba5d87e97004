// Base32Hexadecimal.swift -- Base32 with the extended hexadecimal alphabet, as in NSEC3.

/// Base32 with the extended hexadecimal alphabet (RFC 4648 section 7), in lower case and without padding (RFC 5155 section
/// 3.3).
enum Base32Hexadecimal {
  private static let digits = Array("0123456789abcdefghijklmnopqrstuv".utf8)
  private static let noDigit = UInt8.max
  /// The value of each octet as a digit; `noDigit` if the octet is not a digit.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: noDigit, count: 256)
    for (value, digit) in digits.enumerated() {
      values[Int(digit)] = UInt8(value)
      // An upper-case letter is the lower-case one without bit 0x20.
      if digit >= UInt8(ascii: "a") { values[Int(digit & ~0x20)] = UInt8(value) }
    }
    return values
  }()

  /// The text in lower case.
  static func encode(_ octets: ArraySlice<UInt8>) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity((octets.count * 8 + 4) / 5)
    var bits = 0
    var bitCount = 0
    for octet in octets {
      bits = (bits << 8 | Int(octet)) & 0xFFFF
      bitCount += 8
      while bitCount >= 5 {
        bitCount -= 5
        output.append(digits[bits >> bitCount & 31])
      }
    }
    if bitCount > 0 { output.append(digits[bits << (5 - bitCount) & 31]) }
    return output
  }

  /// The octets of unpadded Base32 in any case; nil for an invalid number of digits, nonzero trailing bits, or an invalid
  /// digit.
  static func decode(_ digits: some Collection<UInt8>) -> [UInt8]? {
    var output: [UInt8] = []
    output.reserveCapacity(digits.count * 5 / 8)
    var bits = 0
    var bitCount = 0
    for digit in digits {
      let value = values[Int(digit)]
      guard value != noDigit else { return nil }
      bits = (bits << 5 | Int(value)) & 0xFFFF
      bitCount += 5
      guard bitCount >= 8 else { continue }
      bitCount -= 8
      output.append(UInt8(truncatingIfNeeded: bits >> bitCount))
    }
    return bitCount < 5 && bits & (1 << bitCount - 1) == 0 ? output : nil
  }
}
