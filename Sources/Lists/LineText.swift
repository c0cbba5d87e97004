// LineText.swift -- a part of a line of a list, in memory that the reader owns for as long as it reads the line.

import DNSWire
import Glibc

/// Octets of a line. Valid only while the line is read.
struct LineText {
  private(set) var start: UnsafePointer<UInt8>
  private(set) var end: UnsafePointer<UInt8>

  var count: Int { end - start }
  var isEmpty: Bool { start == end }
  /// The first octet; 0 without one.
  var first: UInt8 { isEmpty ? 0 : start[0] }
  var last: UInt8 { isEmpty ? 0 : end[-1] }

  var indices: Range<Int> { 0..<count }

  subscript(index: Int) -> UInt8 { start[index] }

  func prefix(_ count: Int) -> LineText { LineText(start: start, end: start + min(count, self.count)) }
  func dropFirst(_ count: Int = 1) -> LineText { LineText(start: start + min(count, self.count), end: end) }
  func dropLast(_ count: Int = 1) -> LineText { LineText(start: start, end: end - min(count, self.count)) }

  /// Without blanks at either end.
  var trimmed: LineText {
    var text = self
    while !text.isEmpty, isBlank(text.start[0]) { text.start += 1 }
    while !text.isEmpty, isBlank(text.end[-1]) { text.end -= 1 }
    return text
  }

  /// The index of the first such octet; nil without one.
  func index(of octet: Unicode.Scalar) -> Int? {
    guard !isEmpty, let found = memchr(start, Int32(UInt8(ascii: octet)), count) else { return nil }
    return UnsafeRawPointer(found) - UnsafeRawPointer(start)
  }

  /// The part before that octet, and the part behind it; all of the text and nil if it has none.
  func split(at octet: Unicode.Scalar) -> (LineText, LineText?) {
    guard let index = index(of: octet) else { return (self, nil) }
    return (prefix(index), dropFirst(index + 1))
  }

  func hasPrefix(_ prefix: StaticString) -> Bool {
    prefix.utf8CodeUnitCount <= count && self.prefix(prefix.utf8CodeUnitCount).equals(prefix)
  }

  /// Whether it is that word, which is in lower case, in any case.
  func equals(_ word: StaticString) -> Bool {
    guard word.utf8CodeUnitCount == count else { return false }
    for index in 0..<count where asciiLowercase(start[index]) != word.utf8Start[index] { return false }
    return true
  }

  func equals(anyOf words: [StaticString]) -> Bool { words.contains { equals($0) } }

  /// The longest text that is shown of a line, in characters.
  private static let longestShown = 80

  /// What people see of it; others than printable ASCII as `\xNN`.
  var shown: String {
    let octets = UnsafeBufferPointer(start: start, count: min(count, LineText.longestShown + 1))
    let text = octets.map(LineText.shown).joined()
    return text.utf8.count <= LineText.longestShown ? text : text.prefix(LineText.longestShown - 3) + "..."
  }

  private static func shown(_ octet: UInt8) -> String {
    if 0x20..<0x7F ~= octet { return String(UnicodeScalar(octet)) }
    return "\\x" + Hexadecimal.encode(CollectionOfOne(octet))
  }
}

/// Whether an octet is a blank or a tab; a carriage return counts too.
func isBlank(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 0x09 || octet == 0x0D }
