// JSONFault.swift -- finds the place where a text stops being JSON, for messages: the parser does not report it.
//
// Runs only after the parser has refused a text. It knows the grammar of RFC 8259 and nothing else: it accepts duplicate
// members, numbers of any size and invalid UTF-8.

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
  public var description: String {
    isEnd ? ": unexpected end in line \(line)" : " at line \(line), column \(column)"
  }
}

/// The first place at which a text is not JSON; nil if the grammar allows all of it.
///
/// - Complexity: O(*n*) in the octets, without recursion.
func jsonFault(in text: [UInt8]) -> TextPlace? {
  var scan = JSONScan(text: text)
  guard let position = scan.fault() else { return nil }
  let before = text[..<position]
  let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
  return TextPlace(
    line: 1 + before.count { $0 == UInt8(ascii: "\n") }, column: position - lineStart + 1, isEnd: position == text.count
  )
}

private struct JSONScan {
  private enum Expected { case value, valueOrEnd, member, memberOrEnd, commaOrEnd, nothing }

  let text: [UInt8]
  private var position = 0
  /// The closing brackets of the open arrays and objects.
  private var open: [UInt8] = []

  init(text: [UInt8]) {
    self.text = text
    if text.starts(with: byteOrderMark) { position = byteOrderMark.count }
  }

  /// The index of the first octet that the grammar does not allow, or the end if more has to follow; nil if none.
  mutating func fault() -> Int? {
    var expected = Expected.value
    while true {
      skipSpace()
      guard let octet = next else { return expected == .nothing ? nil : position }
      if octet == open.last, expected == .commaOrEnd || expected == .valueOrEnd || expected == .memberOrEnd {
        position += 1
        open.removeLast()
        expected = afterValue
        continue
      }
      switch expected {
      case .nothing: return position
      case .commaOrEnd:
        guard take(",") else { return position }
        expected = open.last == UInt8(ascii: "}") ? .member : .value
      case .member, .memberOrEnd:
        guard skipString() else { return position }
        skipSpace()
        guard take(":") else { return position }
        expected = .value
      case .value, .valueOrEnd:
        switch octet {
        case UInt8(ascii: "["):
          begin("]")
          expected = .valueOrEnd
        case UInt8(ascii: "{"):
          begin("}")
          expected = .memberOrEnd
        default:
          guard skipScalar(octet) else { return position }
          expected = afterValue
        }
      }
    }
  }

  private var next: UInt8? { position < text.count ? text[position] : nil }

  private var afterValue: Expected { open.isEmpty ? .nothing : .commaOrEnd }

  private mutating func begin(_ end: Unicode.Scalar) {
    position += 1
    open.append(UInt8(ascii: end))
  }

  private mutating func skipSpace() {
    while let octet = next, octet == 0x20 || (0x09...0x0A).contains(octet) || octet == 0x0D { position += 1 }
  }

  private mutating func take(_ wanted: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: wanted) else { return false }
    position += 1
    return true
  }

  private mutating func skipScalar(_ first: UInt8) -> Bool {
    switch first {
    case UInt8(ascii: "\""): skipString()
    case UInt8(ascii: "t"): skipWord("true")
    case UInt8(ascii: "f"): skipWord("false")
    case UInt8(ascii: "n"): skipWord("null")
    default: skipNumber()
    }
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
      guard let digit = next, isHexadecimal(digit) else { return false }
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

  private func isHexadecimal(_ octet: UInt8) -> Bool {
    switch octet {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }
}
