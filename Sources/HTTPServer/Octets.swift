// Octets.swift -- classes of octets in HTTP (RFC 9110 section 5.6), and comparisons of a header's parts with words.

enum Octet {
  static let lineFeed = UInt8(ascii: "\n")
  static let carriageReturn = UInt8(ascii: "\r")
  static let space = UInt8(ascii: " ")
  static let tab = UInt8(ascii: "\t")
  static let delete: UInt8 = 0x7F

  static func isDigit(_ octet: UInt8) -> Bool { octet &- UInt8(ascii: "0") < 10 }

  /// Space or tab: what may surround a value.
  static func isBlank(_ octet: UInt8) -> Bool { octet == space || octet == tab }

  /// What a value may hold: text of any encoding, without control characters but the tab.
  static func isInValue(_ octet: UInt8) -> Bool { octet >= space && octet != delete || octet == tab }

  /// Octets of a token: letters, digits and 15 signs.
  static func isToken(_ octet: UInt8) -> Bool {
    octet < 128 && (octet < 64 ? lowTokens >> UInt64(octet) : highTokens >> UInt64(octet - 64)) & 1 == 1
  }

  /// A bit for each octet below 64: `! # $ % & ' * + - .` and digits.
  private static var lowTokens: UInt64 { 0x03FF_6CFA_0000_0000 }
  /// A bit for each octet from 64 on: letters and ``^ _ ` | ~``.
  private static var highTokens: UInt64 { 0x57FF_FFFF_C7FF_FFFE }

  static func lower(_ octet: UInt8) -> UInt8 { octet &- UInt8(ascii: "A") < 26 ? octet | 0x20 : octet }
}

extension Span where Element == UInt8 {
  /// As text; octets that are no UTF-8 are replaced.
  var text: String { withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }

  func index(of octet: UInt8, from begin: Int) -> Int? {
    var index = begin
    while index < count {
      if self[index] == octet { return index }
      index += 1
    }
    return nil
  }

  @inline(__always)
  func allSatisfy(_ condition: (UInt8) -> Bool) -> Bool {
    for index in indices where !condition(self[index]) { return false }
    return true
  }

  func equals(_ word: StaticString) -> Bool {
    guard count == word.utf8CodeUnitCount else { return false }
    for index in indices where self[index] != word.utf8Start[index] { return false }
    return true
  }

  func equalsIgnoringCase(_ word: StaticString) -> Bool {
    count == word.utf8CodeUnitCount && hasPrefixIgnoringCase(word)
  }

  func hasPrefixIgnoringCase(_ word: StaticString) -> Bool {
    guard count >= word.utf8CodeUnitCount else { return false }
    for index in 0..<word.utf8CodeUnitCount
    where Octet.lower(self[index]) != Octet.lower(word.utf8Start[index]) {
      return false
    }
    return true
  }

  /// Calls `body` with each element of a list that commas separate, without the blanks around it.
  func forEachElement(_ body: (borrowing Span<UInt8>) -> Void) {
    var begin = 0
    while begin <= count {
      let next = index(of: UInt8(ascii: ","), from: begin) ?? count
      var (first, last) = (begin, next)
      while first < last, Octet.isBlank(self[first]) { first += 1 }
      while last > first, Octet.isBlank(self[last - 1]) { last -= 1 }
      body(extracting(first..<last))
      begin = next + 1
    }
  }
}
