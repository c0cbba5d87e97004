// StatsValue.swift -- reads the JSON of the daemon's statistics in place, through the accessors of CJSON.

import CJSON

struct UnreadableStats: Error {}

/// A value in a JSON text. It borrows from the text and must not outlive the closure that received it.
struct StatsValue {
  private let handle: json_value

  /// Passes the root of a text to `body`. Refuses what CJSON.h refuses, except for the length, which `ControlClient`
  /// limits.
  ///
  /// - Complexity: O(*n*) in the length of the text.
  static func read<Result>(
    _ text: String, _ body: (StatsValue) throws(UnreadableStats) -> Result
  ) throws(UnreadableStats) -> Result {
    let octets = Array(text.utf8)
    var open: OpaquePointer?
    var root = json_value()
    let status = octets.withUnsafeBytes { json_open_within($0.count, $0.baseAddress, $0.count, &open, &root) }
    guard status == JSON_READ else { throw UnreadableStats() }
    defer { json_close(open) }
    return try body(StatsValue(handle: root))
  }

  /// Returns a member of an object; nil if it is missing or this is not an object.
  func find(_ name: String) -> StatsValue? {
    var member = json_value()
    return json_find(handle, name, name.utf8.count, &member) ? StatsValue(handle: member) : nil
  }

  func member(_ name: String) throws(UnreadableStats) -> StatsValue {
    guard let member = find(name) else { throw UnreadableStats() }
    return member
  }

  /// Returns the value of a non-negative integer.
  func number() throws(UnreadableStats) -> UInt64 {
    var value: UInt64 = 0
    guard json_unsigned_of(handle, &value) else { throw UnreadableStats() }
    return value
  }

  /// Returns an integer member, or `absent` if it is missing.
  func number(_ name: String, absent: UInt64? = nil) throws(UnreadableStats) -> UInt64 {
    if let absent, find(name) == nil { return absent }
    return try member(name).number()
  }

  /// Returns a string member, or `absent` if it is missing.
  func text(_ name: String, absent: String? = nil) throws(UnreadableStats) -> String {
    if let absent, find(name) == nil { return absent }
    return try member(name).text()
  }

  /// Returns the value of a string.
  func text() throws(UnreadableStats) -> String {
    var string = json_string()
    guard json_string_of(handle, &string) else { throw UnreadableStats() }
    let octets = UnsafeRawBufferPointer(start: string.octets, count: string.count)
    return String(decoding: octets, as: UTF8.self)
  }

  /// Reads each element of an array member.
  func elements<Element>(
    _ name: String, _ read: (StatsValue) throws(UnreadableStats) -> Element
  ) throws(UnreadableStats) -> [Element] {
    let array = try member(name)
    guard json_kind_of(array.handle) == JSON_ARRAY else { throw UnreadableStats() }
    var rest = json_iterate(array.handle)
    var element = json_value()
    var result: [Element] = []
    result.reserveCapacity(json_count(array.handle))
    while json_next(&rest, &element) { result.append(try read(StatsValue(handle: element))) }
    return result
  }
}
