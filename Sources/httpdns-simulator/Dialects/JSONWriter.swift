// JSONWriter.swift -- writes JSON text into an array, octet by octet.

import DNSWire

/// Compact JSON text under construction. The caller is responsible for its structure; the writer adds commas.
struct JSONWriter {
  private(set) var octets: [UInt8] = []
  private var needsComma = false

  init(capacity: Int = 512) { octets.reserveCapacity(capacity) }

  mutating func beginObject() { open(UInt8(ascii: "{")) }
  mutating func endObject() { close(UInt8(ascii: "}")) }
  mutating func beginArray() { open(UInt8(ascii: "[")) }
  mutating func endArray() { close(UInt8(ascii: "]")) }

  /// Writes a member's key that needs no escapes.
  mutating func key(_ key: StaticString) {
    separate()
    octets.append(UInt8(ascii: "\""))
    octets.append(contentsOf: UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount))
    octets.append(UInt8(ascii: "\""))
    octets.append(UInt8(ascii: ":"))
    needsComma = false
  }

  /// Writes a member's key that comes from data, with escapes.
  mutating func key(_ key: String) {
    string(key)
    octets.append(UInt8(ascii: ":"))
    needsComma = false
  }

  mutating func string(_ text: some StringProtocol) {
    separate()
    octets.append(UInt8(ascii: "\""))
    for octet in text.utf8 { appendEscaped(octet) }
    octets.append(UInt8(ascii: "\""))
  }

  mutating func number(_ value: some BinaryInteger) {
    separate()
    if let value = UInt64(exactly: value) { digits(value) } else { octets.append(contentsOf: value.description.utf8) }
  }

  mutating func bool(_ value: Bool) {
    separate()
    octets.append(contentsOf: (value ? "true" : "false").utf8)
  }

  /// Writes a value that is already JSON text.
  mutating func raw(_ json: [UInt8]) {
    separate()
    octets.append(contentsOf: json)
  }

  mutating func null() {
    separate()
    octets.append(contentsOf: "null".utf8)
  }

  /// Writes a domain name's presentation text as a string.
  mutating func name(_ name: DomainName, finalDot: Bool) {
    separate()
    octets.append(UInt8(ascii: "\""))
    var position = 0
    while name.octets[position] != 0 {
      if position > 0 { octets.append(UInt8(ascii: ".")) }
      let end = position + 1 + Int(name.octets[position])
      for octet in name.octets[(position + 1)..<end] { appendLabel(octet) }
      position = end
    }
    if finalDot || name.isRoot { octets.append(UInt8(ascii: ".")) }
    octets.append(UInt8(ascii: "\""))
  }

  private mutating func open(_ bracket: UInt8) {
    separate()
    octets.append(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    octets.append(bracket)
    needsComma = true
  }

  private mutating func separate() {
    if needsComma { octets.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func digits(_ value: UInt64) {
    if value >= 10 { digits(value / 10) }
    octets.append(UInt8(ascii: "0") + UInt8(value % 10))
  }

  private mutating func appendEscaped(_ octet: UInt8) {
    switch octet {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"):
      octets.append(UInt8(ascii: "\\"))
      octets.append(octet)
    case 0..<0x20, 0x7F:
      octets.append(contentsOf: "\\u00".utf8)
      octets.append(hexDigits[Int(octet >> 4)])
      octets.append(hexDigits[Int(octet & 15)])
    default:
      octets.append(octet)
    }
  }

  private mutating func appendLabel(_ octet: UInt8) {
    if isHostOctet(octet) {
      octets.append(octet)
    } else {
      for escaped in presentation(of: octet) { appendEscaped(escaped) }
    }
  }
}

let hexDigits = Array("0123456789abcdef".utf8)

/// The octets in lower-case hexadecimal.
func hex(_ octets: some Sequence<UInt8>, separator: String = "") -> String {
  octets.map { String(decoding: [hexDigits[Int($0 >> 4)], hexDigits[Int($0 & 15)]], as: UTF8.self) }
    .joined(separator: separator)
}

/// An octet in the presentation format of a label or a string (RFC 1035 section 5.1).
func presentation(of octet: UInt8) -> [UInt8] {
  switch octet {
  case UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: ";"), UInt8(ascii: "("),
    UInt8(ascii: ")"), UInt8(ascii: "@"), UInt8(ascii: "$"):
    [UInt8(ascii: "\\"), octet]
  case 0x21...0x7E: [octet]
  default: [UInt8(ascii: "\\"), 48 + octet / 100, 48 + octet / 10 % 10, 48 + octet % 10]
  }
}

private func isHostOctet(_ octet: UInt8) -> Bool {
  asciiLowercase(octet) &- 97 < 26 || octet &- 48 < 10 || octet == UInt8(ascii: "-") || octet == UInt8(ascii: "_")
}
