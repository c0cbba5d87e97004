// MisplacedKeys.swift -- finds the table that a misplaced key belongs to.

/// A value that one table of the file fills.
protocol Section: Sendable {
  init()
  /// Asks the reader for every key of the table, also where the table is empty.
  mutating func read(from reader: TableReader)
}

extension Configuration.Listen: Section {}
extension Configuration.Cache: Section {}
extension Configuration.Refresh: Section {}
extension Configuration.Ranking: Section {}
extension Configuration.Names: Section {}
extension Configuration.Control: Section {}
extension Configuration.Web: Section {}
extension Configuration.Log: Section {}
extension Configuration.LocalDNS: Section {
  mutating func read(from reader: TableReader) { read(from: reader, ownAddresses: []) }
}
extension Configuration.Fleet: Section {
  mutating func read(from reader: TableReader) {
    read(from: reader, Context(store: nil, isStoreSound: true, hasLocalDNS: false, ownAddresses: []))
  }
}
extension Configuration.Provider: Section {
  mutating func read(from reader: TableReader) { read(from: reader, Context(hasLocalDNS: false, ownAddresses: [])) }
}

extension Configuration {
  /// The keys of all tables, each with its full names in messages, such as `listen.addresses`.
  private static let fullNames: [String: [String]] = {
    let sections: [(table: String, type: any Section.Type)] = [
      ("listen", Listen.self), ("localdns", LocalDNS.self), ("cache", Cache.self), ("fleet", Fleet.self),
      ("refresh", Refresh.self), ("ranking", Ranking.self), ("names", Names.self), ("control", Control.self),
      ("web", Web.self), ("log", Log.self),
    ]
    var names = ["state_directory": ["state_directory at the top of the file"]]
    for section in sections {
      for key in keys(of: section.type) { names[key, default: []].append("\(section.table).\(key)") }
    }
    // The keys that belong to one kind of provider come last: a provider without a kind does not ask for them.
    for key in keys(of: Provider.self) + ProviderKindName.allCases.flatMap(\.ownKeys) {
      let name = "\(key) in [[provider]]"
      if names[key]?.contains(name) != true { names[key, default: []].append(name) }
    }
    return names
  }()

  private static func keys(of section: any Section.Type) -> [String] {
    let reader = TableReader([:], at: .root, MistakeReport(file: "", environment: { _ in nil }))
    var value = section.init()
    value.read(from: reader)
    return reader.known
  }

  /// The full names of the key in all tables that have it, or of the most similar key; nil if none is similar.
  static func elsewhere(_ key: String) -> String? {
    let isSecretOfProvider = fullNames[key] == nil && ProviderKindName.allCases.contains { $0.owns(key) }
    if isSecretOfProvider { return "\(key) in [[provider]]" }
    let names = fullNames[key] ?? closest(to: key, among: fullNames.keys.sorted()).flatMap { fullNames[$0] }
    return names?.joined(separator: " or ")
  }
}
