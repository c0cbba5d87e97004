// JSONFault.swift -- finds the place where a text stops being JSON, for messages: the parser does not report it.
//
// Runs only after the parser has refused a text. It knows the grammar of RFC 8259 and the parser's limit on nesting: it
// accepts duplicate members, numbers of any size and invalid UTF-8.

import CJSON

/// A place in a text.
public struct TextPlace: Hashable, Sendable {
  /// The line, from 1.
  public let line: Int
  /// The octet in the line, from 1.
  public let column: Int
  /// Whether the text ends there, before the JSON does.
  public let isEnd: Bool
}

extension TextPlace: CustomStringConvertible {
  /// For a message, after `invalid JSON`.
  public var description: String { isEnd ? ": unexpected end in line \(line)" : " at line \(line), column \(column)" }
}

/// The first place at which a text is not JSON; nil if the grammar allows all of it.
///
/// - Complexity: O(*n*) in the octets.
package func jsonFault(in text: [UInt8]) -> TextPlace? {
  var scan = JSONScan(text: text)
  guard let position = scan.fault() else { return nil }
  let before = text[..<position]
  let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
  return TextPlace(
    line: 1 + before.count { $0 == UInt8(ascii: "\n") }, column: position - lineStart + 1, isEnd: position == text.count
  )
}

private struct JSONScan {
  let text: [UInt8]
  private var position = 0

  init(text: [UInt8]) {
    self.text = text
    if text.starts(with: byteOrderMark) { position = byteOrderMark.count }
  }

  /// The index of the first octet that the grammar does not allow, or the end if more has to follow; nil if none.
  mutating func fault() -> Int? {
    guard skipValue() else { return position }
    skipSpace()
    return next == nil ? nil : position
  }

  private var next: UInt8? { position < text.count ? text[position] : nil }

  private mutating func skipSpace() {
    while let octet = next, octet == 0x20 || (0x09...0x0A).contains(octet) || octet == 0x0D { position += 1 }
  }

  private mutating func take(_ wanted: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: wanted) else { return false }
    position += 1
    return true
  }

  private mutating func skipValue(depth: Int = 0) -> Bool {
    skipSpace()
    switch next {
    case UInt8(ascii: "["): return skipItems("]", depth) { $0.skipValue(depth: depth + 1) }
    case UInt8(ascii: "{"): return skipItems("}", depth) { $0.skipMember(depth: depth + 1) }
    case UInt8(ascii: "\""): return skipString()
    case UInt8(ascii: "t"): return skipWord("true")
    case UInt8(ascii: "f"): return skipWord("false")
    case UInt8(ascii: "n"): return skipWord("null")
    default: return skipNumber()
    }
  }

  /// Skips an array or an object. One that is nested too deeply ends the search.
  private mutating func skipItems(_ end: Unicode.Scalar, _ depth: Int, _ skipItem: (inout JSONScan) -> Bool) -> Bool {
    guard depth < JSON_MAXIMUM_DEPTH else { return false }
    position += 1
    skipSpace()
    if take(end) { return true }
    repeat {
      guard skipItem(&self) else { return false }
      skipSpace()
    } while take(",")
    return take(end)
  }

  private mutating func skipMember(depth: Int) -> Bool {
    skipSpace()
    guard skipString() else { return false }
    skipSpace()
    return take(":") && skipValue(depth: depth)
  }

  private mutating func skipWord(_ word: StaticString) -> Bool {
    word.withUTF8Buffer { octets in
      for octet in octets {
        guard next == octet else { return false }
        position += 1
      }
      return true
    }
  }

  private mutating func skipString() -> Bool {
    guard take("\"") else { return false }
    while let octet = next {
      switch octet {
      case UInt8(ascii: "\""):
        position += 1
        return true
      case UInt8(ascii: "\\"):
        position += 1
        guard skipEscape() else { return false }
      case 0x00..<0x20: return false
      default: position += 1
      }
    }
    return false
  }

  private mutating func skipEscape() -> Bool {
    guard let octet = next, "\"\\/bfnrtu".utf8.contains(octet) else { return false }
    position += 1
    guard octet == UInt8(ascii: "u") else { return true }
    for _ in 0..<4 {
      guard let digit = next, Character(Unicode.Scalar(digit)).isHexDigit else { return false }
      position += 1
    }
    return true
  }

  private mutating func skipNumber() -> Bool {
    _ = take("-")
    if !take("0") { guard skipDigits() else { return false } }
    if take(".") { guard skipDigits() else { return false } }
    guard take("e") || take("E") else { return true }
    _ = take("+") || take("-")
    return skipDigits()
  }

  private mutating func skipDigits() -> Bool {
    let start = position
    while let octet = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet) { position += 1 }
    return position > start
  }
}
