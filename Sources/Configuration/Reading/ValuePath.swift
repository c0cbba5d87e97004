// ValuePath.swift -- the path of a value in the configuration: for messages, and for look-ups by key path.

/// A path of keys.
struct ValuePath {
  /// The path in messages, where positions count from 1: `provider["alidns"].servers[#1]`.
  let text: String
  /// The keys alone: `provider.servers`.
  let pattern: String
  /// The last key, ignoring indices.
  let lastKey: String

  /// The root table.
  static let root = ValuePath(text: "", pattern: "", lastKey: "")

  /// The path of a key in this table.
  func key(_ key: String) -> ValuePath {
    let isBare = !key.isEmpty && key.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "_") }
    let shown = isBare && key.utf8.count <= shownLimit ? key : "\"\(shownText(key, limit: shownLimit))\""
    return ValuePath(
      text: text.isEmpty ? shown : "\(text).\(shown)", pattern: pattern.isEmpty ? key : "\(pattern).\(key)",
      lastKey: key)
  }

  /// The path of an element of this array; `index` counts from 0.
  func index(_ index: Int) -> ValuePath {
    ValuePath(text: "\(text)[#\(index + 1)]", pattern: pattern, lastKey: lastKey)
  }

  /// The path of an element of this array of tables, by its unique name.
  func named(_ name: String) -> ValuePath {
    ValuePath(text: "\(text)[\"\(name)\"]", pattern: pattern, lastKey: lastKey)
  }
}

/// Whether the octet is an ASCII letter or digit.
func isLetterOrDigit(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
  default: isDigit(octet)
  }
}

func isDigit(_ octet: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= octet }
