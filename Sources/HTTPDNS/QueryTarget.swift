// QueryTarget.swift -- builds the path and query of a request.

import DNSWire

/// A request target under construction. Names and values are encoded when they are added, so that no text from a stub
/// resolver or the configuration can add another parameter.
struct QueryTarget {
  private var octets: [UInt8] = []
  private var separator: UInt8

  /// The path and query so far.
  var text: String { String(decoding: octets, as: UTF8.self) }

  /// Starts with a path, which may have a query of its own.
  init(path: String) {
    octets.reserveCapacity(512)
    octets.append(path)
    separator = octets.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?")
  }

  /// Adds a parameter. Every character of the value must be allowed in a query.
  mutating func add(_ name: StaticString, plain value: String) {
    begin(name)
    octets.append(value)
  }

  /// Adds a parameter with a percent-encoded value; only RFC 3986's unreserved characters stay as they are.
  mutating func add(_ name: StaticString, encoding value: String) {
    begin(name)
    PercentText.append(value, to: &octets)
  }

  /// Adds a parameter of the configuration. Every character of the name must be allowed in a query; the value is encoded.
  mutating func add(given name: String, encoding value: String) {
    octets.append(separator)
    octets.append(name)
    octets.append(UInt8(ascii: "="))
    PercentText.append(value, to: &octets)
    separator = UInt8(ascii: "&")
  }

  private mutating func begin(_ name: StaticString) {
    octets.append(separator)
    name.withUTF8Buffer { octets.append(contentsOf: $0) }
    octets.append(UInt8(ascii: "="))
    separator = UInt8(ascii: "&")
  }

  /// Adds a subnet. `/` and `:` need no encoding in a query (RFC 3986 section 3.4), and the providers' own SDKs do not
  /// encode them.
  mutating func addClientSubnet(_ prefix: IPPrefix) { add("edns_client_subnet", plain: prefix.description) }

  /// Adds a parameter that extends the target to a multiple of `block` octets. Its value need not be random: TLS hides
  /// all but the length, and one repeated character has a predictable length after header compression as well.
  mutating func pad(_ name: StaticString, toMultipleOf block: Int) {
    // The separator before the name and the equals sign after it.
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

/// Returns a plain name as it appears in URLs and in signed texts: lower case, without the final dot.
///
/// - Precondition: `name.isPlain`, and it is not the root.
func plainText(of name: DomainName) -> String {
  precondition(name.isPlain && !name.isRoot, "a name that is not allowed in a URL")
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
  /// The names as they appear in URLs and in signed texts, separated by commas.
  var plainNames: String {
    // Nearly every batch has one name.
    names.count == 1 ? plainText(of: names[0]) : names.map(plainText).joined(separator: ",")
  }

  /// The address that the answers are tailored to, the first one of the subnet. Nil without a subnet, and for a subnet
  /// of length 0, which asks not to reveal an address (RFC 7871 section 7.1.2): services that take an address cannot express
  /// that, and see the source address of the connection.
  var clientAddress: IPAddress? { clientSubnet.flatMap { $0.length == 0 ? nil : $0.address } }
}

/// Whether a text is that plain name, in any case, with or without the final dot. False for the root.
///
/// - Precondition: `name.isPlain`, because the text of any other name has escapes.
func isPlainText(_ text: UnsafeRawBufferPointer, of name: DomainName) -> Bool {
  let octets = name.octets.span
  // Each label has one octet before it in wire format and one after it in text.
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

extension [UInt8] {
  /// Appends a text, several times faster than through its UTF-8 view.
  mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(contentsOf: $0) }
  }
}
