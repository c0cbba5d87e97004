// TOMLDocument.swift -- parses TOML into values; the only file that uses CTOML.

import CTOML

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
  var text = text
  var mistake = ctoml_mistake()
  let opened = text.withUTF8 { octets in
    octets.withMemoryRebound(to: CChar.self) { ctoml_open($0.baseAddress, $0.count, &mistake) }
  }
  guard let opened else {
    let reason = shownReason(
      withUnsafeBytes(of: mistake.reason) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    let isScalar = scalarErrors.contains { reason.hasPrefix("invalid \($0)") }
    throw SyntaxMistake(
      line: Int(mistake.line), column: Int(mistake.column), found: reason + (isScalar ? "; a text needs quotes" : ""),
      allowed: "")
  }
  defer { ctoml_close(opened) }
  return table(ctoml_root(opened))
}

/// How the parser's reasons begin for a value that is most often a text without quotes.
private let scalarErrors = ["value: could not determine", "boolean:", "decimal integer:", "floating-point:", "time:"]

/// The values of a node with their keys, which are empty for those of an array.
private func children(_ node: OpaquePointer?) -> [(key: String, value: Value)] {
  typealias Children = [(key: String, value: Value)]
  var found: Children = []
  withUnsafeMutablePointer(to: &found) { context in
    ctoml_each(node, context) { context, key, node in
      context!.assumingMemoryBound(to: Children.self).pointee.append((string(key), value(node)))
    }
  }
  return found
}

private func table(_ node: OpaquePointer?) -> [String: Value] {
  Dictionary(children(node), uniquingKeysWith: { first, _ in first })
}

private func value(_ node: OpaquePointer?) -> Value {
  switch ctoml_kind_of(node) {
  case CTOML_TABLE: .table(table(node))
  case CTOML_ARRAY: .array(children(node).map(\.value))
  case CTOML_INTEGER: .integer(Int(ctoml_integer_of(node)))
  case CTOML_REAL: .float(ctoml_real_of(node))
  case CTOML_BOOLEAN: .boolean(ctoml_boolean_of(node))
  case CTOML_DATE: .date
  default: .string(string(ctoml_string_of(node)))
  }
}

private func string(_ text: ctoml_string) -> String {
  String(decoding: UnsafeRawBufferPointer(start: text.octets, count: text.count), as: UTF8.self)
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
