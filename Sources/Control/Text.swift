// Text.swift -- tables, times and JSON strings as text.

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
