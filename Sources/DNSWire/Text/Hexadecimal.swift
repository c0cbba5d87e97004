// Hexadecimal.swift -- hexadecimal text.

/// Base16 (RFC 4648 section 8), written in lower case as all providers do.
public enum Hexadecimal {
  /// Two lower-case digits for each octet.
  ///
  /// - Complexity: O(*n*) in the octets.
  @inlinable public static func encode(_ octets: some Sequence<UInt8>) -> String {
    octets.withContiguousStorageIfAvailable(text) ?? Array(octets).withUnsafeBufferPointer(text)
  }

  /// Not generic: generic code of another module is not specialised and takes ten times as long.
  @usableFromInline static func text(of octets: UnsafeBufferPointer<UInt8>) -> String {
    String(unsafeUninitializedCapacity: octets.count * 2) { output in
      for (index, octet) in octets.enumerated() {
        output[index * 2] = digit(octet >> 4)
        output[index * 2 + 1] = digit(octet & 15)
      }
      return octets.count * 2
    }
  }

  /// The octets of digits in any case; nil for an odd number of digits or an invalid one.
  ///
  /// - Complexity: O(*n*) in the digits.
  @inlinable public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    text.withContiguousStorageIfAvailable(octets) ?? Array(text).withUnsafeBufferPointer(octets)
  }

  @usableFromInline static func octets(of text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard text.count % 2 == 0 else { return nil }
    var octets = [UInt8](repeating: 0, count: text.count / 2)
    for index in octets.indices {
      guard let high = value(text[index * 2]), let low = value(text[index * 2 + 1]) else { return nil }
      octets[index] = high << 4 | low
    }
    return octets
  }

  /// The octets of digits in any case; nil for an odd number of digits or an invalid one.
  ///
  /// - Complexity: O(*n*) in the digits.
  public static func decode(_ text: String) -> [UInt8]? { decode(text.utf8) }

  /// The digit of a value below 16.
  public static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// The value of a digit in any case; nil for any other character.
  public static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
