// RDATAParser.swift -- one field of RDATA, text → octets.

extension TextReader {
  /// The octets of the next field; nil if the text does not match.
  mutating func parse(_ field: RDATAField) -> [UInt8]? {
    switch field {
    case .octet: number(UInt8.self).map { [$0] }
    case .short: number(UInt16.self).map { bigEndian($0) }
    case .long: number(UInt32.self).map { bigEndian($0) }
    case .algorithm: word().flatMap { code($0, of: algorithmMnemonics) }
    case .digestType: word().flatMap { code($0, of: digestMnemonics) }
    case .ipv4: address(isIPv6: false)?.octets
    case .ipv6: address(isIPv6: true)?.octets
    case .name: name()?.octets
    case .string: string().flatMap { counted($0) }
    case .strings: nil  // parsed as a whole, because TXT has several text forms
    case .tag: word().flatMap { $0.allSatisfy(isLetterOrDigit) ? counted(Array($0)) : nil }
    case .quoted: string()
    case .hexadecimal: joinedWords().flatMap { $0.isEmpty ? nil : Hexadecimal.decode($0) }
    case .base64: joinedWords().flatMap { $0.isEmpty ? nil : Base64.decode($0) }
    case .parameters: ServiceParameters.parse(&self)
    case .opaque: nil
    case .type: word().flatMap { RecordType(text: String(decoding: $0, as: UTF8.self)) }.map { bigEndian($0.rawValue) }
    case .certificateType: word().flatMap { codepoint(of: $0, in: certificateMnemonics) }.map { bigEndian($0) }
    case .time: word().flatMap { SignatureTime(text: $0) }.map { bigEndian($0.seconds) }
    case .salt: word().flatMap { $0.elementsEqual([hyphen]) ? [] : Hexadecimal.decode($0) }.flatMap { counted($0) }
    case .hash: word().flatMap { Base32Hexadecimal.decode($0) }.flatMap { counted($0) }
    case .types: words().flatMap { TypeBitmaps.octets($0) }
    case .key: joinedWords().flatMap { Base64.decode($0) }
    case .locator: word().flatMap { groups($0, of: 4, separator: colon) }.flatMap { $0.count == 8 ? $0 : nil }
    case .hyphenated(let count):
      word().flatMap { groups($0, of: 2, separator: hyphen) }.flatMap { $0.count == count ? $0 : nil }
    case .words: characterStrings()
    case .whole(let form): form.parse(&self)
    }
  }

  /// The remaining words.
  mutating func words() -> [ArraySlice<UInt8>]? {
    var words: [ArraySlice<UInt8>] = []
    skipSpaces()
    while !isAtEnd {
      guard let word = word() else { return nil }
      words.append(word)
      skipSpaces()
    }
    return words
  }

  /// The remaining words and quoted strings as character-strings; nil if there are none.
  private mutating func characterStrings() -> [UInt8]? {
    var output: [UInt8] = []
    repeat {
      guard let string = string().flatMap({ counted($0) }) else { return nil }
      output += string
      skipSpaces()
    } while !isAtEnd
    return output
  }
}

/// The octets of groups of `count` hexadecimal digits.
private func groups(_ word: ArraySlice<UInt8>, of count: Int, separator: UInt8) -> [UInt8]? {
  let groups = word.split(separator: separator, omittingEmptySubsequences: false)
  guard groups.allSatisfy({ $0.count == count }) else { return nil }
  return Hexadecimal.decode(groups.flatMap { $0 })
}

/// The octets of a number in network byte order.
func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

/// A length octet and the octets; nil for more than 255.
func counted(_ octets: [UInt8]) -> [UInt8]? { octets.count <= 255 ? [UInt8(octets.count)] + octets : nil }

/// A number, or a mnemonic in any case, with or without hyphens: servers differ.
private func code(_ word: ArraySlice<UInt8>, of mnemonics: [(String, UInt8)]) -> [UInt8]? {
  codepoint(of: word, in: mnemonics).map { [$0] }
}

private func codepoint<Number: FixedWidthInteger & UnsignedInteger>(
  of word: ArraySlice<UInt8>, in mnemonics: [(String, Number)]
) -> Number? {
  if let number = decimalNumber(word, as: Number.self) { return number }
  let letters = String(decoding: word, as: UTF8.self).uppercased().filter { $0 != "-" && $0 != "_" }
  return mnemonics.first { $0.0 == letters }?.1
}

/// IANA's "CERT RR Certificate Types".
private let certificateMnemonics: [(String, UInt16)] = [
  ("PKIX", 1), ("SPKI", 2), ("PGP", 3), ("IPKIX", 4), ("ISPKI", 5), ("IPGP", 6), ("ACPKIX", 7), ("IACPKIX", 8),
  ("URI", 253), ("OID", 254),
]

/// IANA's "DNS Security Algorithm Numbers", without hyphens.
private let algorithmMnemonics: [(String, UInt8)] = [
  ("DELETE", 0), ("RSAMD5", 1), ("DH", 2), ("DSA", 3), ("RSASHA1", 5), ("DSANSEC3SHA1", 6), ("RSASHA1NSEC3SHA1", 7),
  ("RSASHA256", 8), ("RSASHA512", 10), ("ECCGOST", 12), ("ECDSAP256SHA256", 13), ("ECDSAP384SHA384", 14),
  ("ED25519", 15), ("ED448", 16), ("SM2SM3", 17), ("ECCGOST12", 23), ("INDIRECT", 252), ("PRIVATEDNS", 253),
  ("PRIVATEOID", 254),
]

/// IANA's "Digest Algorithms" of DS records, without hyphens.
private let digestMnemonics: [(String, UInt8)] = [
  ("SHA1", 1), ("SHA256", 2), ("GOST", 3), ("SHA384", 4), ("GOST12", 5), ("SM3", 6),
]
