// JSON.swift -- a JSON text under limits, read in place through jansson's accessors.

import CJSON

/// Limits of a JSON body.
enum JSONLimit {
  /// Octets of a body; the largest DNS message with addresses in text is about this long.
  static let octets = 65_536
  /// Arrays and objects within each other. An answer has three; jansson's own limit is 2,048.
  static let nesting = 16
}

/// Reads a JSON text and hands its root to `read`; what `read` gets is valid until it returns.
///
/// Refused are: more than `JSONLimit` allows, invalid UTF-8, NUL characters, a member twice in an object, numbers that
/// 64 bits cannot hold, and anything behind the root.
///
/// - Complexity: O(*n*) in the octets.
func withJSON<Value>(
  _ body: [UInt8], _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
) throws(HTTPDNSFailure) -> Value {
  guard body.count <= JSONLimit.octets else { throw .unreadable(.tooLarge) }
  guard nestingIsBounded(body.span) else { throw .unreadable(.nesting) }
  let parsed = body.withUnsafeBytes {
    json_loadb($0.baseAddress, $0.count, Int(JSON_REJECT_DUPLICATES), nil)
  }
  guard let parsed else { throw .unreadable(.syntax) }
  defer { json_decref(parsed) }
  return try read(JSONValue(pointer: parsed))
}

/// Whether brackets outside of strings are at most `JSONLimit.nesting` deep: jansson would recurse before it refuses.
func nestingIsBounded(_ text: Span<UInt8>) -> Bool {
  var depth = 0
  var isInString = false
  var index = 0
  while index < text.count {
    let octet = text[index]
    index += 1
    if isInString {
      if octet == UInt8(ascii: "\\") {
        index += 1
      } else if octet == UInt8(ascii: "\"") {
        isInString = false
      }
      continue
    }
    switch octet {
    case UInt8(ascii: "\""): isInString = true
    case UInt8(ascii: "["), UInt8(ascii: "{"):
      depth += 1
      guard depth <= JSONLimit.nesting else { return false }
    case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
    default: break
    }
  }
  return true
}

/// A value in a JSON text. It borrows from the text and never outlives the closure that got it.
struct JSONValue {
  /// Owned by `withJSON`.
  let pointer: UnsafeMutablePointer<json_t>

  private var type: json_type { pointer.pointee.type }

  /// Whether this is an object.
  var isObject: Bool { type == JSON_OBJECT }
  /// Whether this is an array.
  var isArray: Bool { type == JSON_ARRAY }
  /// Whether this is the literal `true`.
  var isTrue: Bool { type == JSON_TRUE }

  /// An object's member of that name; nil where there is none, where it is null, or where this is no object.
  subscript(name: StaticString) -> JSONValue? {
    let member = name.withUTF8Buffer { json_object_getn(pointer, $0.baseAddress, $0.count) }
    guard let member, member.pointee.type != JSON_NULL else { return nil }
    return JSONValue(pointer: member)
  }

  /// How many elements an array has; 0 for anything else.
  var count: Int { json_array_size(pointer) }

  /// The element of an array that has exactly one.
  var onlyElement: JSONValue? { count == 1 ? JSONValue(pointer: json_array_get(pointer, 0)) : nil }

  /// An array's elements; empty for anything else.
  var elements: some Sequence<JSONValue> {
    (0..<count).lazy.map { JSONValue(pointer: json_array_get(pointer, $0)) }
  }

  /// A number without fraction, or a text of decimal digits, not above `limit`; nil for anything else.
  func number(upTo limit: UInt32) -> UInt32? {
    if type == JSON_INTEGER {
      return UInt32(exactly: json_integer_value(pointer)).flatMap { $0 <= limit ? $0 : nil }
    }
    // Ten digits are enough for 32 bits and too few to overflow 64.
    guard let text, (1...10).contains(text.utf8.count) else { return nil }
    var value: UInt64 = 0
    for octet in text.utf8 {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet) else { return nil }
      value = value * 10 + UInt64(octet - UInt8(ascii: "0"))
    }
    return value <= limit ? UInt32(value) : nil
  }

  /// A string's octets, valid UTF-8; nil for anything else.
  var octets: UnsafeRawBufferPointer? {
    guard type == JSON_STRING else { return nil }
    return UnsafeRawBufferPointer(start: json_string_value(pointer), count: json_string_length(pointer))
  }

  /// A string's text; nil for anything else.
  var text: String? { octets.map { String(decoding: $0, as: UTF8.self) } }
}
