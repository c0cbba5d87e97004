// TOMLDocument.swift -- parses TOML into values; the only file that uses TOMLKit.

import TOMLKit

/// A text that is not TOML, or exceeds a limit. `allowed` is empty where `found` says it all.
struct SyntaxMistake: Error, Equatable {
  let line: Int
  let column: Int
  let found: String
  let allowed: String
}

/// The keys of the top level with their values. The text is refused if it is longer than `Configuration.maxFileSize`.
func parseTOML(_ text: String) throws(SyntaxMistake) -> [String: Value] {
  guard text.utf8.count <= Configuration.maxFileSize else {
    let found = "the text has \(text.utf8.count) octets"
    throw SyntaxMistake(line: 1, column: 1, found: found, allowed: "at most \(Configuration.maxFileSize) octets")
  }
  try TextScan.check(text)
  do {
    return table(try TOMLTable(string: text))
  } catch let error as TOMLParseError {
    let position = error.source.begin
    let reason = shownReason(error.description)
    let isScalar = scalarErrors.contains { reason.hasPrefix("invalid \($0)") }
    throw SyntaxMistake(
      line: position.line, column: position.column, found: reason + (isScalar ? "; a text needs quotes" : ""),
      allowed: "")
  } catch {
    throw SyntaxMistake(line: 1, column: 1, found: "not valid TOML", allowed: "")
  }
}

/// How the parser's reasons begin for a value that is most often a text without quotes.
private let scalarErrors = ["value: could not determine", "boolean:", "decimal integer:", "floating-point:", "time:"]

private func table(_ table: TOMLTable) -> [String: Value] {
  // Not by TOMLTable's iterator, which force-unwraps.
  var values: [String: Value] = [:]
  for key in table.keys {
    if let found = table[key] { values[key] = value(found) }
  }
  return values
}

private func value(_ found: any TOMLValueConvertible) -> Value {
  switch found.type {
  case .string: .string(found.string ?? "")
  case .int: .integer(found.int ?? 0)
  case .double: .float(found.double ?? 0)
  case .bool: .boolean(found.bool ?? false)
  case .date, .time, .dateTime: .date
  case .array: .array(found.array.map { array in array.map(value) } ?? [])
  case .table: .table(found.table.map(table) ?? [:])
  }
}

/// The parser's reason on one line, without the numbers that it quotes: such a number may be a secret.
private func shownReason(_ description: String) -> String {
  let opening = "Error while parsing "
  let reason = description.hasPrefix(opening) ? "invalid " + description.dropFirst(opening.count) : description
  let parts = shownText(reason, limit: 200).split(separator: "'", omittingEmptySubsequences: false)
  return parts.enumerated().map { index, part in
    index % 2 == 1 && part.count > 1 && part.contains { $0.isNumber } ? "…" : part
  }.joined(separator: "'")
}
