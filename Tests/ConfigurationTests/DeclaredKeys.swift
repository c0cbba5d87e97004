// DeclaredKeys.swift -- the keys as Sources/Configuration declares them: each fact is read from the only place that has it.
//
// The names are those that reading asks for. A mistake says the type and the bounds. The default is the value of the member,
// and the sentence is the first one of its `///`.

import Testing

@testable import Configuration

/// One key of a table.
struct DeclaredKey {
  /// As the file has it; a secret's ends with `_file`.
  let name: String
  /// The property or variable that the value goes to.
  let member: String
  /// What the key is for, with a full stop.
  let sentence: String
  /// The type and the bounds, in the words of a mistake.
  let values: String

  var isSecret: Bool { values.hasPrefix("a secret") }

  /// The comment of the sample file: the sentence, then bounds, words or examples.
  var comment: String {
    var notes: [String] = []
    let values = values.replacing(", or \"\"", with: "")
    if let bounds = values.firstMatch(of: /\bfrom (\S+ to \S+)$/) { notes.append(String(bounds.output.1)) }
    if let words = values.firstMatch(of: /^one of (.*)/) {
      notes.append(String(words.output.1).replacing("\"", with: ""))
    }
    if let examples = values.firstMatch(of: /e\.g\. .*/) { notes.append(String(examples.output)) }
    if isSecret { notes.append("also _credential, _env") }
    let text = String(sentence.dropLast()).replacing("`", with: "")
    return notes.isEmpty ? text : "\(text) (\(notes.joined(separator: "; ")))"
  }
}

/// A table of the file, or the part of `[[provider]]` that belongs to a kind.
struct DeclaredTable {
  let name: String
  let keys: [DeclaredKey]
  /// Where the configuration has the table; nil if it has none, or several.
  let path: PartialKeyPath<Configuration>?

  /// The default of a key as the file has it; `?` if that is not known.
  func standard(_ key: DeclaredKey) -> String {
    let defaults = path.map { Mirror(reflecting: Configuration()[keyPath: $0]).children }
    let member = defaults?.first { $0.label == key.member }
    return member.map { toml($0.value, isSize: key.values.hasPrefix("a size")) } ?? "?"
  }
}

/// All tables.
func declaredTables() throws -> [DeclaredTable] {
  let providers = ["ProviderReading", "Provider", "ProviderEndpoint", "Kinds/AliDNS"].map { "Providers/\($0)" }
  let tables: [(name: String, files: [String], path: PartialKeyPath<Configuration>?)] = [
    ("", ["Configuration"], \.self), ("listen", ["Sections/Listen"], \.listen),
    ("encrypted", ["Sections/Encrypted"], \.encrypted), ("provider", providers, \.providers[0]),
    ("alidns", ["Providers/Kinds/AliDNS"], nil), ("tencent", ["Providers/Kinds/Tencent"], nil),
    ("emas", ["Providers/Kinds/EMAS"], nil), ("baidu", ["Providers/Kinds/Baidu"], nil),
    ("volcengine", ["Providers/Kinds/Volcengine"], nil),
    ("jdcloud", ["Providers/Kinds/JDCloud"], nil), ("ucloud", ["Providers/Kinds/UCloud"], nil),
    ("json", ["Providers/Kinds/DoH"], nil),
    ("doh", ["Providers/Kinds/DoH"], nil), ("text", ["Providers/Kinds/Text"], nil),
    ("table", ["Providers/Kinds/Table"], nil),
    ("localdns", ["Sections/LocalDNS"], \.localDNS), ("cache", ["Sections/Cache"], \.cache),
    ("fleet", ["Sections/Fleet"], \.fleet), ("refresh", ["Sections/Refresh"], \.refresh),
    ("ranking", ["Sections/Ranking"], \.ranking), ("rule", ["Sections/Rule"], nil), ("list", ["Sections/List"], nil),
    ("names", ["Sections/Names"], \.names), ("control", ["Sections/Operation"], \.control),
    ("web", ["Sections/Operation"], \.web), ("log", ["Sections/Operation"], \.log),
  ]
  return try tables.map { table in
    let source = try table.files.map { try repositoryText("Sources/Configuration/\($0).swift") }.joined()
    let keys = try keys(of: table.name).map { try declared($0, in: table.name, source) }
    return DeclaredTable(name: table.name, keys: keys, path: table.path)
  }
}

/// The names of a table's keys, a secret once.
private func keys(of table: String) -> [String] {
  let known = Dictionary(Configuration.knownKeys.map { ($0.place.text, $0.keys) }, uniquingKeysWith: { $1 })
  // The kind that has the fewest keys of its own. Nothing explains a key that has no effect any more.
  let common = (known["provider[\"json\"]"] ?? []).filter { $0 != "url" }
  let keys: [String] =
    switch table {
    case "": (known[""] ?? []).filter { known[$0] == nil && !["provider", "rule", "list"].contains($0) }
    case "provider": common.filter { $0 != "check_name" }
    case "rule", "list": known["\(table)[#1]"] ?? []
    default: known[table] ?? (known["provider[\"\(table)\"]"] ?? []).filter { !common.contains($0) }
    }
  let secrets = keys.filter { keys.contains("\($0)_credential") }
  let ways = secrets.flatMap { [$0, "\($0)_credential", "\($0)_env"] }
  return keys.filter { !ways.contains($0) }
}

private func declared(_ key: String, in table: String, _ source: String) throws -> DeclaredKey {
  let secret = key.hasSuffix("_file") ? String(key.dropLast(5)) : key
  let reading = try Regex(
    "\\.read\\(\\s*\"\(key)\", &(\\w+)|(\\w+) = reader\\.(?:secret|requiredSecret)\\(\"\(secret)\"")
  let output = try #require(source.firstMatch(of: reading), "nothing reads \(table).\(key)").output
  let member = String(try #require(output[1].substring ?? output[2].substring))
  let declaration = try Regex("((?: *///.*\\n)+) *(?:public )?(?:var|let) \(member)\\b")
  let comment = try #require(
    source.firstMatch(of: declaration)?.output[1].substring, "\(table).\(key): a /// on \(member) says what it is for")
  let text = comment.split(separator: "\n").map { $0.drop { " /".contains($0) } }.joined(separator: " ")
  let sentence = firstSentence(text)
  #expect(sentence.hasSuffix("."), "\(table).\(key): \(sentence)")
  let isSecret = output[2].substring != nil
  let values = try isSecret ? secretValues(secret, in: table) : values(key, in: table)
  return DeclaredKey(name: key, member: member, sentence: sentence, values: values)
}

/// The text up to the first full stop at the end of a word.
func firstSentence(_ text: some StringProtocol) -> String {
  text.firstRange(of: ". ").map { text[..<$0.lowerBound] + "." } ?? String(text)
}

/// A text with one key of a table.
func text(_ table: String, _ keys: String) -> String {
  switch table {
  case "": keys
  case "provider", "rule", "list": "[[\(table)]]\n\(keys)"
  case _ where ProviderKindName(rawValue: table) != nil: "[[provider]]\nkind = \"\(table)\"\n\(keys)"
  default: "[\(table)]\n\(keys)"
  }
}

/// The values that a key takes: what is said of one that no key takes.
private func values(_ key: String, in table: String) throws -> String {
  guard case .failure(let failure) = parse(text(table, "\(key) = 1979-05-27")) else { return "" }
  let mistake = try #require(
    failure.mistakes.first { "\($0)".contains(key) && $0.found.hasPrefix("a date or time") }, "\(table).\(key)")
  let allowed =
    mistake.found.contains(" from ")
    ? String(mistake.found.replacing("a date or time is not ", with: "")) : mistake.allowed
  return allowed.contains("\"\"") || !takesNothing(key, in: table) ? allowed : allowed + ", or \"\""
}

/// Whether an empty text is allowed, which means that there is no value.
private func takesNothing(_ key: String, in table: String) -> Bool {
  guard case .failure(let failure) = parse(text(table, "\(key) = \"\"")) else { return true }
  return !failure.mistakes.contains { "\($0)".contains(key) }
}

/// What is said of a secret that has no form, with each way to need it.
private func secretValues(_ key: String, in table: String) -> String {
  let id = "account_id = \"1\"\n"
  let contexts = ["", "id = \"1\"\ncipher = \"aes\"\n", "id = \"1\"\ncipher = \"des\"\n", id, id + "api = \"v2\"\n"]
  var forms: [String] = []
  for context in contexts {
    guard case .failure(let failure) = parse(text(table, "\(context)\(key)_env = \"V\""), environment: ["V": "é"])
    else { continue }
    for mistake in failure.mistakes where mistake.found == "the secret has the wrong form" {
      let form = String(mistake.allowed.prefix { $0 != ":" })
      if !forms.contains(form) { forms.append(form) }
    }
  }
  return forms.isEmpty ? "a secret" : "a secret: " + forms.joined(separator: ", ")
}

/// A value of the configuration as the file has it.
private func toml(_ value: Any, isSize: Bool) -> String {
  let mirror = Mirror(reflecting: value)
  return switch (value, mirror.displayStyle) {
  case (let number as Int, _): isSize ? "\"\(sizeText(number))\"" : "\(number)"
  case (is Bool, _), (is Double, _): "\(value)"
  case (let duration as Duration, _): "\"\(durationText(duration))\""
  case (let word as any RawRepresentable, _): "\"\(word.rawValue)\""
  case (_, .optional): mirror.children.first.map { toml($0.value, isSize: isSize) } ?? "\"\""
  case (_, .collection): "[" + mirror.children.map { toml($0.value, isSize: false) }.joined(separator: ", ") + "]"
  case (_, .dictionary): "{}"
  default: "\"\(value)\""
  }
}
