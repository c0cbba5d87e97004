// Base32Hexadecimal.swift -- Base32 with the extended hexadecimal alphabet, as in NSEC3.

/// Base32 with the extended hexadecimal alphabet (RFC 4648 section 7), in lower case and without padding (RFC 5155 section
/// 3.3).
enum Base32Hexadecimal {
  /// The text in lower case.
  static func encode(_ octets: ArraySlice<UInt8>) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: (octets.count * 8 + 4) / 5) { output, count in
      count = octets.withUnsafeBufferPointer { Base64Digits.base32.encode($0, into: output) }
    }
  }

  /// The octets of unpadded Base32 in any case; nil for an invalid number of digits, nonzero trailing bits, or an invalid
  /// digit.
  static func decode(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    digits.withUnsafeBufferPointer(Base64Digits.base32.decode)
  }
}
