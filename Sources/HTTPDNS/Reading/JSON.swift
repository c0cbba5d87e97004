// JSON.swift -- reads a JSON text in place, within limits, through the accessors of CJSON.

import CJSON

/// Limits of a JSON body; CJSON.h defines the others.
enum JSONLimit {
  /// Maximum octets of a body.
  static let octets = JSON_MAXIMUM_OCTETS
  /// Maximum octets of a body that may hold the contents of any DNS message: 4,000 addresses, each with its owner name
  /// and a few more members.
  static let message = 500 << 10
}

/// A mark that some editors and servers write before a text in UTF-8; RFC 8259 section 8.1 allows to ignore it.
let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

/// Parses a JSON text and passes its root to `read`. Values are valid until `read` returns.
///
/// Refuses texts beyond the limits of CJSON.h, invalid UTF-8, NUL characters, duplicate members in an object, numbers
/// beyond 64 bits, a root that is neither an array nor an object, and anything after the root. Skips a byte order mark.
///
/// - Parameter limit: maximum octets of the text; replaces `JSON_MAXIMUM_OCTETS`.
/// - Complexity: O(*n*) in the octets.
package func withJSON<Value>(
  _ body: [UInt8], limit: Int = 65_536, _ read: (JSONValue) throws(HTTPDNSFailure) -> Value
) throws(HTTPDNSFailure) -> Value {
  var text: OpaquePointer?
  var root = json_value()
  let start = body.first == byteOrderMark[0] && body.starts(with: byteOrderMark) ? byteOrderMark.count : 0
  // Some versions of the library skip a mark by themselves.
  guard start == 0 || !body.dropFirst(start).starts(with: byteOrderMark) else { throw .unreadable(.syntax) }
  let status = body.withUnsafeBytes { octets in
    json_open_within(limit, octets.baseAddress.map { $0 + start }, octets.count - start, &text, &root)
  }
  switch status {
  case JSON_READ: break
  case JSON_TOO_LARGE: throw .unreadable(.tooLarge)
  case JSON_TOO_DEEP: throw .unreadable(.nesting)
  default: throw .unreadable(.syntax)
  }
  defer { json_close(text) }
  return try read(JSONValue(handle: root))
}

/// A value in a JSON text. It borrows from the text and must not outlive the closure that received it.
package struct JSONValue {
  /// Valid while `withJSON` has the text open.
  let handle: json_value

  package var isObject: Bool { json_kind_of(handle) == JSON_OBJECT }
  package var isArray: Bool { json_kind_of(handle) == JSON_ARRAY }
  package var isString: Bool { json_kind_of(handle) == JSON_STRING }
  /// Whether this is the literal `true`.
  var isTrue: Bool { json_kind_of(handle) == JSON_TRUE }

  /// The member of an object with that name; nil if it does not exist or is null, or if this is not an object.
  package subscript(name: StaticString) -> JSONValue? {
    var member = json_value()
    let isFound = name.withUTF8Buffer {
      json_find(handle, UnsafeRawPointer($0.baseAddress), $0.count, &member)
    }
    return isFound && json_kind_of(member) != JSON_NULL ? JSONValue(handle: member) : nil
  }

  /// The number of elements of an array or of members of an object; 0 for any other value.
  package var count: Int { json_count(handle) }

  /// The element of an array with exactly one element; nil for any other value.
  var onlyElement: JSONValue? {
    var elements = self.elements.makeIterator()
    guard isArray, let element = elements.next(), elements.next() == nil else { return nil }
    return element
  }

  /// The elements of an array; empty for any other value.
  package var elements: JSONElements { JSONElements(array: self) }

  /// The value of a number without fraction, or of a string of decimal digits; nil above `limit` and for any other
  /// value.
  package func number(upTo limit: UInt32) -> UInt32? {
    var value: UInt64 = 0
    if !json_unsigned_of(handle, &value) {
      guard let octets, let number = decimal(octets[...]) else { return nil }
      value = UInt64(number)
    }
    return value <= limit ? UInt32(value) : nil
  }

  /// The octets of a string, valid UTF-8; nil for any other value. They are valid as long as the text is open.
  var octets: UnsafeRawBufferPointer? {
    var string = json_string()
    guard json_string_of(handle, &string) else { return nil }
    return UnsafeRawBufferPointer(start: string.octets, count: string.count)
  }

  /// The octets of the address in a string; nil for the other family and for any other value.
  func address(isIPv6: Bool) -> [UInt8]? {
    var string = json_string()
    guard json_string_of(handle, &string) else { return nil }
    return addressOctets(string.octets, isIPv6: isIPv6)
  }

  /// A copy of a string; nil for any other value.
  package var text: String? { octets.map { String(decoding: $0, as: UTF8.self) } }
}

/// The elements of an array in a JSON text.
package struct JSONElements: Sequence, IteratorProtocol {
  private var rest: json_iterator

  /// Starts at the first element; empty unless the value is an array.
  fileprivate init(array: JSONValue) {
    rest = array.isArray ? json_iterate(array.handle) : json_iterator()
  }

  package mutating func next() -> JSONValue? {
    var element = json_value()
    return json_next(&rest, &element) ? JSONValue(handle: element) : nil
  }
}

/// The value of one to ten decimal digits, which is enough for 32 bits and cannot overflow 64; nil for any other text.
func decimal(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
  guard (1...10).contains(digits.count) else { return nil }
  var value = 0
  for octet in digits {
    guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet) else { return nil }
    value = value * 10 + Int(octet - UInt8(ascii: "0"))
  }
  return value
}
