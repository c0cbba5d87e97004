// ParserTraps.swift -- detects texts on which the TOML parser (toml++ 3.3 and 3.4) fails an assertion.
//
// CTOML refuses any such text, but cannot say where and why.

/// Whether a key, `]` or the end of the text follows the opening brackets of a table header.
///
/// Anything else makes the parser fail: it reads a key without checking that one begins.
func isHeaderWithKey(_ text: UnsafeBufferPointer<UInt8>, at bracket: Int) -> Bool {
  var next = bracket + 1
  if next < text.count, text[next] == UInt8(ascii: "[") { next += 1 }
  while next < text.count, text[next] == UInt8(ascii: " ") || text[next] == UInt8(ascii: "\t") { next += 1 }
  return next == text.count || isBareKeyOctet(text[next]) || "\"']".utf8.contains(text[next])
}

/// Whether ten characters that look like a date begin here, and a space and a digit follow them.
///
/// The parser then expects a time and does not check that more than one digit follows. No valid text looks like that
/// between keys and values.
func isDateBeforeDigit(_ text: UnsafeBufferPointer<UInt8>, at start: Int) -> Bool {
  guard isDigit(text[start]), start == 0 || !isBareKeyOctet(text[start - 1]) else { return false }
  var next = start
  var characters = 0
  while next < text.count, text[next] > UInt8(ascii: " "), characters <= 10 {
    // The parser counts neither underscores nor UTF-8 continuation octets.
    if text[next] != UInt8(ascii: "_"), text[next] & 0xC0 != 0x80 {
      let isHyphenPlace = characters == 4 || characters == 7
      if isHyphenPlace, text[next] != UInt8(ascii: "-") { return false }
      characters += 1
    }
    next += 1
  }
  return characters == 10 && next + 1 < text.count && text[next] == UInt8(ascii: " ") && isDigit(text[next + 1])
}

/// Whether a date and a `T` begin here, and no digit follows them.
///
/// The parser then parses a time without checking that one begins.
func isDateWithoutTime(_ text: UnsafeBufferPointer<UInt8>, at start: Int) -> Bool {
  guard start == 0 || !isBareKeyOctet(text[start - 1]), start + 11 < text.count else { return false }
  for (place, sample) in "0000-00-00".utf8.enumerated() {
    let octet = text[start + place]
    guard sample == UInt8(ascii: "-") ? octet == sample : isDigit(octet) else { return false }
  }
  let separator = text[start + 10]
  return (separator == UInt8(ascii: "T") || separator == UInt8(ascii: "t")) && !isDigit(text[start + 11])
}

private func isBareKeyOctet(_ octet: UInt8) -> Bool {
  isLetterOrDigit(octet) || octet == UInt8(ascii: "_") || octet == UInt8(ascii: "-")
}
