// TextTable.swift -- formats tables and counts for the terminal.

/// `1 transfer`, `2 transfers`.
package func counted(_ number: some BinaryInteger, _ one: String, _ more: String? = nil) -> String {
  "\(number) \(number == 1 ? one : more ?? one + "s")"
}

/// Formats tables with aligned columns.
public enum TextTable {
  /// Returns a line for each row, with two spaces between columns and no trailing spaces.
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
