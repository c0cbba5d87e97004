// ListedName.swift -- a name of a list: from text to wire form in one pass, in memory that is used again for each name.

import DNSWire
import PublicSuffixes

/// What a line selects.
public enum ListForm: UInt8, CaseIterable, Sendable {
  /// The name and all below it.
  case subtree
  /// The name alone.
  case alone
  /// Takes the name and all below it out of the list.
  case exception
}

/// A name that a line selects. Valid only until the next one is read.
public struct ListedName {
  public let form: ListForm
  /// The name in lower case, uncompressed; see `starts`.
  let octets: UnsafePointer<UInt8>
  /// The offset of each label.
  let starts: UnsafePointer<UInt8>
  public let labelCount: Int
  /// The same name as text without the final dot, which ends with a zero octet.
  let text: UnsafePointer<CChar>
  let length: Int

  public var name: DomainName { DomainName(unchecked: Array(UnsafeBufferPointer(start: octets, count: length + 2))) }

  /// Whether the line is about a name: about this one alone, or about all below as well.
  public func selects(_ name: DomainName) -> Bool {
    let extra = name.octets.count - (length + 2)
    guard form == .alone ? extra == 0 : extra >= 0 else { return false }
    var position = 0
    while position < extra { position += Int(name.octets[position]) + 1 }
    guard position == extra else { return false }
    return (0..<(length + 2)).allSatisfy { asciiLowercase(name.octets[extra + $0]) == octets[$0] }
  }

  /// Whether it is a public suffix, which a rule that blocks leaves out.
  public var isPublicSuffix: Bool { PublicSuffixes.contains(text: text) }
}

/// Room for one name, and the reading of it.
struct NameBuffer: ~Copyable {
  private let octets = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
  private let starts = UnsafeMutablePointer<UInt8>.allocate(capacity: 128)
  private let text = UnsafeMutablePointer<CChar>.allocate(capacity: 256)
  private var labelCount = 0
  private var length = 0

  deinit {
    octets.deallocate()
    starts.deallocate()
    text.deallocate()
  }

  func name(_ form: ListForm) -> ListedName {
    ListedName(
      form: form, octets: octets, starts: starts, labelCount: labelCount, text: text, length: length)
  }

  /// Reads a name: 1 to 127 labels of letters, digits, `-` and `_`, at most 253 octets; one dot may follow.
  ///
  /// - Returns: why it is no name; nil if it was read.
  mutating func read(_ given: LineText) -> LeftOutReason? {
    let part = given.last == UInt8(ascii: ".") ? given.dropLast() : given
    guard !part.isEmpty, part.count <= 253 else { return .noName }
    labelCount = 0
    length = part.count
    // The compiler does not know that these stay.
    let (octets, text) = (octets, text)
    var label = 0
    for index in 0..<length {
      let octet = part[index]
      let letter = nameOctets[Int(octet)]
      if letter != 0 {
        text[index] = CChar(bitPattern: letter)
        octets[index + 1] = letter
        continue
      }
      guard octet == UInt8(ascii: ".") else { return NameBuffer.reason(part, at: index) }
      guard end(label, at: index) else { return .noName }
      text[index] = CChar(bitPattern: octet)
      label = index + 1
    }
    guard end(label, at: length) else { return .noName }
    text[length] = 0
    octets[length + 1] = 0
    // A number at the end makes it an address, or nothing.
    while label < length {
      guard 48...57 ~= part[label] else { return nil }
      label += 1
    }
    return part.isIPv4 ? .address : .noName
  }

  /// Ends a label; false if it is empty or too long.
  private mutating func end(_ label: Int, at index: Int) -> Bool {
    guard 1...63 ~= index - label else { return false }
    octets[label] = UInt8(index - label)
    starts[labelCount] = UInt8(label)
    labelCount += 1
    return true
  }

  /// Why a text is no name, by the first octet that no name has.
  private static func reason(_ part: LineText, at index: Int) -> LeftOutReason {
    if part.isCosmetic { return .cosmetic }
    return switch part[index] {
    case UInt8(ascii: "*"): .wildcard
    case UInt8(ascii: ":") where part.isIPv6: part.index(of: "/") == nil ? .address : .network
    case UInt8(ascii: "/") where part.prefix(index).isIPv4: .network
    case UInt8(ascii: "$"): .modifier
    default: .noName
    }
  }
}

extension LineText {
  /// Whether it has the form of an IPv4 address.
  var isIPv4: Bool { count(of: ".") { 48...57 ~= $0 } == 3 }

  /// Whether it has the form of an IPv6 address or network, with or without a scope.
  var isIPv6: Bool {
    let colons = split(at: "%").0.count(of: ":") { 48...57 ~= $0 || 97...102 ~= asciiLowercase($0) || 46...47 ~= $0 }
    return colons.map { $0 >= 2 } ?? false
  }

  /// Whether it hides elements of pages: `example.com##.banner`, or with some of `@`, `$`, `?`, `%` between both `#`.
  var isCosmetic: Bool {
    guard let index = index(of: "#") else { return false }
    var rest = dropFirst(index + 1)
    while "@$?%".utf8.contains(rest.first) { rest = rest.dropFirst() }
    return rest.first == UInt8(ascii: "#")
  }

  /// How often an octet occurs; nil if one of the others is not allowed.
  private func count(of octet: Unicode.Scalar, _ isAllowed: (UInt8) -> Bool) -> Int? {
    var count = 0
    for other in UnsafeBufferPointer(start: start, count: self.count) {
      if other == UInt8(ascii: octet) {
        count += 1
      } else if !isAllowed(other) {
        return nil
      }
    }
    return count
  }
}

/// For each octet that may stand in a label, its lower case; 0 for all others.
private let nameOctets: InlineArray<256, UInt8> = InlineArray { index in
  switch UInt8(index) {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
    UInt8(ascii: "_"):
    UInt8(index)
  case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt8(index) | 0x20
  default: 0
  }
}
