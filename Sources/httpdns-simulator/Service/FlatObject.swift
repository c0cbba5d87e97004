// FlatObject.swift -- parses parameters in a body: a flat JSON object or a query.

import JSON

/// Parses a body: a JSON object of strings, numbers and Booleans, or `name=value&…`; nil for any other JSON object.
func bodyParameters(_ body: [UInt8]) -> Parameters? {
  guard body.first == UInt8(ascii: "{") else { return Parameters(query: String(decoding: body, as: UTF8.self)) }
  return flatObject(body)
}

/// The members of a JSON object of strings, numbers and Booleans; nil for any other text.
func flatObject(_ body: [UInt8]) -> Parameters? {
  try? withJSON(body, orThrow: { $0 }) { object throws(JSONRefusal) in
    guard object.isObject else { throw .syntax }
    var pairs: [(name: String, value: [UInt8])] = []
    for (name, value) in object.members {
      let number = value.signed.map { "\($0)" } ?? value.real.map { "\($0)" }
      guard let plain = value.text ?? number ?? value.boolean.map({ "\($0)" }) else { throw .syntax }
      pairs.append((name, Array(plain.utf8)))
    }
    return Parameters(pairs: pairs)
  }
}
