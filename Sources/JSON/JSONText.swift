// JSONText.swift -- writes JSON (RFC 8259), always on one line.

/// Writes JSON. A `String` argument is JSON already, except that of `string(_:)` and the names of members.
package enum JSONText {
  /// A JSON string: the text quoted and escaped.
  package static func string(_ text: String) -> String {
    var result = ""
    append(text, to: &result)
    return result
  }

  /// An object; members without a value are left out.
  package static func object(_ members: KeyValuePairs<String, String?>) -> String { object(JSONText.members(members)) }

  /// The members that have a value, for an object of several groups.
  package static func members(_ members: KeyValuePairs<String, String?>) -> [(String, String)] {
    members.compactMap { name, value in value.map { (name, $0) } }
  }

  package static func object(_ members: some Sequence<(String, String)>) -> String {
    "{\(members.map { "\(string($0)):\($1)" }.joined(separator: ","))}"
  }

  package static func array(_ elements: some Sequence<String>) -> String { "[\(elements.joined(separator: ","))]" }

  /// A JSON number: seconds with up to three decimal places.
  package static func seconds(_ duration: Duration) -> String { decimal(duration.attoseconds / 1_000_000_000_000_000) }

  /// A JSON number: milliseconds with up to three decimal places.
  package static func milliseconds(_ time: Duration) -> String { decimal(time.attoseconds / 1_000_000_000_000) }

  /// A JSON number: seconds, rounded to three decimal places.
  package static func short(_ seconds: Double) -> String {
    JSONText.seconds(.milliseconds(Int64(seconds * 1000 + 0.5)))
  }

  /// Thousandths as a decimal fraction without trailing zeros.
  private static func decimal(_ thousandths: Int128) -> String {
    let (whole, rest) = abs(thousandths).quotientAndRemainder(dividingBy: 1000)
    var digits = "\(1000 + rest)".dropFirst()
    while digits.hasSuffix("0") { digits.removeLast() }
    return "\(thousandths < 0 ? "-" : "")\(whole)\(digits.isEmpty ? "" : ".\(digits)")"
  }

  /// Appends a quoted string. Control characters and line separators are escaped; other characters are not.
  package static func append(_ string: String, to text: inout String) {
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
}

extension Unicode.Scalar {
  /// C0, DEL, C1, and the separators that some readers treat as line ends.
  package var isControl: Bool { value < 0x20 || 0x7F...0x9F ~= value || value == 0x2028 || value == 0x2029 }
}
