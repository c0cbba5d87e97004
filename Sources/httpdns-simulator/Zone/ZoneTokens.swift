// ZoneTokens.swift -- splits the text of a zone file into entries and their fields (RFC 1035 section 5.1).

/// One entry of a zone file: a record or a directive.
struct ZoneEntry: Equatable {
  /// The first line of the entry, from 1.
  let line: Int
  /// Whether it begins with white space, so that the previous entry's owner name applies.
  let continuesOwner: Bool
  /// The fields, with their quotes and escapes.
  let fields: [String]
}

/// Splits text into entries: `;` starts a comment, quotes preserve white space, parentheses join lines.
struct ZoneTokens {
  private var fields: [String] = []
  private var field: [UInt8] = []
  private var entries: [ZoneEntry] = []
  private var line = 1
  private var firstLine = 1
  private var continuesOwner = false
  private var depth = 0

  /// Returns the entries of a file.
  ///
  /// - Throws: `ZoneError` for an unbalanced quote or parenthesis.
  static func entries(of text: some StringProtocol) throws(ZoneError) -> [ZoneEntry] {
    var tokens = ZoneTokens()
    var input = text.utf8.makeIterator()
    var isQuoted = false
    var isComment = false
    var isLineStart = true
    while let octet = input.next() {
      if octet == UInt8(ascii: "\n") {
        guard !isQuoted else { throw ZoneError(line: tokens.line, reason: "a quote is not closed") }
        isComment = false
        tokens.endLine()
        isLineStart = true
        continue
      }
      if isComment { continue }
      if isLineStart, tokens.depth == 0 {
        tokens.continuesOwner = octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t")
        tokens.firstLine = tokens.line
      }
      isLineStart = false
      switch octet {
      case UInt8(ascii: "\\"):
        tokens.field.append(octet)
        if let escaped = input.next() { tokens.field.append(escaped) }
      case UInt8(ascii: "\""):
        isQuoted.toggle()
        tokens.field.append(octet)
      case _ where isQuoted: tokens.field.append(octet)
      case UInt8(ascii: ";"): isComment = true
      case UInt8(ascii: "("):
        tokens.endField()
        tokens.depth += 1
      case UInt8(ascii: ")"):
        tokens.endField()
        tokens.depth -= 1
        guard tokens.depth >= 0 else { throw ZoneError(line: tokens.line, reason: "\")\" without \"(\"") }
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"): tokens.endField()
      default: tokens.field.append(octet)
      }
    }
    guard !isQuoted else { throw ZoneError(line: tokens.line, reason: "a quote is not closed") }
    guard tokens.depth == 0 else { throw ZoneError(line: tokens.firstLine, reason: "\"(\" without \")\"") }
    tokens.endLine()
    return tokens.entries
  }

  private mutating func endField() {
    guard !field.isEmpty else { return }
    fields.append(String(decoding: field, as: UTF8.self))
    field.removeAll(keepingCapacity: true)
  }

  private mutating func endLine() {
    endField()
    line += 1
    guard depth == 0 else { return }
    if !fields.isEmpty { entries.append(ZoneEntry(line: firstLine, continuesOwner: continuesOwner, fields: fields)) }
    fields = []
  }
}
