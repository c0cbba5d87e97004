// Base64.swift -- Base64 with the standard alphabet.

/// Base64 with the standard alphabet and padding (RFC 4648 section 4).
public enum Base64 {
  /// The text, padded to a multiple of four characters.
  ///
  /// - Complexity: O(*n*) in the octets.
  @inlinable public static func encode(_ octets: some Sequence<UInt8>) -> String {
    octets.withContiguousStorageIfAvailable(text) ?? Array(octets).withUnsafeBufferPointer(text)
  }

  /// Not generic: generic code of another module is not specialised and takes ten times as long.
  @usableFromInline static func text(of octets: UnsafeBufferPointer<UInt8>) -> String {
    let length = (octets.count + 2) / 3 * 4
    return String(unsafeUninitializedCapacity: length) { output in
      for index in Base64Digits.common.encode(octets, into: output)..<length { output[index] = padding }
      return length
    }
  }

  /// The octets of a text; nil for an invalid character, missing or misplaced padding, or nonzero trailing bits (RFC 4648
  /// section 3.5), so that every sequence of octets has exactly one text.
  ///
  /// - Complexity: O(*n*) in the characters.
  @inlinable public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    text.withContiguousStorageIfAvailable(octets) ?? Array(text).withUnsafeBufferPointer(octets)
  }

  @usableFromInline static func octets(of text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    var length = text.count
    while length > max(0, text.count - 2), text[length - 1] == padding { length -= 1 }
    return Base64Digits.common.decode(UnsafeBufferPointer(rebasing: text[..<length]))
  }

  private static let padding = UInt8(ascii: "=")
}
