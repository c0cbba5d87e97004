// Misplaced.swift -- where a key belongs that stands outside of its table.

/// What reads one table of the file.
protocol Section: Sendable {
  init()
  /// Reads the keys of the table, which may be an empty one.
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
extension Configuration.Provider: Section {
  mutating func read(from reader: TableReader) { read(from: reader, Context(hasLocalDNS: false, ownAddresses: [])) }
}

extension Configuration {
  /// The headers of the tables that have a key of that name.
  private static let headers: [String: [String]] = {
    let sections: [(header: String, type: any Section.Type)] = [
      ("[listen]", Listen.self), ("[localdns]", LocalDNS.self), (provider, Provider.self), ("[cache]", Cache.self),
      ("[refresh]", Refresh.self), ("[ranking]", Ranking.self), ("[names]", Names.self), ("[control]", Control.self),
      ("[web]", Web.self), ("[log]", Log.self),
    ]
    var headers: [String: [String]] = [:]
    for section in sections {
      let reader = TableReader([:], at: .root, Report(file: "", environment: { _ in nil }))
      var value = section.type.init()
      value.read(from: reader)
      for key in reader.known { headers[key, default: []].append(section.header) }
    }
    return headers
  }()

  private static let provider = "[[provider]]"

  /// What a key at the top of the file is that belongs below a header, and below which; nil where it does not.
  static func misplaced(_ key: String) -> (what: String, reason: String)? {
    let isProviders = ServiceKind.allCases.contains { $0.owns(key) }
    let found = headers[key] ?? (isProviders ? [provider] : [])
    guard !found.isEmpty else { return nil }
    return ("a key outside of its table", "it belongs below \(found.joined(separator: " or "))")
  }
}
