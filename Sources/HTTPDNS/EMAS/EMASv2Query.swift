// EMASv2Query.swift -- builds and signs the request target of version 2 of the EMAS API.

import Ciphers
import DNSWire

/// A request target under construction, together with the text that its signature covers.
struct EMASv2Query {
  private var target = QueryTarget(path: "/v2/d")
  private var parameters: [EMAS.Parameter] = []

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

  /// Adds a parameter of the configuration, whose name needs no encoding.
  mutating func add(_ parameter: EMAS.Parameter) {
    target.add(given: parameter.name, encoding: parameter.value)
    parameters.append(parameter)
  }

  /// Returns the target, with `s` if there is a key.
  consuming func target(signedWith key: HMACSHA256?) -> String {
    if let key { target.add("s", plain: EMASv2Query.signature(of: parameters, key: key)) }
    return target.text
  }

  /// The lower-case hexadecimal HMAC-SHA256 of the parameters.
  static func signature(of parameters: [EMAS.Parameter], key: HMACSHA256) -> String {
    Hexadecimal.encode(key.code(of: signedText(of: parameters)))
  }

  /// The parameters with a value, sorted by name, as `name=value` joined by `&`.
  static func signedText(of parameters: [EMAS.Parameter]) -> [UInt8] {
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
