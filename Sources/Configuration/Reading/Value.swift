// Value.swift -- a TOML value as a plain Swift value.

/// A TOML value. A date carries no content, because no key takes one.
enum Value: Equatable {
  case string(String)
  case integer(Int)
  case float(Double)
  case boolean(Bool)
  case date
  case array([Value])
  case table([String: Value])

  /// The text of a string without control characters, that is, of one line; nil for everything else.
  var line: String? {
    guard case .string(let text) = self, text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
    else { return nil }
    return text
  }

  /// The type of the value, with its article.
  var kind: String {
    switch self {
    case .string: "a string"
    case .integer: "an integer"
    case .float: "a floating-point number"
    case .boolean: "a boolean"
    case .date: "a date or time"
    case .array: "an array"
    case .table: "a table"
    }
  }
}
