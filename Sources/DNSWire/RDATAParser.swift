// RDATAParser.swift -- one part of RDATA, text → octets.

extension TextReader {
  /// The octets of the next part; nil where the text has something else.
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
    case .string: string().flatMap { characterString($0) }
    case .strings: nil  // TXT alone has them, and more forms of text than one part can see
    case .tag: word().flatMap { $0.allSatisfy(isLetterOrDigit) ? characterString(Array($0)) : nil }
    case .quoted: string()
    case .hexadecimal: joinedWords().flatMap { $0.isEmpty ? nil : decodeHexadecimal($0) }
    case .base64: joinedWords().flatMap { $0.isEmpty ? nil : decodeBase64($0) }
    case .parameters: ServiceParameters.parse(&self)
    case .opaque: nil
    }
  }
}

/// The octets of a number in network order.
func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
  withUnsafeBytes(of: number.bigEndian) { Array($0) }
}

private func characterString(_ octets: [UInt8]) -> [UInt8]? {
  octets.count <= 255 ? [UInt8(octets.count)] + octets : nil
}

/// A number, or a mnemonic with or without its hyphens in any case: servers differ.
private func code(_ word: ArraySlice<UInt8>, of mnemonics: [(String, UInt8)]) -> [UInt8]? {
  if let number = decimalNumber(word, as: UInt8.self) { return [number] }
  let letters = String(decoding: word, as: UTF8.self).uppercased().filter { $0 != "-" && $0 != "_" }
  return mnemonics.first { $0.0 == letters }.map { [$0.1] }
}

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
