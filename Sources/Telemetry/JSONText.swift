// JSONText.swift -- values as JSON (RFC 8259), on one line whatever they hold.

/// Writes JSON.
enum JSONText {
  /// Appends a string. Control characters and line ends are escaped, everything else stands as it is in UTF-8.
  static func append(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where scalar.isControl:
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }

  /// Appends a value.
  static func append(_ value: LogValue, to text: inout String) {
    switch value {
    case .text(let string): append(string, to: &text)
    case .number(let digits): text += digits
    case .list(let values):
      text += "["
      for (index, value) in values.enumerated() {
        if index > 0 { text += "," }
        append(value, to: &text)
      }
      text += "]"
    case .fields(let fields):
      text += "{"
      for (index, field) in fields.enumerated() {
        if index > 0 { text += "," }
        append(field.key, to: &text)
        text += ":"
        append(field.value, to: &text)
      }
      text += "}"
    }
  }
}
