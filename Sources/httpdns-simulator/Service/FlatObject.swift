// FlatObject.swift -- parses parameters in a body: a flat JSON object or a query.

import CJSON

/// Parses a body: a JSON object of strings, numbers and Booleans, or `name=value&…`; nil for any other JSON object.
func bodyParameters(_ body: [UInt8]) -> Parameters? {
  guard body.first == UInt8(ascii: "{") else { return Parameters(query: String(decoding: body, as: UTF8.self)) }
  return flatObject(body)
}

/// The members of a JSON object of strings, numbers and Booleans; nil for any other text.
func flatObject(_ body: [UInt8]) -> Parameters? {
  var text: OpaquePointer?
  var object = json_value()
  guard body.withUnsafeBytes({ json_open($0.baseAddress, $0.count, &text, &object) }) == JSON_READ else { return nil }
  defer { json_close(text) }
  guard json_kind_of(object) == JSON_OBJECT else { return nil }
  var pairs: [(name: String, value: [UInt8])] = []
  var members = json_iterate(object)
  var name = json_string()
  var value = json_value()
  while json_next_member(&members, &name, &value) {
    guard let plain = plainText(value) else { return nil }
    pairs.append((String(cString: name.octets), Array(plain.utf8)))
  }
  return Parameters(pairs: pairs)
}

/// A JSON string, number or Boolean as text; nil for any other value.
private func plainText(_ value: json_value) -> String? {
  switch json_kind_of(value) {
  case JSON_STRING:
    var string = json_string()
    return json_string_of(value, &string) ? String(cString: string.octets) : nil
  case JSON_INTEGER:
    var number: Int64 = 0
    return json_signed_of(value, &number) ? "\(number)" : nil
  case JSON_REAL:
    var number = 0.0
    return json_double_of(value, &number) ? "\(number)" : nil
  case JSON_TRUE: return "true"
  case JSON_FALSE: return "false"
  default: return nil
  }
}
