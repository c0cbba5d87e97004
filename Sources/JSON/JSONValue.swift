// JSONValue.swift -- reads a JSON text in place, within limits, through the accessors of CJSON.

import CJSON

/// Limits of a JSON text; CJSON.h defines the others.
package enum JSONLimit {
  /// Maximum octets of a text for which its reader sets no other limit.
  package static let octets = JSON_MAXIMUM_OCTETS
}

/// Why a text is not read.
package enum JSONRefusal: Error {
  /// Broken syntax, invalid UTF-8 or half a surrogate pair, a NUL character, a member twice, more than 256 members, a number
  /// beyond 64 bits, or a root that is neither array nor object.
  case syntax
  /// It exceeds the limit.
  case tooLarge
  /// Its nesting exceeds `JSON_MAXIMUM_DEPTH`.
  case nesting
}

/// A mark that some editors and servers write before a text in UTF-8; RFC 8259 section 8.1 allows to ignore it.
let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

/// Parses a JSON text and passes its root to `read`. Values are valid until `read` returns.
///
/// Refuses texts beyond the limits of CJSON.h, invalid UTF-8, NUL characters, duplicate members in an object, numbers
/// beyond 64 bits, a root that is neither an array nor an object, and anything after the root. Skips a byte order mark.
///
/// - Parameters:
///   - limit: maximum octets of the text.
///   - failure: the error for a text that is refused.
/// - Complexity: O(*n*) in the octets.
package func withJSON<Value, Failure>(
  _ text: [UInt8], limit: Int = JSONLimit.octets, orThrow failure: (JSONRefusal) -> Failure,
  _ read: (JSONValue) throws(Failure) -> Value
) throws(Failure) -> Value {
  var opened: OpaquePointer?
  var root = json_value()
  let start = text.first == byteOrderMark[0] && text.starts(with: byteOrderMark) ? byteOrderMark.count : 0
  // Some versions of the library skip a mark by themselves.
  guard start == 0 || !text.dropFirst(start).starts(with: byteOrderMark) else { throw failure(.syntax) }
  let status = text.withUnsafeBytes { octets in
    json_open(limit, octets.baseAddress.map { $0 + start }, octets.count - start, &opened, &root)
  }
  switch status {
  case JSON_READ: break
  case JSON_TOO_LARGE: throw failure(.tooLarge)
  case JSON_TOO_DEEP: throw failure(.nesting)
  default: throw failure(.syntax)
  }
  defer { json_close(opened) }
  return try read(JSONValue(handle: root))
}

/// A value in a JSON text. It borrows from the text and must not outlive the closure that received it.
package struct JSONValue {
  /// Valid while `withJSON` has the text open.
  fileprivate let handle: json_value

  package var isObject: Bool { json_kind_of(handle) == JSON_OBJECT }
  package var isArray: Bool { json_kind_of(handle) == JSON_ARRAY }
  package var isString: Bool { json_kind_of(handle) == JSON_STRING }
  /// Whether it is the literal null. A member that is null is not found at all.
  package var isNull: Bool { json_kind_of(handle) == JSON_NULL }

  /// The value of `true` or `false`; nil for any other value.
  package var boolean: Bool? {
    switch json_kind_of(handle) {
    case JSON_TRUE: true
    case JSON_FALSE: false
    default: nil
    }
  }

  /// The member of an object with that name; nil if it does not exist or is null, or if this is not an object.
  package subscript(name: StaticString) -> JSONValue? { member(name.utf8Start, name.utf8CodeUnitCount) }

  /// The same by a name that is not known when the program is built.
  package func member(named name: String) -> JSONValue? {
    var name = name
    return name.withUTF8 { member($0.baseAddress, $0.count) }
  }

  private func member(_ name: UnsafePointer<UInt8>?, _ count: Int) -> JSONValue? {
    var member = json_value()
    let isFound = json_find(handle, UnsafeRawPointer(name), count, &member)
    return isFound && json_kind_of(member) != JSON_NULL ? JSONValue(handle: member) : nil
  }

  /// The number of elements of an array or of members of an object; 0 for any other value.
  package var count: Int { json_count(handle) }

  /// The element of an array with exactly one element; nil for any other value.
  package var onlyElement: JSONValue? {
    var elements = self.elements.makeIterator()
    guard isArray, let element = elements.next(), elements.next() == nil else { return nil }
    return element
  }

  /// The elements of an array; empty for any other value.
  package var elements: JSONElements { JSONElements(array: self) }

  /// The members of an object; empty for any other value.
  package var members: [(name: String, value: JSONValue)] {
    var (name, value) = (json_string(), json_value())
    var members: [(name: String, value: JSONValue)] = []
    guard isObject else { return members }
    var rest = json_iterate(handle)
    while json_next_member(&rest, &name, &value) {
      members.append((String(cString: name.octets), JSONValue(handle: value)))
    }
    return members
  }

  /// Passes the members of an object to `body`, their names as octets; nothing for any other value.
  package func forEachMember(_ body: (UnsafeRawBufferPointer, JSONValue) -> Void) {
    guard isObject else { return }
    var (name, value) = (json_string(), json_value())
    var rest = json_iterate(handle)
    while json_next_member(&rest, &name, &value) {
      body(UnsafeRawBufferPointer(start: name.octets, count: name.count), JSONValue(handle: value))
    }
  }

  /// The value of an integer that is not negative; nil for any other value.
  package var unsigned: UInt64? {
    var number: UInt64 = 0
    return json_unsigned_of(handle, &number) ? number : nil
  }

  /// The value of an integer up to `Int64.max`; nil for any other value.
  package var signed: Int64? {
    var number: Int64 = 0
    return json_signed_of(handle, &number) ? number : nil
  }

  /// The value of any number; nil for any other value.
  package var real: Double? {
    var number = 0.0
    return json_double_of(handle, &number) ? number : nil
  }

  /// The value of a number without fraction, or of a string of decimal digits; nil above `limit` and for any other
  /// value.
  package func number(upTo limit: UInt32) -> UInt32? {
    guard let value = unsigned ?? octets.flatMap({ decimal($0[...]) }).map(UInt64.init) else { return nil }
    return value <= limit ? UInt32(value) : nil
  }

  /// The octets of a string, valid UTF-8 and followed by a NUL; nil for any other value. They are valid as long as the
  /// text is open.
  package var octets: UnsafeRawBufferPointer? {
    var string = json_string()
    guard json_string_of(handle, &string) else { return nil }
    return UnsafeRawBufferPointer(start: string.octets, count: string.count)
  }

  /// A copy of a string; nil for any other value.
  package var text: String? { octets.map { String(decoding: $0, as: UTF8.self) } }
}

/// The elements of an array in a JSON text.
package struct JSONElements: Sequence, IteratorProtocol {
  private var rest: json_iterator

  /// Starts at the first element; empty unless the value is an array.
  fileprivate init(array: JSONValue) { rest = array.isArray ? json_iterate(array.handle) : json_iterator() }

  package mutating func next() -> JSONValue? {
    var element = json_value()
    return json_next(&rest, &element) ? JSONValue(handle: element) : nil
  }
}

/// The value of one to ten decimal digits, which is enough for 32 bits and cannot overflow 64; nil for any other text.
package func decimal(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
  guard (1...10).contains(digits.count) else { return nil }
  var value = 0
  for octet in digits {
    guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet) else { return nil }
    value = value * 10 + Int(octet - UInt8(ascii: "0"))
  }
  return value
}
