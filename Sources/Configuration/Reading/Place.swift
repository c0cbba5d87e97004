// Place.swift -- where a value stands: as a person reads it, and as the tables of this module look it up.

/// A path of keys.
struct Place {
  /// As a person reads it: `provider["alidns"].servers[0]`.
  let text: String
  /// The keys alone: `provider.servers`.
  let pattern: String
  /// The last key; indices do not count.
  let lastKey: String

  /// The whole file.
  static let root = Place(text: "", pattern: "", lastKey: "")

  /// A key of this table.
  func key(_ key: String) -> Place {
    let isBare = !key.isEmpty && key.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "_") }
    let shown = isBare && key.utf8.count <= shownLimit ? key : "\"\(shownText(key, limit: shownLimit))\""
    return Place(
      text: text.isEmpty ? shown : "\(text).\(shown)", pattern: pattern.isEmpty ? key : "\(pattern).\(key)",
      lastKey: key)
  }

  /// An element of this array.
  func index(_ index: Int) -> Place { Place(text: "\(text)[\(index)]", pattern: pattern, lastKey: lastKey) }

  /// An element of this array of tables, which has a name of its own.
  func named(_ name: String) -> Place { Place(text: "\(text)[\"\(name)\"]", pattern: pattern, lastKey: lastKey) }
}

/// Whether the octet is an ASCII letter or digit.
func isLetterOrDigit(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
  default: isDigit(octet)
  }
}

/// Whether the octet is an ASCII digit.
func isDigit(_ octet: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= octet }
