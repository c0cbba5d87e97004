// KnownKeys.swift -- the keys of all tables, and the table that a misplaced key belongs to.

extension Configuration {
  /// All tables with their keys in the order of reading; `[[provider]]` for each kind.
  static let knownKeys: [(place: ValuePath, keys: [String])] = {
    let kinds = ProviderKindName.allCases.map { Value.table(["kind": .string($0.rawValue)]) }
    let report = MistakeReport(file: "", environment: { _ in nil })
    report.tables = []
    var configuration = Configuration()
    configuration.read(
      from: TableReader(
        ["provider": .array(kinds), "list": .array([.table([:])]), "rule": .array([.table([:])])], at: .root, report))
    return report.tables ?? []
  }()

  /// The full names of each key in messages, such as `listen.addresses`; that of `[[provider]]` is the last.
  private static let fullNames: [String: [String]] = {
    var names = ["state_directory": ["state_directory at the top of the file"]]
    for (place, keys) in knownKeys where !["", "provider", "list", "rule"].contains(place.pattern) {
      for key in keys { names[key, default: []].append("\(place.text).\(key)") }
    }
    for (place, keys) in knownKeys where place.pattern == "provider" {
      for key in keys {
        let name = "\(key) in [[provider]]"
        if names[key]?.contains(name) != true { names[key, default: []].append(name) }
      }
    }
    return names
  }()

  /// The full names of the key in all tables that have it, or of the most similar key; nil if none is similar.
  static func elsewhere(_ key: String) -> String? {
    let names = fullNames[key] ?? closest(to: key, among: fullNames.keys.sorted()).flatMap { fullNames[$0] }
    return names?.joined(separator: " or ")
  }
}
