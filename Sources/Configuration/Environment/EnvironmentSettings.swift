// EnvironmentSettings.swift -- environment variables that override keys of the file, for containers without one.
//
// A value is put into the parsed tables, so that it is validated like the file's. A mistake in it names the variable.

extension Configuration {
  /// The path of the configuration file: the command line's, else `$HTTPDNSD_CONFIG`, else `defaultPath`.
  public static func path(given: String?, environment: Environment = processEnvironment) -> String {
    given ?? EnvironmentSettings.text(of: "HTTPDNSD_CONFIG", environment) ?? defaultPath
  }
}

enum EnvironmentSettings {
  /// A variable and the key that it overrides.
  private struct Setting: Sendable {
    let variable: String
    /// The table of the key; nil means the root.
    let table: String?
    let key: String
    /// Converts the text; records a mistake and returns nil if it is invalid.
    let value: @Sendable (String, ValuePath, MistakeReport) -> Value?

    var pattern: String { table.map { "\($0).\(key)" } ?? key }
  }

  private static let settings = [
    Setting(variable: "HTTPDNSD_LISTEN", table: "listen", key: "addresses") { text, _, _ in list(text) },
    Setting(variable: "HTTPDNSD_ALLOW", table: "listen", key: "allow") { text, _, _ in list(text) },
    Setting(variable: "HTTPDNSD_PROVIDER", table: nil, key: "provider") { text, place, report in
      providers(text, place, report)
    },
    Setting(variable: "HTTPDNSD_LOG_LEVEL", table: "log", key: "level") { text, _, _ in .string(text) },
  ]

  /// The names of the variables that override a key.
  static var variables: [String] { settings.map(\.variable) }

  /// The text of a variable without surrounding white space; nil if it is not set or blank.
  static func text(of variable: String, _ environment: Configuration.Environment) -> String? {
    guard let text = environment(variable) else { return nil }
    let trimmed = text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()
    return trimmed.isEmpty ? nil : String(trimmed)
  }

  /// The tables of the file with the keys that variables override.
  static func applied(to root: [String: Value], _ report: MistakeReport) -> [String: Value] {
    var root = root
    for setting in settings {
      guard let text = text(of: setting.variable, report.environment) else { continue }
      var table = root
      if let name = setting.table {
        // A value that is not a table is a mistake in the file, and is reported as one.
        guard case .table(let inner) = root[name] ?? .table([:]) else { continue }
        table = inner
      }
      let place = setting.table.map { ValuePath.root.key($0) } ?? .root
      report.take(setting.pattern, from: setting.variable)
      guard let value = setting.value(text, place.key(setting.key), report) else {
        report.giveBack(setting.pattern)
        continue
      }
      if let old = table[setting.key], old != value {
        let what = setting.pattern == "provider" ? "every [[provider]]" : setting.pattern
        report.warn("overrides \(what) in \(report.file)", at: place.key(setting.key))
      }
      table[setting.key] = value
      if let name = setting.table { root[name] = .table(table) } else { root = table }
    }
    return root
  }

  /// The words of a text, separated by commas or white space.
  private static func words(_ text: String) -> [String] {
    text.split { $0 == "," || $0.isWhitespace }.map { String($0) }
  }

  private static func list(_ text: String) -> Value { .array(words(text).map { .string($0) }) }

  /// Providers as `KIND` or `KIND+URL`. Kinds that need an account are not possible here.
  private static func providers(_ text: String, _ place: ValuePath, _ report: MistakeReport) -> Value? {
    var names: [String: Int] = [:]
    let tables = words(text).enumerated().compactMap { index, word -> Value? in
      let parts = word.split(separator: "+", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
      let kind = ProviderKindName(rawValue: parts[0])
      let known: [ProviderKindName] = parts.count == 1 ? [.alidns, .json, .doh] : [.json, .doh, .text, .table]
      guard let kind, known.contains(kind) else {
        report.refuse(
          .string(word), at: place.index(index),
          allowed: "alidns, json, doh, json+URL, doh+URL, text+URL or table+URL; providers with an account need a file")
        return nil
      }
      names[kind.rawValue, default: 0] += 1
      let count = names[kind.rawValue] ?? 1
      var table = ["kind": Value.string(kind.rawValue)]
      if count > 1 { table["name"] = .string("\(kind.rawValue)-\(count)") }
      if parts.count == 2 { table["url"] = .string(parts[1]) }
      return .table(table)
    }
    // Without a valid provider the file's value stays.
    return tables.isEmpty ? nil : .array(tables)
  }
}
