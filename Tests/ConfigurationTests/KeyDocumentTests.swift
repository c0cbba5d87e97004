// KeyDocumentTests.swift -- Config/httpdnsd.toml and docs/configuration.md show every key as it is declared.
//
// With HTTPDNSD_TEST_WRITE=1 in the environment the tests write both files. Scripts/manual makes the man page of the tables.

import Glibc
import Testing

@testable import Configuration

/// One line of the sample file with the table that it belongs to.
private struct SampleLine {
  let table: String
  var text: String

  /// The marks of a comment, the key and its value; nil for other lines.
  var setting: (marks: Substring, key: Substring, value: Substring)? {
    text.prefixMatch(of: /((?:# )*)([a-z0-9_]+) = ("[^"]*"|\[(?:"[^"]*"|[^"\]])*\]|\{[^}]*\}|[^\s#]+)/)
      .map { ($0.output.1, $0.output.2, $0.output.3) }
  }
}

/// The lines of the sample file. The part of `[[provider]]` that belongs to a kind has a paragraph of its own.
private func sampleLines() throws -> [SampleLine] {
  var table = ""
  return try sampleText("httpdnsd.toml").split(separator: "\n", omittingEmptySubsequences: false).map { line in
    if let heading = line.prefixMatch(of: /(?:# )?\[+([a-z]+)\]/) { table = String(heading.output.1) }
    if let kind = line.prefixMatch(of: /# kind = "([a-z]+)"/) { table = String(kind.output.1) }
    return SampleLine(table: table, text: String(line))
  }
}

/// The values of each key, as `table.key`, that the sample file shows.
private func sampleValues() throws -> [String: [String]] {
  var values: [String: [String]] = [:]
  for line in try sampleLines() {
    if let setting = line.setting { values["\(line.table).\(setting.key)", default: []].append(String(setting.value)) }
  }
  return values
}

/// The column of the comments in the sample file.
private let commentColumn = 43

@Test func `the sample file has every key with its default, its sentence and its bounds`() throws {
  var lines = try sampleLines()
  let old = lines.map(\.text)
  let tables = try declaredTables()
  for table in tables {
    var last = lines.lastIndex { $0.table == table.name && $0.text.contains("[\(table.name)]") } ?? 0
    for key in table.keys {
      let found = lines.firstIndex { $0.table == table.name && $0.setting?.key == key.name[...] }
      let standard = table.standard(key)
      let (marks, _, value) = found.flatMap { lines[$0].setting } ?? ("", "", standard[...])
      // Of lines that are not comments SampleTests compares the values. A secret is shown by an example.
      let isFixed = !marks.isEmpty && standard != "?" && !key.isSecret
      let setting = "\(marks)\(key.name) = \(isFixed ? standard[...] : value)"
      let gap = String(repeating: " ", count: max(commentColumn - setting.count, 3))
      let line = SampleLine(table: table.name, text: setting + gap + "# " + key.comment)
      if let found { lines[found] = line } else { lines.insert(line, at: last + 1) }
      last = found ?? last + 1
    }
  }
  for line in lines {
    guard let key = line.setting?.key else { continue }
    let own = ProviderKindName(rawValue: line.table) == nil ? [line.table] : [line.table, "provider"]
    let names = tables.filter { own.contains($0.name) }.flatMap { $0.keys.map(\.name) }
    let name = key.replacing(/_(credential|env)$/, with: "_file")
    #expect(names.contains { $0 == name }, "Config/httpdnsd.toml has: \(line.text)")
  }
  try compare(old, lines.map(\.text), "Config/httpdnsd.toml")
}

@Test func `the document has every key with its default, its sentence and its bounds`() throws {
  let tables = try declaredTables()
  let samples = try sampleValues()
  var names: [String] = []
  var rows: [Row] = []
  let old = try repositoryText("docs/configuration.md").split(separator: "\n", omittingEmptySubsequences: false)
  var new: [String] = []
  var isTable = false
  var shown: [String] = []
  for line in old {
    if line.hasPrefix("| key ") {
      (isTable, rows) = (true, [])
    } else if isTable, let row = line.wholeMatch(of: /\| `([a-z0-9_]+)` +\| (?:`([^`]*)`|none) +\|(?:.*\| | )(.*?) *\|/)
    {
      rows.append(Row(key: String(row.output.1), standard: String(row.output.2 ?? ""), meaning: String(row.output.3)))
    } else if isTable, !line.hasPrefix("|") {
      new += written(tables.filter { names.contains($0.name) }, rows, samples)
      (isTable, shown) = (false, shown + names)
    }
    if line.hasPrefix("#") {
      names = line == "### State" ? [""] : line.matches(of: /`\[+([a-z]+)\]+`/).map { String($0.output.1) }
    } else if line.hasPrefix("Keys of ") {
      names = line.matches(of: /`([a-z]+)`/).map { String($0.output.1) }
    }
    if !isTable { new.append(String(line)) }
  }
  #expect(shown.sorted() == tables.map(\.name).sorted())
  try compare(old.map { String($0) }, new, "docs/configuration.md")
}

/// A row of the document.
private struct Row {
  let key: String
  let standard: String
  let meaning: String
}

/// A table of the document, which can have several tables of the file. What follows the sentence in a row is the document's own.
private func written(_ tables: [DeclaredTable], _ rows: [Row], _ samples: [String: [String]]) -> [String] {
  var keys: [(key: DeclaredKey, standards: [String])] = []
  for table in tables {
    for key in table.keys where !keys.contains(where: { $0.key.name == key.name }) {
      keys.append((key, (samples["\(table.name).\(key.name)"] ?? []) + [table.standard(key)]))
    }
  }
  // A new row follows that of the key which is read before it.
  var order = rows.map(\.key).filter { name in keys.contains { $0.key.name == name } }
  for (index, (key, _)) in keys.enumerated() where !order.contains(key.name) {
    let before = index == 0 ? nil : order.firstIndex(of: keys[index - 1].key.name)
    order.insert(key.name, at: before.map { $0 + 1 } ?? 0)
  }
  var lines = [["key", "default", "values", "meaning"]]
  for name in order {
    let (key, standards) = keys.first { $0.key.name == name }!
    let row = rows.first { $0.key == name }
    // The sample file shows a secret, and what has to be given, by an example.
    let isExample = key.isSecret || row?.standard == "" && standards.last == "?"
    let standard = isExample ? nil : standards.first { $0 == row?.standard } ?? standards.first
    let more = row.map { $0.meaning.dropFirst(firstSentence($0.meaning).count) } ?? ""
    lines.append(["`\(name)`", standard.map { "`\($0)`" } ?? "none", key.values, key.sentence + more])
  }
  let widths = [0, 1].map { column in lines.map { $0[column].count }.max() ?? 0 }
  lines.insert(widths.map { String(repeating: "-", count: $0) } + ["------", "-------"], at: 1)
  return lines.map { cells in
    let padded = zip(cells, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) } + cells[2...]
    return "| \(padded.joined(separator: " | ")) |"
  }
}

/// Compares the lines of a file with those that it should have, or writes them.
private func compare(_ old: [String], _ new: [String], _ path: String) throws {
  if getenv("HTTPDNSD_TEST_WRITE") != nil {
    let file = try #require(fopen(repositoryPath(path), "w"))
    defer { fclose(file) }
    #expect(fputs(new.joined(separator: "\n"), file) >= 0)
    return
  }
  if new != old { Issue.record("HTTPDNSD_TEST_WRITE=1 writes \(path)") }
  for change in new.difference(from: old) {
    switch change {
    case .insert(_, let line, _): Issue.record("\(path) lacks: \(line)")
    case .remove(_, let line, _): Issue.record("\(path) has: \(line)")
    }
  }
}

/// What some keys need beside them.
private let needed = [
  "encrypted.dot": "certificate_file = \"/tls/chain.pem\"\nkey_file = \"/tls/key.pem\"\n",
  "encrypted.doh": "certificate_file = \"/tls/chain.pem\"\nkey_file = \"/tls/key.pem\"\n",
  "encrypted.tokens_file": "name = \"dns.example\"\n",
]

/// The names of the members in which two values of a type differ.
private func differences(_ old: Any, _ new: Any) -> [String] {
  zip(Mirror(reflecting: old).children, Mirror(reflecting: new).children)
    .filter { "\($0.value)" != "\($1.value)" }.compactMap(\.0.label)
}

/// Values that a key may take, by what a mistake says of its values.
private func candidates(_ values: String) -> [String] {
  var words = ["x", "1m", "http://192.0.2.3:3128", "redis://127.0.0.1:6379", "x.example", "203.0.113.0/24"]
  words.append("sha256//\(String(repeating: "A", count: 43))=")
  var plain = ["true", "false"]
  if let bounds = values.firstMatch(of: /from (\S+) to (\S+)$/)?.output {
    plain += [String(bounds.1), String(bounds.2)]
    words += [String(bounds.1), String(bounds.2)]
  }
  if let table = values.firstMatch(of: /\{.*\}/) { plain.append(String(table.output)) }
  words = values.matches(of: /"([^"]*)"/).map { String($0.output.1) } + words
  return plain + words.flatMap { ["\"\($0)\"", "[\"\($0)\"]"] }
}

@Test func `each key sets its own member, and each member has a key`() throws {
  try withFile("-----BEGIN CERTIFICATE-----") { _, certificates in
    for table in try declaredTables() {
      guard let path = table.path else { continue }
      let defaults = Configuration()[keyPath: path]
      for key in table.keys where !key.isSecret {
        let context = needed["\(table.name).\(key.name)"] ?? ""
        let defaults = context.isEmpty ? defaults : try configuration(text(table.name, context))[keyPath: path]
        let changes = (candidates(key.values) + ["\"\(certificates)\""]).lazy.compactMap { candidate in
          try? configuration(text(table.name, "\(context)\(key.name) = \(candidate)"))
        }.map { differences(defaults, $0[keyPath: path]) }.first { !$0.isEmpty }
        let changed = try #require(changes, "\(table.name).\(key.name) takes no value like \(key.values)")
        switch (table.name, key.name) {
        // What follows from a provider's kind and servers is stored with it.
        case ("provider", _): #expect(changed.contains(key.member) || ["texts", "givenName"].contains(key.member))
        case ("refresh", "budget_per_minute"): #expect(changed == [key.member, "freePerMinute"])
        default: #expect(changed == [key.member], "\(table.name).\(key.name)")
        }
      }
      guard !["", "provider"].contains(table.name) else { continue }
      let members = Set(Mirror(reflecting: defaults).children.compactMap(\.label))
      #expect(members.subtracting(table.keys.map(\.member)).subtracting(["freePerMinute"]) == [], "\(table.name)")
    }
  }
}
