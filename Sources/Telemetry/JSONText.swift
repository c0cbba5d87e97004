// JSONText.swift -- writes JSON (RFC 8259), always on one line.

/// Writes JSON. A `String` argument is JSON already, except that of `string(_:)` and the names of members.
public enum JSONText {
  /// A JSON string: the text quoted and escaped.
  public static func string(_ text: String) -> String {
    var result = ""
    append(text, to: &result)
    return result
  }

  /// An object; members without a value are left out.
  public static func object(_ members: KeyValuePairs<String, String?>) -> String { object(JSONText.members(members)) }

  /// The members that have a value, for an object of several groups.
  public static func members(_ members: KeyValuePairs<String, String?>) -> [(String, String)] {
    members.compactMap { name, value in value.map { (name, $0) } }
  }

  public static func object(_ members: some Sequence<(String, String)>) -> String {
    "{\(members.map { "\(string($0)):\($1)" }.joined(separator: ","))}"
  }

  public static func array(_ elements: some Sequence<String>) -> String { "[\(elements.joined(separator: ","))]" }

  /// A JSON number: seconds with up to three decimal places.
  public static func seconds(_ duration: Duration) -> String { decimal(TimeText.nanoseconds(duration) / 1_000_000) }

  /// A JSON number: milliseconds with up to three decimal places.
  public static func milliseconds(_ duration: Duration) -> String { decimal(TimeText.nanoseconds(duration) / 1000) }

  /// A JSON number: seconds, rounded to three decimal places.
  public static func short(_ seconds: Double) -> String { JSONText.seconds(.milliseconds(Int64(seconds * 1000 + 0.5))) }

  /// Thousandths as a decimal fraction without trailing zeros.
  private static func decimal(_ thousandths: Int64) -> String {
    let (whole, rest) = abs(thousandths).quotientAndRemainder(dividingBy: 1000)
    var digits = "\(1000 + rest)".dropFirst()
    while digits.hasSuffix("0") { digits.removeLast() }
    return "\(thousandths < 0 ? "-" : "")\(whole)\(digits.isEmpty ? "" : ".\(digits)")"
  }

  /// Appends a quoted string. Control characters and line separators are escaped; other characters are not.
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
