// DomainName.swift -- a domain name in wire form, and its presentation text (RFC 1035 section 5.1).

/// Limits of RFC 1035 section 2.3.4.
public enum NameLimit {
  /// Octets of a label.
  @inlinable public static var label: Int { @_noAllocation get { 63 } }
  /// Octets of a whole name in wire form, including length octets and the root's zero.
  @inlinable public static var name: Int { @_noAllocation get { 255 } }
}

/// An absolute domain name. Comparison and hash ignore ASCII case (RFC 4343); the octets preserve it.
public struct DomainName: Sendable {
  /// Uncompressed wire form: labels with their length octets, ended by a zero octet.
  public let octets: [UInt8]

  public static let root = DomainName(unchecked: [0])

  /// A name from wire octets. The caller guarantees that they are one valid uncompressed name; other properties trap
  /// otherwise.
  public init(unchecked octets: [UInt8]) { self.octets = octets }

  /// A name from uncompressed wire octets; nil if they are not exactly one valid name.
  public init?(octets: [UInt8]) {
    guard octets.count <= NameLimit.name else { return nil }
    var position = 0
    while position < octets.count, octets[position] != 0 {
      guard octets[position] <= NameLimit.label else { return nil }
      position += Int(octets[position]) + 1
    }
    guard position == octets.count - 1 else { return nil }
    self.octets = octets
  }

  /// A name from presentation text: `\.` and `\DDD` escapes, final dot optional, `.` the root.
  /// Nil for an empty or too long label, a name of more than 255 octets, or a broken escape.
  public init?(text: some StringProtocol) {
    guard !text.isEmpty else { return nil }
    guard text != "." else {
      self = .root
      return
    }
    var octets: [UInt8] = [0]
    octets.reserveCapacity(text.utf8.count + 2)
    var labelStart = 0
    var input = text.utf8.makeIterator()
    var endsWithDot = false
    while let octet = input.next() {
      endsWithDot = octet == UInt8(ascii: ".")
      if endsWithDot {
        guard octets.count - labelStart > 1 else { return nil }
        octets[labelStart] = UInt8(octets.count - labelStart - 1)
        labelStart = octets.count
        octets.append(0)
        continue
      }
      if octet == UInt8(ascii: "\\") {
        guard let value = DomainName.unescape(&input) else { return nil }
        octets.append(value)
      } else {
        octets.append(octet)
      }
      guard octets.count - labelStart - 1 <= NameLimit.label else { return nil }
    }
    if !endsWithDot {
      octets[labelStart] = UInt8(octets.count - labelStart - 1)
      octets.append(0)
    }
    guard octets.count <= NameLimit.name else { return nil }
    self.octets = octets
  }

  /// The octet that follows a backslash: three decimal digits, or the character itself.
  static func unescape(_ input: inout some IteratorProtocol<UInt8>) -> UInt8? {
    guard let first = input.next() else { return nil }
    guard isDigit(first) else { return first }
    guard let second = input.next(), isDigit(second), let third = input.next(), isDigit(third) else { return nil }
    let hundreds = Int(first - 48) * 100
    let tens = Int(second - 48) * 10
    return UInt8(exactly: hundreds + tens + Int(third - 48))
  }

  public var isRoot: Bool { octets.count == 1 }

  /// How many labels the name has; the root has none.
  public var labelCount: Int {
    var count = 0
    var position = 0
    while octets[position] != 0 {
      position += Int(octets[position]) + 1
      count += 1
    }
    return count
  }

  /// The name without its first label; nil for the root.
  public var parent: DomainName? { isRoot ? nil : DomainName(unchecked: Array(octets[(Int(octets[0]) + 1)...])) }

  /// The same name in lower case (ASCII letters only).
  public var lowercased: DomainName {
    // Most names are in lower case already.
    octets.contains { asciiLowercase($0) != $0 } ? DomainName(unchecked: octets.map(asciiLowercase)) : self
  }

  public func isAtOrBelow(_ ancestor: DomainName) -> Bool {
    let extra = octets.count - ancestor.octets.count
    guard extra >= 0 else { return false }
    var position = 0
    while position < extra { position += Int(octets[position]) + 1 }
    guard position == extra else { return false }
    return zip(octets[extra...], ancestor.octets).allSatisfy { asciiLowercase($0) == asciiLowercase($1) }
  }

  /// Whether the labels consist only of letters, digits, hyphens and underscores, which need no escaping in a URL.
  public var isPlain: Bool {
    var position = 0
    while octets[position] != 0 {
      let end = position + Int(octets[position]) + 1
      for octet in octets[(position + 1)..<end] where !isPlainOctet(octet) { return false }
      position = end
    }
    return true
  }

  /// Presentation text with a final dot; special and unprintable octets are escaped.
  public var text: String {
    guard !isRoot else { return "." }
    var text = ""
    text.reserveCapacity(octets.count)
    var position = 0
    while octets[position] != 0 {
      let end = position + Int(octets[position]) + 1
      for octet in octets[(position + 1)..<end] { appendEscaped(octet, to: &text) }
      text.append(".")
      position = end
    }
    return text
  }
}

extension DomainName: Hashable, CustomStringConvertible {
  /// Octet by octet, without regard to ASCII case.
  public static func == (left: DomainName, right: DomainName) -> Bool {
    guard left.octets.count == right.octets.count else { return false }
    // Fast path: most names are in lower case already.
    if left.octets == right.octets { return true }
    for position in left.octets.indices
    where asciiLowercase(left.octets[position]) != asciiLowercase(right.octets[position]) {
      return false
    }
    return true
  }

  /// Hashes the lower-case octets.
  public func hash(into hasher: inout Hasher) {
    withUnsafeTemporaryAllocation(byteCount: octets.count, alignment: 1) { folded in
      for index in octets.indices { folded[index] = asciiLowercase(octets[index]) }
      hasher.combine(bytes: UnsafeRawBufferPointer(folded))
    }
  }

  /// The presentation text.
  public var description: String { text }
}

/// ASCII lower case; every other octet as it is (RFC 4343).
@_noAllocation @inlinable
public func asciiLowercase(_ octet: UInt8) -> UInt8 {
  octet &- 65 < 26 ? octet | 0x20 : octet
}

func isDigit(_ octet: UInt8) -> Bool { octet &- 48 < 10 }

private func isPlainOctet(_ octet: UInt8) -> Bool {
  asciiLowercase(octet) &- 97 < 26 || isDigit(octet) || octet == UInt8(ascii: "-") || octet == UInt8(ascii: "_")
}

private func appendEscaped(_ octet: UInt8, to text: inout String) {
  switch octet {
  case UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: ";"), UInt8(ascii: "("),
    UInt8(ascii: ")"), UInt8(ascii: "@"), UInt8(ascii: "$"):
    text.append("\\")
    text.unicodeScalars.append(Unicode.Scalar(octet))
  case 0x21...0x7E: text.unicodeScalars.append(Unicode.Scalar(octet))
  default:
    let digits = String(octet)
    text.append("\\" + String(repeating: "0", count: 3 - digits.count) + digits)
  }
}
