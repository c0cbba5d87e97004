// Text.swift -- tables, times and JSON strings as text.

import EventLoop
import Glibc

/// Text in JSON (RFC 8259).
public enum JSONText {
  /// A text between quotation marks.
  public static func string(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  /// An object; the values are JSON already.
  static func object(_ members: KeyValuePairs<String, String?>) -> String {
    let present = members.compactMap { name, value in value.map { "\(string(name)):\($0)" } }
    return "{\(present.joined(separator: ","))}"
  }

  /// An array; the elements are JSON already.
  static func array(_ elements: some Sequence<String>) -> String { "[\(elements.joined(separator: ","))]" }

  /// Seconds with milliseconds, without needless zeros.
  static func seconds(_ duration: Duration) -> String { decimal(duration.nanoseconds / 1_000_000, thousandths: 1000) }

  /// Milliseconds with microseconds, without needless zeros.
  static func milliseconds(_ duration: Duration) -> String { decimal(duration.nanoseconds / 1000, thousandths: 1000) }

  /// A number of seconds, without needless zeros.
  public static func short(_ seconds: Double) -> String { JSONText.seconds(.milliseconds(Int64(seconds * 1000 + 0.5))) }

  /// A number of thousandths as a decimal fraction.
  private static func decimal(_ value: Int64, thousandths: Int64) -> String {
    let (whole, rest) = abs(value).quotientAndRemainder(dividingBy: thousandths)
    var digits = "\(thousandths + rest)".dropFirst()
    while digits.hasSuffix("0") { digits.removeLast() }
    return "\(value < 0 ? "-" : "")\(whole)\(digits.isEmpty ? "" : ".\(digits)")"
  }
}

/// Lengths of time for people.
enum TimeText {
  /// The two largest units that say something, such as `3 min 20 s`; nothing below a second.
  static func rough(_ duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")]
    let first = parts.firstIndex { $0.0 > 0 } ?? 3
    return parts[first...].prefix(2).filter { $0.0 > 0 || first == 3 }.map { "\($0.0) \($0.1)" }
      .joined(separator: " ")
  }

  /// Microseconds below a millisecond, else milliseconds.
  static func fine(_ duration: Duration) -> String {
    duration < .milliseconds(1) ? "\((duration.nanoseconds + 500) / 1000) µs" : milliseconds(duration)
  }

  /// Milliseconds with one digit behind the point below a hundred.
  static func milliseconds(_ duration: Duration) -> String {
    let tenths = (duration.nanoseconds + 50_000) / 100_000
    return tenths < 1000 ? "\(tenths / 10).\(tenths % 10) ms" : "\((duration.nanoseconds + 500_000) / 1_000_000) ms"
  }
}

/// Text in the query of a URL (RFC 3986 section 2.1).
enum PercentText {
  /// Everything but letters, digits, hyphen, dot and underscore as `%XX`.
  static func encode(_ text: String) -> String {
    var result = ""
    for octet in text.utf8 {
      switch octet {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        result.unicodeScalars.append(Unicode.Scalar(octet))
      default: result += "%\(octet < 16 ? "0" : "")\(String(octet, radix: 16, uppercase: true))"
      }
    }
    return result
  }

  /// What was encoded; nil for a broken escape, or for octets that are not UTF-8.
  static func decode(_ text: some StringProtocol) -> String? {
    var octets: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let octet = rest.popFirst() {
      guard octet == UInt8(ascii: "%") else {
        octets.append(octet)
        continue
      }
      let digits = rest.prefix(2)
      guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      else { return nil }
      octets.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: octets, as: UTF8.self)
  }
}

/// Rows whose columns stand below each other.
public enum TextTable {
  /// A line for each row, columns two spaces apart, without spaces at the end.
  ///
  /// - Precondition: all rows have as many cells as the first.
  public static func lines(_ rows: [[String]]) -> [String] {
    guard let first = rows.first else { return [] }
    let widths = first.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      let cells = zip(row, widths).map { cell, width in cell + String(repeating: " ", count: width - cell.count) }
      return String(cells.joined(separator: "  ").reversed().drop { $0 == " " }.reversed())
    }
  }
}

/// A time in UTC as RFC 3339 has it.
///
/// - Parameter unixTime: seconds since 1970.
func timeText(_ unixTime: Int64) -> String {
  var seconds = time_t(unixTime)
  var parts = tm()
  gmtime_r(&seconds, &parts)
  var octets = [UInt8](repeating: 0, count: 32)
  let length = octets.withUnsafeMutableBytes { buffer in
    buffer.withMemoryRebound(to: CChar.self) { strftime($0.baseAddress!, $0.count, "%Y-%m-%dT%H:%M:%SZ", &parts) }
  }
  return String(decoding: octets[..<length], as: UTF8.self)
}
