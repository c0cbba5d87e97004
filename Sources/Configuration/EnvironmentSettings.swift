// EnvironmentSettings.swift -- the variables that take the place of keys of the file: for a container that has none of its own.
//
// A value goes into the tables that were parsed, so that it is read and checked as the file's would be. A mistake in it names
// the variable.

extension Configuration {
  /// Where the configuration file is: what the command line gives, or else `$HTTPDNSD_CONFIG`, or else the usual place.
  public static func path(given: String?, environment: Environment = processEnvironment) -> String {
    given ?? EnvironmentSettings.text(of: "HTTPDNSD_CONFIG", environment) ?? defaultPath
  }
}

/// The variables, and what they say in terms of the file.
enum EnvironmentSettings {
  /// A variable and the key whose place it takes.
  private struct Setting: Sendable {
    let variable: String
    /// The table and the key in it; no table means the root.
    let table: String?
    let key: String
    /// What the text means; nil where it is a mistake, which has been recorded.
    let value: @Sendable (String, Place, Report) -> Value?

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

  /// The variables that take the place of a key.
  static var variables: [String] { settings.map(\.variable) }

  /// The text of a variable without white space around it; nil where it is not set, or blank.
  static func text(of variable: String, _ environment: Configuration.Environment) -> String? {
    guard let text = environment(variable) else { return nil }
    let trimmed = text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()
    return trimmed.isEmpty ? nil : String(trimmed)
  }

  /// The file's tables with what the variables say in the place of its keys.
  static func applied(to root: [String: Value], _ report: Report) -> [String: Value] {
    var root = root
    for setting in settings {
      guard let text = text(of: setting.variable, report.environment) else { continue }
      var table = root
      if let name = setting.table {
        // What is no table there is a mistake of the file, and told as one.
        guard case .table(let inner) = root[name] ?? .table([:]) else { continue }
        table = inner
      }
      let place = setting.table.map { Place.root.key($0) } ?? .root
      report.take(setting.pattern, from: setting.variable)
      guard let value = setting.value(text, place.key(setting.key), report) else {
        report.giveBack(setting.pattern)
        continue
      }
      if let old = table[setting.key], old != value {
        report.warn("takes the place of \(setting.pattern) in \(report.file)", at: place.key(setting.key))
      }
      table[setting.key] = value
      if let name = setting.table { root[name] = .table(table) } else { root = table }
    }
    return root
  }

  /// Words between commas and white space.
  private static func words(_ text: String) -> [String] {
    text.split { $0 == "," || $0.isWhitespace }.map { String($0) }
  }

  private static func list(_ text: String) -> Value { .array(words(text).map { .string($0) }) }

  /// Providers as `KIND` or `KIND+URL`, without what only a file can say of them.
  private static func providers(_ text: String, _ place: Place, _ report: Report) -> Value? {
    var names: [String: Int] = [:]
    let tables = words(text).enumerated().compactMap { index, word -> Value? in
      let parts = word.split(separator: "+", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
      let kind = ServiceKind(rawValue: parts[0])
      let known: [ServiceKind] = parts.count == 1 ? [.alidns, .json, .doh] : [.json, .doh, .table]
      guard let kind, known.contains(kind) else {
        report.refuse(
          .string(word), at: place.index(index),
          allowed: "alidns, json, doh, json+URL, doh+URL or table+URL; whatever has an account needs a file")
        return nil
      }
      names[kind.rawValue, default: 0] += 1
      let count = names[kind.rawValue] ?? 1
      var table = ["kind": Value.string(kind.rawValue)]
      if count > 1 { table["name"] = .string("\(kind.rawValue)-\(count)") }
      if parts.count == 2 { table["url"] = .string(parts[1]) }
      return .table(table)
    }
    // Of what is a mistake nothing is left to read.
    return tables.isEmpty ? nil : .array(tables)
  }
}
