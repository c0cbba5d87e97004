// QueryTarget.swift -- builds the path and query of a request.

import DNSWire

/// A request target under construction. Names and values are encoded as they are added, so that nothing that a stub
/// resolver or a configuration file holds can add a parameter of its own.
struct QueryTarget {
  /// Path and query so far.
  private(set) var text: String
  private var separator: String

  /// A target that begins with a path, which may have a query of its own.
  init(path: String) {
    text = path
    text.reserveCapacity(path.utf8.count + 320)
    separator = path.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"
  }

  /// Adds a parameter whose value consists of characters that stand for themselves in a query.
  mutating func add(_ name: StaticString, plain value: String) {
    text.append(separator)
    name.withUTF8Buffer { text.append(String(decoding: $0, as: UTF8.self)) }
    text.append("=")
    text.append(value)
    separator = "&"
  }

  /// Adds a parameter, percent-encoding all but RFC 3986's unreserved characters.
  mutating func add(_ name: StaticString, encoding value: String) {
    add(name, plain: value.utf8.allSatisfy(isUnreserved) ? value : percentEncoded(value))
  }

  /// Adds a subnet. `/` and `:` stand for themselves in a query (RFC 3986 section 3.4), and providers' own programs
  /// send them so.
  mutating func addClientSubnet(_ prefix: IPPrefix) {
    add("edns_client_subnet", plain: prefix.description)
  }

  /// Adds a parameter that brings the target to a multiple of `block` octets. It says nothing, so that it need not be
  /// random: over TLS only its length shows, and of one character the length is known after header compression too.
  mutating func pad(_ name: StaticString, toMultipleOf block: Int) {
    let length = text.utf8.count + separator.utf8.count + name.utf8CodeUnitCount + 1
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

/// Whether a text is a plain name's, in any case and with or without its final dot. False for the root.
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
  var encoded = ""
  let digits = Array("0123456789ABCDEF".unicodeScalars)
  for octet in text.utf8 {
    if isUnreserved(octet) {
      encoded.unicodeScalars.append(Unicode.Scalar(octet))
    } else {
      encoded.append("%")
      encoded.unicodeScalars.append(digits[Int(octet >> 4)])
      encoded.unicodeScalars.append(digits[Int(octet & 15)])
    }
  }
  return encoded
}

private func isUnreserved(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"):
    true
  default: false
  }
}
