// TextScan.swift -- refuses texts that would crash the TOML parser or that no key takes, before the parser sees them.
//
// The parser recurses once for each bracket and frees a dotted key of n parts with n nested calls. Some of its
// assertions fail on invalid texts (see also ParserTraps.swift). Names of files are C strings, which end at a NUL. The
// parser reports all other errors.

struct TextScan {
  /// The deepest nesting of arrays and inline tables.
  static let maxBrackets = 16
  /// The most dots in a key.
  static let maxDots = 16

  /// Throws for a NUL, also an escaped one, for nesting beyond the limits, and for texts that trap the parser.
  static func check(_ text: String) throws(SyntaxMistake) {
    var text = text
    var scan = TextScan()
    // The parser skips a byte order mark.
    if text.utf8.starts(with: [0xEF, 0xBB, 0xBF]) { scan.position = 3 }
    let count = text.utf8.count
    let refusal: SyntaxMistake? = text.withUTF8 { octets in
      while scan.position < count {
        if let refusal = scan.step(octets) { return refusal }
      }
      return nil
    }
    if let refusal { throw refusal }
  }

  private enum State { case bare, comment, basic, literal, longBasic, longLiteral }

  private var state = State.bare
  private var position = 0
  private var line = 1
  private var column = 1
  /// The open brackets.
  private var brackets: [UInt8] = []
  private var dots = 0
  /// Whether only white space precedes on a line that may be a table header.
  private var isLineStart = true

  /// Scans the next octets; returns a mistake if they must be refused.
  private mutating func step(_ text: UnsafeBufferPointer<UInt8>) -> SyntaxMistake? {
    let octet = text[position]
    if octet == 0 { return refuse("NUL octet", "text without NUL") }
    switch state {
    case .bare: if let refusal = bare(octet, text) { return refusal }
    case .comment: break
    case .basic, .longBasic:
      if octet == UInt8(ascii: "\\") {
        if isEscapedNUL(text) { return refuse("escaped NUL", "text without NUL") }
        advance(text)
      } else if octet == UInt8(ascii: "\"") {
        closeString(text, quote: octet)
      }
    case .literal, .longLiteral: if octet == UInt8(ascii: "'") { closeString(text, quote: octet) }
    }
    if position < text.count, text[position] == UInt8(ascii: "\n"), state != .longBasic, state != .longLiteral {
      state = .bare
      isLineStart = brackets.isEmpty
    }
    advance(text)
    return nil
  }

  private mutating func bare(_ octet: UInt8, _ text: UnsafeBufferPointer<UInt8>) -> SyntaxMistake? {
    switch octet {
    case UInt8(ascii: "#"): state = .comment
    case UInt8(ascii: "\""), UInt8(ascii: "'"):
      let isLong = run(of: octet, text) >= 3
      let isBasic = octet == UInt8(ascii: "\"")
      state = isLong ? (isBasic ? .longBasic : .longLiteral) : (isBasic ? .basic : .literal)
      if isLong { skip(2, text) }
    case UInt8(ascii: "["), UInt8(ascii: "{"):
      dots = 0
      if isLineStart, octet == UInt8(ascii: "["), !isHeaderWithKey(text, at: position) {
        return refuse("table header without a key", "[key] or [[key]]")
      }
      brackets.append(octet)
      if brackets.count > TextScan.maxBrackets {
        return refuse("\(brackets.count) nested brackets", "at most \(TextScan.maxBrackets)")
      }
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      dots = 0
      // In ASCII, "]" is "[" + 2 and "}" is "{" + 2.
      if let open = brackets.popLast(), open + 2 != octet {
        return refuse("unmatched closing bracket", "brackets in pairs")
      }
    case UInt8(ascii: "="), UInt8(ascii: ","), UInt8(ascii: "\n"): dots = 0
    case UInt8(ascii: "."):
      dots += 1
      if dots > TextScan.maxDots {
        return refuse("a key has too many parts", "at most \(TextScan.maxDots) dots in a key")
      }
    case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): break
    case 0x21...0x7E:
      if isDateBeforeDigit(text, at: position) || isDateWithoutTime(text, at: position) {
        return refuse("date or time", "another value: no key takes a date")
      }
    default: return refuse("control or non-ASCII character", "such characters only in strings and comments")
    }
    isLineStart = isLineStart && (octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t"))
    return nil
  }

  private mutating func closeString(_ text: UnsafeBufferPointer<UInt8>, quote: UInt8) {
    guard state == .longBasic || state == .longLiteral else {
      state = .bare
      return
    }
    // Three quotes close a long string. Up to two quotes before them are part of the string.
    let quotes = min(run(of: quote, text), 5)
    if quotes >= 3 { state = .bare }
    skip(quotes - 1, text)
  }

  private func run(of octet: UInt8, _ text: UnsafeBufferPointer<UInt8>) -> Int {
    var end = position
    while end < text.count, end - position < 6, text[end] == octet { end += 1 }
    return end - position
  }

  /// Whether `\u0000` or `\U00000000` begins here.
  private func isEscapedNUL(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard position + 1 < text.count else { return false }
    let digits = text[position + 1] == UInt8(ascii: "u") ? 4 : text[position + 1] == UInt8(ascii: "U") ? 8 : 0
    let start = position + 2
    guard digits > 0, start + digits <= text.count else { return false }
    return (start..<(start + digits)).allSatisfy { text[$0] == UInt8(ascii: "0") }
  }

  private mutating func skip(_ count: Int, _ text: UnsafeBufferPointer<UInt8>) {
    for _ in 0..<count { advance(text) }
  }

  private mutating func advance(_ text: UnsafeBufferPointer<UInt8>) {
    guard position < text.count else { return }
    if text[position] == UInt8(ascii: "\n") {
      line += 1
      column = 1
    } else if text[position] & 0xC0 != 0x80 {
      column += 1
    }
    position += 1
  }

  private func refuse(_ found: String, _ allowed: String) -> SyntaxMistake {
    SyntaxMistake(line: line, column: column, found: found, allowed: allowed)
  }
}
