// ServiceParameters.swift -- the SvcParams of SVCB and HTTPS records between wire and text (RFC 9460).

/// SvcParams: unique keys with values, on the wire in ascending order of keys.
enum ServiceParameters {
  /// A key with a name and a known value format.
  enum Key: UInt16, CaseIterable {
    case mandatory, alpn, noDefaultALPN, port, ipv4Hint, ech, ipv6Hint, dohPath, ohttp

    private static let names = [
      "mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint", "dohpath", "ohttp",
    ]

    var name: String { Key.names[Int(rawValue)] }
  }

  /// The octets of the remaining parameters of the text. Nil for a duplicate key, a value without its key's form, or a
  /// missing mandatory key.
  static func parse(_ reader: inout TextReader) -> [UInt8]? {
    var parameters: [UInt16: [UInt8]] = [:]
    var mandatory: [UInt16] = []
    reader.skipSpaces()
    while !reader.isAtEnd {
      let name = String(decoding: reader.take(while: isKeyOctet), as: UTF8.self)
      guard let number = number(ofKey: name) else { return nil }
      let hasValue = reader.take(UInt8(ascii: "="))
      guard let value = hasValue && !reader.isAtBoundary ? reader.string() : [], reader.isAtBoundary else { return nil }
      // The value of a key given by number is opaque, even if the key has a name (RFC 9460 section 2.1).
      let known = name.hasPrefix("key") ? nil : Key(rawValue: number)
      guard let octets = known.map({ $0.octets(value) }) ?? value, octets.count <= 65_535 else { return nil }
      guard parameters.updateValue(octets, forKey: number) == nil else { return nil }
      if known == .mandatory { mandatory = shorts(octets[...]) }
      reader.skipSpaces()
    }
    guard mandatory.allSatisfy({ parameters[$0] != nil }) else { return nil }
    return parameters.sorted { $0.key < $1.key }.flatMap { key, value in
      bigEndian(key) + bigEndian(UInt16(value.count)) + value
    }
  }

  /// The text of valid SvcParams. A value without its key's form is written under the key's number.
  static func text(_ octets: ArraySlice<UInt8>) -> [UInt8] {
    let parameters = split(octets)
    let keys = Set(parameters.map(\.0))
    let texts = parameters.map { number, value -> [UInt8] in
      guard let key = Key(rawValue: number), let text = key.text(value),
        key != .mandatory || keys.isSuperset(of: shorts(value))
      else { return text(name: "key\(number)", value: Array(value)) }
      return self.text(name: key.name, value: text)
    }
    return Array(texts.joined(separator: [UInt8(ascii: " ")]))
  }

  private static func text(name: String, value: [UInt8]) -> [UInt8] {
    value.isEmpty ? Array(name.utf8) : Array("\(name)=".utf8) + bareOrQuoted(value)
  }

  /// The keys and values of valid SvcParams.
  private static func split(_ octets: ArraySlice<UInt8>) -> [(UInt16, ArraySlice<UInt8>)] {
    var parameters: [(UInt16, ArraySlice<UInt8>)] = []
    var rest = octets
    while rest.count >= 4 {
      let header = shorts(rest.prefix(4))
      let value = rest.dropFirst(4).prefix(Int(header[1]))
      parameters.append((header[0], value))
      rest = rest.dropFirst(4 + value.count)
    }
    return parameters
  }

  /// The number of a key, given by name or as `key` and a number without leading zeros.
  static func number(ofKey name: String) -> UInt16? {
    if let known = Key.allCases.first(where: { $0.name == name }) { return known.rawValue }
    guard name.hasPrefix("key"), let number = decimalNumber(name.utf8.dropFirst(3), as: UInt16.self) else { return nil }
    return name == "key\(number)" ? number : nil
  }

  /// The octets as consecutive 16-bit numbers.
  static func shorts(_ octets: ArraySlice<UInt8>) -> [UInt16] {
    stride(from: octets.startIndex, to: octets.endIndex - 1, by: 2).map {
      UInt16(octets[$0]) << 8 | UInt16(octets[$0 + 1])
    }
  }

  private static func isKeyOctet(_ octet: UInt8) -> Bool {
    octet &- 97 < 26 || isDigit(octet) || octet == UInt8(ascii: "-")
  }

  private static func bareOrQuoted(_ value: [UInt8]) -> [UInt8] {
    let isBare = value.allSatisfy { (0x21...0x7E).contains($0) && !isSpecial($0) && $0 != backslash }
    return isBare ? value : quoted(value[...])
  }
}
