// RDATA.swift -- RDATA between wire octets and presentation text.

/// RDATA without its record: uncompressed wire octets, and their text as in JSON APIs and `dig`.
public enum RDATA {
  /// The largest RDLENGTH.
  public static let maximumOctetCount = 65_535

  /// The wire octets of presentation text.
  ///
  /// Every type accepts the generic form `\# length hexadecimal` (RFC 3597 section 5); unknown types require it.
  /// Names are absolute with or without their final dot. Unquoted TXT is one string, including its spaces.
  ///
  /// - Returns: nil if the text does not have the form of its type, contains a line break, or is ambiguous.
  public static func parse(text: String, type: RecordType) -> [UInt8]? {
    guard !text.utf8.contains(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) else { return nil }
    var reader = TextReader(text)
    reader.skipSpaces()
    if isGeneric(reader.rest) { return parseGeneric(&reader, type) }
    guard let fields = RDATAField.textFields(of: type) else { return nil }
    var output: [UInt8] = []
    if case .strings? = fields.first {
      guard let strings = textStrings(text, &reader) else { return nil }
      for string in strings { append(string: string, to: &output) }
    } else {
      for field in fields {
        guard let octets = reader.parse(field) else { return nil }
        output += octets
      }
    }
    reader.skipSpaces()
    return reader.isAtEnd && output.count <= maximumOctetCount ? output : nil
  }

  /// The presentation text of uncompressed wire octets.
  ///
  /// The generic form (RFC 3597) is used for unknown types, for RDATA without its type's form, and where the text would
  /// not reproduce the octets exactly.
  public static func text(_ rdata: [UInt8], type: RecordType) -> String {
    guard let fields = RDATAField.textFields(of: type), isMade(rdata, of: fields) else { return genericText(rdata) }
    var writer = TextWriter(rdata)
    for field in fields {
      guard writer.write(field) else { return genericText(rdata) }
    }
    let text = writer.text
    return parse(text: text, type: type) == rdata ? text : genericText(rdata)
  }

  private static func isMade(_ rdata: [UInt8], of fields: [RDATAField]) -> Bool {
    guard rdata.count <= maximumOctetCount else { return false }
    var reader = WireReader(rdata.span, allowsPointers: false)
    return (try? reader.rdata(fields, length: rdata.count)) != nil
  }

  /// Whether uncompressed RDATA has the form of its type; true for unknown types.
  public static func isValid(_ rdata: [UInt8], type: RecordType) -> Bool {
    guard rdata.count <= maximumOctetCount else { return false }
    var reader = WireReader(rdata.span, allowsPointers: false)
    return (try? reader.rdata(type, length: rdata.count)) != nil
  }
}

// MARK: - The generic form

extension RDATA {
  private static func isGeneric(_ text: ArraySlice<UInt8>) -> Bool {
    text.starts(with: [backslash, UInt8(ascii: "#")]) && text.dropFirst(2).first.map(isSpace) ?? true
  }

  private static func parseGeneric(_ reader: inout TextReader, _ type: RecordType) -> [UInt8]? {
    guard reader.word() != nil, let length = reader.number(UInt16.self), let digits = reader.joinedWords(),
      let octets = Hexadecimal.decode(digits), octets.count == length, isValid(octets, type: type)
    else { return nil }
    return octets
  }

  private static func genericText(_ rdata: [UInt8]) -> String {
    rdata.isEmpty ? "\\# 0" : "\\# \(rdata.count) \(Hexadecimal.encode(rdata))"
  }
}

// MARK: - Texts

extension RDATA {
  /// The strings of TXT and similar types: either all quoted, or the whole text is one string. A single string of more
  /// than 255 octets was joined from several by the sender, and is split again.
  private static func textStrings(_ text: String, _ reader: inout TextReader) -> [ArraySlice<UInt8>]? {
    guard reader.rest.first == quote else {
      let whole = reader.take { _ in true }
      return whole.isEmpty ? nil : unescapeUnquoted(text).map { split($0[...]) }
    }
    var strings: [ArraySlice<UInt8>] = []
    while !reader.isAtEnd {
      guard let string = reader.quotedString() else { return nil }
      strings.append(string[...])
      reader.skipSpaces()
    }
    if strings.count == 1 { return split(strings[0]) }
    return strings.allSatisfy { $0.count <= 255 } ? strings : nil
  }

  /// Decodes only unambiguous escapes: any other backslash may be part of the text.
  private static func unescapeUnquoted(_ text: String) -> [UInt8]? {
    var previousIsBackslash = false
    for octet in text.utf8 {
      if previousIsBackslash {
        guard isDigit(octet) || octet == backslash || octet == quote else { return nil }
        previousIsBackslash = false
      } else {
        previousIsBackslash = octet == backslash
      }
    }
    return unescape(Array(text.utf8)[...])
  }

  private static func split(_ string: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    guard string.count > 255 else { return [string] }
    return stride(from: string.startIndex, to: string.endIndex, by: 255).map {
      string[$0..<min($0 + 255, string.endIndex)]
    }
  }

  /// Appends a character-string of at most 255 octets.
  static func append(string: some Collection<UInt8>, to output: inout [UInt8]) {
    output.append(UInt8(string.count))
    output.append(contentsOf: string)
  }
}
