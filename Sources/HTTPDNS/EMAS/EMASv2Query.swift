// EMASv2Query.swift -- builds and signs the request target of version 2 of the EMAS API.

import Ciphers
import DNSWire

/// A request target under construction, together with the text that its signature covers.
struct EMASv2Query {
  /// A parameter before any encoding.
  typealias Parameter = (name: String, value: String)

  private var target = QueryTarget(path: "/v2/d")
  private var parameters: [Parameter] = []

  /// Creates a target without parameters.
  init() { parameters.reserveCapacity(8) }

  /// Adds a parameter. Every character of the value must be allowed in a query.
  mutating func add(_ name: StaticString, plain value: String) {
    target.add(name, plain: value)
    parameters.append((name.description, value))
  }

  /// Adds a parameter with a percent-encoded value. The signature covers the value without encoding.
  mutating func add(_ name: StaticString, encoding value: String) {
    target.add(name, encoding: value)
    parameters.append((name.description, value))
  }

  /// Returns the target, with `s` if there is a key.
  consuming func target(signedWith key: HMACSHA256?) -> String {
    if let key { target.add("s", plain: EMASv2Query.signature(of: parameters, key: key)) }
    return target.text
  }

  /// The lower-case hexadecimal HMAC-SHA256 of the parameters.
  static func signature(of parameters: [Parameter], key: HMACSHA256) -> String {
    Hexadecimal.encode(key.code(of: signedText(of: parameters)))
  }

  /// The parameters with a value, sorted by name, as `name=value` joined by `&`.
  static func signedText(of parameters: [Parameter]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(512)
    for parameter in parameters.sorted(by: { $0.name < $1.name }) where !parameter.value.isEmpty {
      if !text.isEmpty { text.append(UInt8(ascii: "&")) }
      text.append(parameter.name)
      text.append(UInt8(ascii: "="))
      text.append(parameter.value)
    }
    return text
  }
}
