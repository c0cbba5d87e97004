// Base64.swift -- octets as text with the common alphabet, and back.

/// Base 64 with the common alphabet and padding (RFC 4648 section 4).
public enum Base64 {
  /// The text, padded to a multiple of four characters.
  ///
  /// - Complexity: O(*n*) in the octets.
  public static func encode(_ octets: [UInt8]) -> String {
    var text = Base64URL.encode(octets).utf8.map(common)
    while text.count % 4 != 0 { text.append(padding) }
    return String(decoding: text, as: UTF8.self)
  }

  /// The octets of a text; nil for a foreign character, missing or misplaced padding, or bits set behind the last octet
  /// (RFC 4648 section 3.5), so that every sequence of octets has exactly one text.
  ///
  /// - Complexity: O(*n*) in the characters.
  public static func decode(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
    text.withContiguousStorageIfAvailable(octets) ?? Array(text).withUnsafeBufferPointer(octets)
  }

  /// Not generic: what is generic in another module is not specialised, and then takes ten times as long.
  private static func octets(of text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    let digits = text.dropLast(text.suffix(2).reversed().prefix { $0 == padding }.count)
    guard !digits.contains(where: { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }) else { return nil }
    return Base64URL.decode(String(decoding: digits.map(urlSafe), as: UTF8.self))
  }

  private static let padding = UInt8(ascii: "=")

  private static func common(_ character: UInt8) -> UInt8 {
    switch character {
    case UInt8(ascii: "-"): UInt8(ascii: "+")
    case UInt8(ascii: "_"): UInt8(ascii: "/")
    default: character
    }
  }

  private static func urlSafe(_ character: UInt8) -> UInt8 {
    switch character {
    case UInt8(ascii: "+"): UInt8(ascii: "-")
    case UInt8(ascii: "/"): UInt8(ascii: "_")
    default: character
    }
  }
}
