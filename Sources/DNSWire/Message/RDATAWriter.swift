// RDATAWriter.swift -- RDATA, octets → text, field by field.

/// Writes the fields of valid RDATA, separated by spaces.
struct TextWriter: ~Copyable {
  private let rdata: [UInt8]
  private var position = 0
  private var output: [UInt8] = []

  init(_ rdata: [UInt8]) { self.rdata = rdata }

  /// The text so far.
  var text: String { String(decoding: output, as: UTF8.self) }

  private var isAtEnd: Bool { position == rdata.count }

  /// Writes the next field.
  ///
  /// - Returns: false if the field has no text form, so that the RDATA needs the generic form.
  mutating func write(_ field: RDATAField) -> Bool {
    if !output.isEmpty { output.append(UInt8(ascii: " ")) }
    switch field {
    // The last fields, and none may be empty.
    case .strings where isAtEnd, .words where isAtEnd, .hexadecimal where isAtEnd, .base64 where isAtEnd: return false
    case .octet, .algorithm, .digestType: output += String(number(1)).utf8
    case .short: output += String(number(2)).utf8
    case .long: output += String(number(4)).utf8
    case .ipv4: output += IPAddress(octets: take(4))!.description.utf8
    case .ipv6: output += IPAddress(octets: take(16))!.description.utf8
    case .name: output += name().text.utf8
    case .string: output += quoted(take(number(1)))
    case .strings, .words:
      output += quoted(take(number(1)))
      while !isAtEnd { output += [UInt8(ascii: " ")] + quoted(take(number(1))) }
    case .tag: output += take(number(1))
    case .quoted: output += quoted(takeRest())
    case .hexadecimal: output += Hexadecimal.encode(takeRest()).utf8
    case .base64, .key: output += Base64.encode(takeRest()).utf8
    case .parameters: output += ServiceParameters.text(takeRest())
    case .opaque: return false
    case .type: output += RecordType(UInt16(number(2))).description.utf8
    case .certificateType: output += String(number(2)).utf8
    case .time: output += SignatureTime(seconds: UInt32(number(4))).text.utf8
    case .salt:
      let salt = take(number(1))
      output += salt.isEmpty ? [hyphen] : Array(Hexadecimal.encode(salt).utf8)
    case .hash: output += Base32Hexadecimal.encode(take(number(1)))
    case .types:
      guard let types = TypeBitmaps.types(takeRest()) else { return false }
      output += types.map(\.description).joined(separator: " ").utf8
    case .locator: output += groups(take(8), of: 2, separator: colon)
    case .hyphenated(let count): output += groups(take(count), of: 1, separator: hyphen)
    case .whole(let form):
      guard let text = form.text(takeRest()) else { return false }
      output += text.utf8
    }
    if output.last == UInt8(ascii: " ") { output.removeLast() }
    return true
  }

  private func groups(_ octets: ArraySlice<UInt8>, of count: Int, separator: UInt8) -> [UInt8] {
    let groups = stride(from: octets.startIndex, to: octets.endIndex, by: count).map {
      Array(Hexadecimal.encode(octets[$0..<($0 + count)]).utf8)
    }
    return Array(groups.joined(separator: [separator]))
  }

  private mutating func take(_ count: Int) -> ArraySlice<UInt8> {
    defer { position += count }
    return rdata[position..<(position + count)]
  }

  private mutating func takeRest() -> ArraySlice<UInt8> { take(rdata.count - position) }

  private mutating func number(_ count: Int) -> Int { take(count).reduce(0) { $0 << 8 | Int($1) } }

  private mutating func name() -> DomainName {
    let start = position
    while rdata[position] != 0 { position += Int(rdata[position]) + 1 }
    position += 1
    return DomainName(unchecked: Array(rdata[start..<position]))
  }
}

/// The octets in quotes. Quotes and backslashes are escaped; octets outside printable ASCII become `\DDD`.
func quoted(_ octets: ArraySlice<UInt8>) -> [UInt8] {
  var output: [UInt8] = [quote]
  for octet in octets {
    switch octet {
    case quote, backslash: output += [backslash, octet]
    case 0x20...0x7E: output.append(octet)
    default: output += [backslash, 48 + octet / 100, 48 + octet / 10 % 10, 48 + octet % 10]
    }
  }
  return output + [quote]
}
