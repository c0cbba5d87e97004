// TextReader.swift -- a cursor over presentation text (RFC 1035 section 5.1): words, strings, numbers, names.

/// Reads the fields of one record's presentation text. Each read returns nil if the text does not match.
struct TextReader {
  private let octets: [UInt8]
  private var position = 0

  init(_ text: String) { octets = Array(text.utf8) }

  /// Steps over spaces and tabs.
  mutating func skipSpaces() {
    while position < octets.count, isSpace(octets[position]) { position += 1 }
  }

  /// Whether all octets are consumed.
  var isAtEnd: Bool { position == octets.count }
  /// Whether a word or string may end here.
  var isAtBoundary: Bool { isAtEnd || isSpace(octets[position]) }
  /// The remaining octets, unchanged.
  var rest: ArraySlice<UInt8> { octets[position...] }

  /// Steps over the octet if it comes next.
  mutating func take(_ octet: UInt8) -> Bool {
    guard !isAtEnd, octets[position] == octet else { return false }
    position += 1
    return true
  }

  /// The next octets that fulfil `condition`; may be empty.
  mutating func take(while condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
    let taken = rest.prefix(while: condition)
    position = taken.endIndex
    return taken
  }

  /// The next word with its escapes undecoded. Nil at the end, and for a word with an unprintable octet or one that is
  /// special in zone files: quotes, parentheses, semicolons.
  mutating func word() -> ArraySlice<UInt8>? {
    skipSpaces()
    let start = position
    while !isAtBoundary {
      let octet = octets[position]
      guard (0x21...0x7E).contains(octet), !isSpecial(octet) else { return nil }
      // A backslash escapes the next octet, even a space.
      guard octet != backslash || position + 1 < octets.count else { return nil }
      position += octet == backslash ? 2 : 1
    }
    return position > start ? octets[start..<position] : nil
  }

  /// The next word as a decimal number.
  mutating func number<Number: FixedWidthInteger & UnsignedInteger>(_ type: Number.Type) -> Number? {
    word().flatMap { decimalNumber($0, as: type) }
  }

  /// The next word as a domain name.
  mutating func name() -> DomainName? {
    // A lone "@" stands for the origin of a zone file, which is unknown here.
    guard let word = word(), !word.elementsEqual([UInt8(ascii: "@")]) else { return nil }
    return DomainName(text: String(decoding: word, as: UTF8.self))
  }

  /// The next word as an address.
  mutating func address(isIPv6: Bool) -> IPAddress? {
    guard let word = word(), let address = IPAddress(text: String(decoding: word, as: UTF8.self)) else { return nil }
    return address.isIPv6 == isIPv6 ? address : nil
  }

  /// The remaining words without the spaces between them; nil if one is malformed.
  mutating func joinedWords() -> [UInt8]? {
    var joined: [UInt8] = []
    skipSpaces()
    while !isAtEnd {
      guard let word = word() else { return nil }
      joined += word
      skipSpaces()
    }
    return joined
  }

  /// The next quoted string or word with decoded escapes.
  mutating func string() -> [UInt8]? {
    skipSpaces()
    return !isAtEnd && octets[position] == quote ? quotedString() : word().flatMap { unescape($0) }
  }

  /// The quoted string that begins here; nil if a quote is missing or the closing one is not followed by a space.
  mutating func quotedString() -> [UInt8]? {
    guard take(quote) else { return nil }
    let start = position
    while !isAtEnd, octets[position] != quote {
      guard octets[position] != backslash || position + 1 < octets.count else { return nil }
      position += octets[position] == backslash ? 2 : 1
    }
    guard !isAtEnd else { return nil }
    let content = octets[start..<position]
    position += 1
    return isAtBoundary ? unescape(content) : nil
  }
}

/// Text with its escapes `\DDD` and `\X` decoded. Nil for an incomplete escape or one above 255.
func unescape(_ text: ArraySlice<UInt8>) -> [UInt8]? {
  var output: [UInt8] = []
  output.reserveCapacity(text.count)
  var input = text.makeIterator()
  while let octet = input.next() {
    if octet == backslash {
      guard let value = DomainName.unescape(&input) else { return nil }
      output.append(value)
    } else {
      output.append(octet)
    }
  }
  return output
}

let backslash = UInt8(ascii: "\\")
let quote = UInt8(ascii: "\"")
let comma = UInt8(ascii: ",")
let hyphen = UInt8(ascii: "-")
let colon = UInt8(ascii: ":")

/// Whether the octet separates words.
func isSpace(_ octet: UInt8) -> Bool { octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t") }

/// Whether the octet, unescaped in a word, is special in a zone file.
func isSpecial(_ octet: UInt8) -> Bool {
  switch octet {
  case quote, UInt8(ascii: ";"), UInt8(ascii: "("), UInt8(ascii: ")"): true
  default: false
  }
}
