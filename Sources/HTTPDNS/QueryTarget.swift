// QueryTarget.swift -- builds the path and query of a request.

import DNSWire

/// A request target under construction. Names and values are encoded as they are added, so that nothing that a stub
/// resolver or a configuration file holds can add a parameter of its own.
struct QueryTarget {
  private var octets: [UInt8] = []
  private var separator: UInt8

  /// Path and query so far.
  var text: String { String(decoding: octets, as: UTF8.self) }

  /// A target that begins with a path, which may have a query of its own.
  init(path: String) {
    octets.reserveCapacity(512)
    octets.append(path)
    separator = octets.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?")
  }

  /// Adds a parameter whose value consists of characters that stand for themselves in a query.
  mutating func add(_ name: StaticString, plain value: String) {
    begin(name)
    octets.append(value)
  }

  /// Adds a parameter, percent-encoding all but RFC 3986's unreserved characters.
  mutating func add(_ name: StaticString, encoding value: String) {
    begin(name)
    octets.appendPercentEncoded(value)
  }

  private mutating func begin(_ name: StaticString) {
    octets.append(separator)
    name.withUTF8Buffer { octets.append(contentsOf: $0) }
    octets.append(UInt8(ascii: "="))
    separator = UInt8(ascii: "&")
  }

  /// Adds a subnet. `/` and `:` stand for themselves in a query (RFC 3986 section 3.4), and providers' own programs
  /// send them so.
  mutating func addClientSubnet(_ prefix: IPPrefix) {
    add("edns_client_subnet", plain: prefix.description)
  }

  /// Adds a parameter that brings the target to a multiple of `block` octets. It says nothing, so that it need not be
  /// random: over TLS only its length shows, and of one character the length is known after header compression too.
  mutating func pad(_ name: StaticString, toMultipleOf block: Int) {
    // A separator before the name, and an equals sign behind it.
    let length = octets.count + name.utf8CodeUnitCount + 2
    let missing = (block - length % block) % block
    add(
      name,
      plain: String(unsafeUninitializedCapacity: missing) {
        $0.initialize(repeating: UInt8(ascii: "x"))
        return missing
      })
  }
}

/// A plain name as it stands in a URL and in what is signed: lower case, without the final dot.
///
/// - Precondition: `name.isPlain`, and it is not the root.
func plainText(of name: DomainName) -> String {
  precondition(name.isPlain && !name.isRoot, "a name that may not stand in a URL")
  return String(unsafeUninitializedCapacity: name.octets.count) { output in
    var written = 0
    var position = 0
    while name.octets[position] != 0 {
      let end = position + Int(name.octets[position]) + 1
      if written > 0 {
        output[written] = UInt8(ascii: ".")
        written += 1
      }
      for octet in name.octets[(position + 1)..<end] {
        output[written] = asciiLowercase(octet)
        written += 1
      }
      position = end
    }
    return written
  }
}

extension QuestionBatch {
  /// The names as they stand in a URL and in what is signed, separated by commas.
  var plainNames: String {
    // Nearly every batch has one name.
    names.count == 1 ? plainText(of: names[0]) : names.map(plainText).joined(separator: ",")
  }
}

/// Whether a text is a plain name's, in any case and with or without its final dot. False for the root.
///
/// - Precondition: `name.isPlain`: the text of another name has escapes.
func isPlainText(_ text: UnsafeRawBufferPointer, of name: DomainName) -> Bool {
  let octets = name.octets.span
  // Each label has one octet before it in wire form and one behind it in text.
  let length = octets.count - 2
  guard length > 0, text.count == length || text.count == length + 1 && text[length] == UInt8(ascii: ".") else {
    return false
  }
  var position = 0
  while octets[position] != 0 {
    let end = position + Int(octets[position])
    for index in position..<end where asciiLowercase(text[index]) != asciiLowercase(octets[index + 1]) {
      return false
    }
    guard end == length || text[end] == UInt8(ascii: ".") else { return false }
    position = end + 1
  }
  return true
}

/// The text with all but RFC 3986's unreserved characters percent-encoded.
func percentEncoded(_ text: String) -> String {
  var octets: [UInt8] = []
  octets.appendPercentEncoded(text)
  return String(decoding: octets, as: UTF8.self)
}

extension [UInt8] {
  /// Appends a text. Through the text's view of octets it would take several times as long.
  mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(contentsOf: $0) }
  }

  fileprivate mutating func appendPercentEncoded(_ text: String) {
    for octet in text.utf8 {
      if isUnreserved(octet) {
        append(octet)
      } else {
        append(UInt8(ascii: "%"))
        append(upperCaseDigit(octet >> 4))
        append(upperCaseDigit(octet & 15))
      }
    }
  }
}

private func upperCaseDigit(_ value: UInt8) -> UInt8 {
  value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
}

private func isUnreserved(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
    true
  default: false
  }
}
