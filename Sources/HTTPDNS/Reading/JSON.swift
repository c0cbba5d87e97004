// JSON.swift -- a JSON text under limits, read in place through the accessors of CJSON.

import CJSON

/// Limits of a JSON body; CJSON.h has the others.
enum JSONLimit {
  /// Octets of a body.
  static let octets = JSON_MAXIMUM_OCTETS
  /// Octets of a body that may hold what a whole DNS message does: 4,000 addresses, each with its owner name and a few more
  /// members.
  static let message = 500 << 10
}

/// Reads a JSON text and hands its root to `read`; what `read` gets is valid until it returns.
///
/// Refused are: more than the limits of CJSON.h allow, invalid UTF-8, NUL characters, a member twice in an object,
/// numbers that 64 bits cannot hold, a root that is neither array nor object, and anything behind it.
///
/// - Parameter limit: octets of the text; in the limits of CJSON.h it takes the place of the one for octets.
/// - Complexity: O(*n*) in the octets.
func withJSON<Value>(
  _ body: [UInt8], limit: Int = JSONLimit.octets, _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
) throws(HTTPDNSFailure) -> Value {
  var text: OpaquePointer?
  var root = json_value()
  switch body.withUnsafeBytes({ json_open_within(limit, $0.baseAddress, $0.count, &text, &root) }) {
  case JSON_READ: break
  case JSON_TOO_LARGE: throw .unreadable(.tooLarge)
  case JSON_TOO_DEEP: throw .unreadable(.nesting)
  default: throw .unreadable(.syntax)
  }
  defer { json_close(text) }
  return try read(JSONValue(handle: root))
}

/// A value in a JSON text. It borrows from the text and never outlives the closure that got it.
struct JSONValue {
  /// Valid as long as `withJSON` has the text open.
  let handle: json_value

  /// Whether this is an object.
  var isObject: Bool { json_kind_of(handle) == JSON_OBJECT }
  /// Whether this is an array.
  var isArray: Bool { json_kind_of(handle) == JSON_ARRAY }
  /// Whether this is a string.
  var isString: Bool { json_kind_of(handle) == JSON_STRING }
  /// Whether this is the literal `true`.
  var isTrue: Bool { json_kind_of(handle) == JSON_TRUE }

  /// An object's member of that name; nil where there is none, where it is null, or where this is no object.
  subscript(name: StaticString) -> JSONValue? {
    var member = json_value()
    let isFound = name.withUTF8Buffer {
      json_find(handle, UnsafeRawPointer($0.baseAddress), $0.count, &member)
    }
    return isFound && json_kind_of(member) != JSON_NULL ? JSONValue(handle: member) : nil
  }

  /// How many elements an array has, or members an object; 0 for anything else.
  var count: Int { json_count(handle) }

  /// The element of an array that has exactly one.
  var onlyElement: JSONValue? {
    var elements = self.elements.makeIterator()
    guard isArray, let element = elements.next(), elements.next() == nil else { return nil }
    return element
  }

  /// An array's elements; empty for anything else.
  var elements: JSONElements { JSONElements(array: self) }

  /// A number without fraction, or a text of decimal digits, not above `limit`; nil for anything else.
  func number(upTo limit: UInt32) -> UInt32? {
    var value: UInt64 = 0
    if !json_unsigned_of(handle, &value) {
      guard let octets, let number = decimal(octets[...]) else { return nil }
      value = UInt64(number)
    }
    return value <= limit ? UInt32(value) : nil
  }

  /// A string's octets, valid UTF-8; nil for anything else.
  var octets: UnsafeRawBufferPointer? {
    var string = json_string()
    guard json_string_of(handle, &string) else { return nil }
    return UnsafeRawBufferPointer(start: string.octets, count: string.count)
  }

  /// The octets of the address that a string is; nil for one of the other family, and for anything else.
  func address(isIPv6: Bool) -> [UInt8]? {
    var string = json_string()
    guard json_string_of(handle, &string) else { return nil }
    return addressOctets(string.octets, isIPv6: isIPv6)
  }

  /// A string's text; nil for anything else.
  var text: String? { octets.map { String(decoding: $0, as: UTF8.self) } }
}

/// The elements of an array in a JSON text.
struct JSONElements: Sequence, IteratorProtocol {
  private var rest: json_iterator

  /// The elements of an array; none of anything else.
  fileprivate init(array: JSONValue) {
    rest = array.isArray ? json_iterate(array.handle) : json_iterator()
  }

  /// The next element; nil at the end.
  mutating func next() -> JSONValue? {
    var element = json_value()
    return json_next(&rest, &element) ? JSONValue(handle: element) : nil
  }
}

/// The number that one to ten decimal digits stand for: enough for 32 bits, and too few to overflow 64. Nil for
/// anything else.
func decimal(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
  guard (1...10).contains(digits.count) else { return nil }
  var value = 0
  for octet in digits {
    guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet) else { return nil }
    value = value * 10 + Int(octet - UInt8(ascii: "0"))
  }
  return value
}
