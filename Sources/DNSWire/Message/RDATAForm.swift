// RDATAForm.swift -- RDATA whose fields depend on each other: locations, prefixes, host identities, gateways.

/// The form of RDATA as a whole.
enum RDATAForm {
  /// LOC, RFC 1876.
  case location
  /// APL, RFC 3123.
  case prefixes
  /// HIP, RFC 8005.
  case hostIdentity
  /// IPSECKEY, RFC 4025.
  case ipsecKey
  /// AMTRELAY, RFC 8777.
  case relay
  /// NSAP, RFC 1706.
  case nsap

  /// The octets of the rest of the text; nil if it does not have this form.
  func parse(_ reader: inout TextReader) -> [UInt8]? {
    switch self {
    case .location: Location(&reader)?.octets
    case .prefixes: reader.words().flatMap { AddressPrefixes.octets($0) }
    case .hostIdentity: HostIdentity.octets(&reader)
    case .ipsecKey: Gateway.ipsecKey(&reader)
    case .relay: Gateway.relay(&reader)
    case .nsap:
      reader.word().flatMap { word in
        guard word.starts(with: [UInt8(ascii: "0"), UInt8(ascii: "x")]), word.count > 2 else { return nil }
        return Hexadecimal.decode(word.dropFirst(2).filter { $0 != UInt8(ascii: ".") })
      }
    }
  }

  /// The text of RDATA; nil if it does not have this form.
  func text(_ rdata: ArraySlice<UInt8>) -> String? {
    switch self {
    case .location: Location(octets: rdata)?.text
    case .prefixes: AddressPrefixes.text(rdata)
    case .hostIdentity: HostIdentity.text(rdata)
    case .ipsecKey: Gateway.ipsecKeyText(rdata)
    case .relay: Gateway.relayText(rdata)
    case .nsap: rdata.isEmpty ? nil : "0x" + Hexadecimal.encode(rdata)
    }
  }
}

/// The address prefixes of APL (RFC 3123).
private enum AddressPrefixes {
  static func octets(_ words: [ArraySlice<UInt8>]) -> [UInt8]? {
    var output: [UInt8] = []
    for word in words {
      var item = word
      let isNegated = item.first == UInt8(ascii: "!")
      if isNegated { item = item.dropFirst() }
      guard let end = item.firstIndex(of: colon), let slash = item.lastIndex(of: UInt8(ascii: "/")), end < slash,
        let family = decimalNumber(item[..<end], as: UInt16.self), family == 1 || family == 2,
        let address = IPAddress(text: String(decoding: item[(end + 1)..<slash], as: UTF8.self)),
        address.isIPv6 == (family == 2), let length = decimalNumber(item[(slash + 1)...], as: UInt8.self),
        Int(length) <= address.octets.count * 8
      else { return nil }
      // Trailing zero octets are omitted (RFC 3123 section 4).
      let part = address.octets[...(address.octets.lastIndex { $0 != 0 } ?? -1)]
      output += bigEndian(family) + [length, (isNegated ? 0x80 : 0) | UInt8(part.count)] + part
    }
    return output
  }

  static func text(_ rdata: ArraySlice<UInt8>) -> String? {
    var items: [String] = []
    var rest = rdata
    while !rest.isEmpty {
      guard rest.count >= 4 else { return nil }
      let header = Array(rest.prefix(4))
      let (size, count) = (header[1] == 1 ? 4 : 16, Int(header[3] & 0x7F))
      rest = rest.dropFirst(4)
      guard header[0] == 0, header[1] == 1 || header[1] == 2, count <= size, rest.count >= count,
        let address = IPAddress(octets: rest.prefix(count) + [UInt8](repeating: 0, count: size - count))
      else { return nil }
      items.append("\(header[3] & 0x80 == 0 ? "" : "!")\(header[1]):\(address)/\(header[2])")
      rest = rest.dropFirst(count)
    }
    return items.joined(separator: " ")
  }
}

/// The host identity, its tag and the rendezvous servers of HIP.
private enum HostIdentity {
  static func octets(_ reader: inout TextReader) -> [UInt8]? {
    guard let algorithm = reader.number(UInt8.self), let tag = reader.word().flatMap({ Hexadecimal.decode($0) }),
      let key = reader.word().flatMap({ Base64.decode($0) }), 1...255 ~= tag.count, 1...65_535 ~= key.count
    else { return nil }
    var output = [UInt8(tag.count), algorithm] + bigEndian(UInt16(key.count)) + tag + key
    reader.skipSpaces()
    while !reader.isAtEnd {
      guard let server = reader.name() else { return nil }
      output += server.octets
      reader.skipSpaces()
    }
    return output
  }

  static func text(_ rdata: ArraySlice<UInt8>) -> String? {
    guard rdata.count > 4 else { return nil }
    let header = Array(rdata.prefix(4))
    let (tagLength, keyLength) = (Int(header[0]), Int(header[2]) << 8 | Int(header[3]))
    var rest = rdata.dropFirst(4)
    guard tagLength > 0, keyLength > 0, rest.count >= tagLength + keyLength else { return nil }
    var words = [String(header[1]), Hexadecimal.encode(rest.prefix(tagLength))]
    rest = rest.dropFirst(tagLength)
    words.append(Base64.encode(rest.prefix(keyLength)))
    rest = rest.dropFirst(keyLength)
    while !rest.isEmpty {
      guard let server = Gateway.name(&rest) else { return nil }
      words.append(server.text)
    }
    return words.joined(separator: " ")
  }
}

/// The gateway of IPSECKEY and the relay of AMTRELAY: nothing, an address or a name, selected by a preceding number.
private enum Gateway {
  private static func octets(_ type: UInt8, _ reader: inout TextReader) -> [UInt8]? {
    switch type {
    case 0: reader.name().flatMap { $0.isRoot ? [] : nil }
    case 1: reader.address(isIPv6: false)?.octets
    case 2: reader.address(isIPv6: true)?.octets
    case 3: reader.name()?.octets
    default: nil
    }
  }

  private static func text(_ type: UInt8, _ rest: inout ArraySlice<UInt8>) -> String? {
    switch type {
    case 0: return "."
    case 1, 2:
      let size = type == 1 ? 4 : 16
      guard rest.count >= size, let address = IPAddress(octets: rest.prefix(size)) else { return nil }
      rest = rest.dropFirst(size)
      return address.description
    case 3: return name(&rest)?.text
    default: return nil
    }
  }

  static func name(_ rest: inout ArraySlice<UInt8>) -> DomainName? {
    var end = rest.startIndex
    while end < rest.endIndex, rest[end] != 0 { end += Int(rest[end]) + 1 }
    guard end < rest.endIndex, let name = DomainName(octets: Array(rest[...end])) else { return nil }
    rest = rest[(end + 1)...]
    return name
  }

  static func ipsecKey(_ reader: inout TextReader) -> [UInt8]? {
    guard let precedence = reader.number(UInt8.self), let type = reader.number(UInt8.self),
      let algorithm = reader.number(UInt8.self), let gateway = octets(type, &reader),
      let key = reader.joinedWords().flatMap({ Base64.decode($0) })
    else { return nil }
    return [precedence, type, algorithm] + gateway + key
  }

  static func ipsecKeyText(_ rdata: ArraySlice<UInt8>) -> String? {
    guard rdata.count >= 3 else { return nil }
    let header = Array(rdata.prefix(3))
    var rest = rdata.dropFirst(3)
    guard let gateway = text(header[1], &rest) else { return nil }
    let key = rest.isEmpty ? "" : " " + Base64.encode(rest)
    return "\(header[0]) \(header[1]) \(header[2]) \(gateway)\(key)"
  }

  static func relay(_ reader: inout TextReader) -> [UInt8]? {
    guard let precedence = reader.number(UInt8.self), let isOptional = reader.number(UInt8.self), isOptional <= 1,
      let type = reader.number(UInt8.self), let relay = octets(type, &reader)
    else { return nil }
    return [precedence, isOptional << 7 | type] + relay
  }

  static func relayText(_ rdata: ArraySlice<UInt8>) -> String? {
    guard rdata.count >= 2 else { return nil }
    let header = Array(rdata.prefix(2))
    var rest = rdata.dropFirst(2)
    guard let relay = text(header[1] & 0x7F, &rest), rest.isEmpty else { return nil }
    return "\(header[0]) \(header[1] >> 7) \(header[1] & 0x7F) \(relay)"
  }
}
