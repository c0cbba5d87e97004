// ServiceParameterValues.swift -- the values of known SvcParamKeys (RFC 9460 section 7, RFC 9461, RFC 9540).

extension ServiceParameters.Key {
  /// The wire octets of a value whose escapes were decoded once; nil if it does not have this key's form.
  func octets(_ value: [UInt8]) -> [UInt8]? {
    switch self {
    case .mandatory:
      let keys = items(value).compactMap { ServiceParameters.number(ofKey: $0) }.sorted()
      // Refuses unknown names, duplicate keys and `mandatory` itself (section 8).
      guard keys.count == items(value).count, Set(keys).count == keys.count, keys.first != 0 else { return nil }
      return keys.flatMap { bigEndian($0) }
    case .alpn:
      guard let protocols = ServiceParameters.list(value), protocols.allSatisfy({ 1...255 ~= $0.count }) else {
        return nil
      }
      return protocols.flatMap { [UInt8($0.count)] + $0 }
    case .noDefaultALPN, .ohttp: return value.isEmpty ? [] : nil
    case .port: return decimalNumber(value, as: UInt16.self).map { bigEndian($0) }
    case .ipv4Hint: return addresses(value, isIPv6: false)
    case .ipv6Hint: return addresses(value, isIPv6: true)
    case .ech: return value.isEmpty ? nil : Base64.decode(value)
    case .dohPath: return value.isEmpty ? nil : value
    }
  }

  /// The text of a value, not yet escaped; nil if the octets do not have this key's form.
  func text(_ octets: ArraySlice<UInt8>) -> [UInt8]? {
    switch self {
    case .mandatory:
      let keys = ServiceParameters.shorts(octets)
      guard !keys.isEmpty, octets.count.isMultiple(of: 2), keys[0] != 0, zip(keys, keys.dropFirst()).allSatisfy(<)
      else { return nil }
      return Array(keys.map { Self(rawValue: $0)?.name ?? "key\($0)" }.joined(separator: ",").utf8)
    case .alpn: return ServiceParameters.text(list: octets)
    case .noDefaultALPN, .ohttp: return octets.isEmpty ? [] : nil
    case .port: return octets.count == 2 ? Array(String(ServiceParameters.shorts(octets)[0]).utf8) : nil
    case .ipv4Hint: return text(addresses: octets, of: 4)
    case .ipv6Hint: return text(addresses: octets, of: 16)
    case .ech: return octets.isEmpty ? nil : Array(Base64.encode(octets).utf8)
    case .dohPath: return octets.isEmpty ? nil : Array(octets)
    }
  }

  private func items(_ value: [UInt8]) -> [String] {
    value.split(separator: comma, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
  }

  private func addresses(_ value: [UInt8], isIPv6: Bool) -> [UInt8]? {
    let addresses = items(value).compactMap { IPAddress(text: $0) }.filter { $0.isIPv6 == isIPv6 }
    return addresses.count == items(value).count ? addresses.flatMap(\.octets) : nil
  }

  private func text(addresses octets: ArraySlice<UInt8>, of size: Int) -> [UInt8]? {
    guard !octets.isEmpty, octets.count.isMultiple(of: size) else { return nil }
    let addresses = stride(from: octets.startIndex, to: octets.endIndex, by: size).map {
      IPAddress(octets: octets[$0..<($0 + size)])!.description
    }
    return Array(addresses.joined(separator: ",").utf8)
  }
}

extension ServiceParameters {
  /// The items of a comma-separated list with the escapes `\,` and `\\` (RFC 9460 appendix A.1); nil for any other
  /// escape.
  fileprivate static func list(_ value: [UInt8]) -> [[UInt8]]? {
    var items: [[UInt8]] = [[]]
    var input = value.makeIterator()
    while let octet = input.next() {
      if octet == backslash {
        guard let escaped = input.next(), escaped == comma || escaped == backslash else { return nil }
        items[items.count - 1].append(escaped)
      } else if octet == comma {
        items.append([])
      } else {
        items[items.count - 1].append(octet)
      }
    }
    return items
  }

  /// A list of character-strings as text; nil if it is empty, or one of them is empty or incomplete.
  fileprivate static func text(list octets: ArraySlice<UInt8>) -> [UInt8]? {
    var output: [UInt8] = []
    var rest = octets
    while let count = rest.popFirst() {
      guard count > 0, rest.count >= Int(count) else { return nil }
      if !output.isEmpty { output.append(comma) }
      for octet in rest.prefix(Int(count)) {
        output += octet == comma || octet == backslash ? [backslash, octet] : [octet]
      }
      rest = rest.dropFirst(Int(count))
    }
    return output.isEmpty ? nil : output
  }
}
