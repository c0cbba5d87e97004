// EMASv2Query.swift -- builds and signs the request target of version 2 of the EMAS API.

import Ciphers

/// A request target and the text that its signature covers, under construction.
struct EMASv2Query {
  private var target = QueryTarget(path: "/v2/d")
  private var parameters: [(name: String, value: String)] = []

  /// Adds a parameter whose value consists of characters that stand for themselves in a query.
  mutating func add(_ name: StaticString, plain value: String) {
    target.add(name, plain: value)
    parameters.append((name.description, value))
  }

  /// Adds a parameter, percent-encoding its value in the target; the signature covers it as it is.
  mutating func add(_ name: StaticString, encoding value: String) {
    target.add(name, encoding: value)
    parameters.append((name.description, value))
  }

  /// The target, with `s` where there is a key.
  consuming func target(signedWith key: [UInt8]?) -> String {
    if let key { target.add("s", plain: EMASv2Query.signature(of: parameters, key: key)) }
    return target.text
  }

  /// The lower-case hexadecimal HMAC-SHA256 of the parameters.
  static func signature(of parameters: [(name: String, value: String)], key: [UInt8]) -> String {
    Hexadecimal.encode(Digest.hmacSHA256(key: key, message: Array(signedText(of: parameters).utf8)))
  }

  /// The parameters that are not empty, sorted by name, as they are before any encoding.
  static func signedText(of parameters: [(name: String, value: String)]) -> String {
    parameters.filter { !$0.value.isEmpty }.sorted { $0.name < $1.name }
      .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
  }
}
