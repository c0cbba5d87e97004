// Refresh.swift -- the `[refresh]` section: refreshing of entries before they expire (prefetch).

import DNSWire

extension Configuration {
  /// Refreshing of entries before they expire (prefetch), so that clients do not wait for them.
  public struct Refresh: Hashable, Sendable {
    /// The fraction of its TTL after which an entry is refreshed, 0.1 to 0.99.
    public var at = 0.75
    /// Names that are always kept fresh, whether clients ask for them or not.
    public var keep: [DomainName] = []
    /// Names that are resolved once at start and after a change of network.
    public var preload: [DomainName] = []
    /// The record types of the names in `keep` and `preload`.
    public var types: [RecordType] = [.a, .aaaa]
    /// Hits within one TTL that make a name hot; 0 disables refreshing of hot names.
    public var hotHits = 5
    /// Refreshes without a hit after which a name is no longer hot.
    public var giveUpAfter = 3
    /// Entries with a shorter TTL are not refreshed; whole seconds.
    public var minTTL: Duration = .seconds(10)
    /// Billing units per minute that refreshing may cost.
    public var budgetPerMinute = 60
    /// Transfers per minute for refreshing at providers that do not bill: the same key, with another default.
    public var freePerMinute = 1200
    /// Billing units per day that refreshing may cost; providers that do not bill have no daily limit.
    public var budgetPerDay = 10_000
    /// Whether one transfer refreshes several names, if the provider supports it.
    public var batch = true
  }
}

extension Configuration.Refresh {
  mutating func read(from reader: TableReader) {
    reader.read("at", &at, .number(0.1...0.99))
    reader.read("keep", &keep, .distinctList(of: .domainName))
    reader.read("preload", &preload, .distinctList(of: .domainName))
    reader.read("types", &types, .distinctList(of: .dataType, atLeast: 1))
    reader.read("hot_hits", &hotHits, .integer(0...1_000_000))
    reader.read("give_up_after", &giveUpAfter, .integer(1...1_000_000))
    reader.read("min_ttl", &minTTL, .ttl())
    reader.read("budget_per_minute", &budgetPerMinute, .integer(0...1_000_000))
    if reader.isGiven("budget_per_minute") { freePerMinute = budgetPerMinute }
    reader.read("budget_per_day", &budgetPerDay, .integer(0...1_000_000_000))
    reader.read("batch", &batch, .boolean)
  }
}

extension Form where Result == RecordType {
  /// A data type; QTYPEs and meta types are refused (RFC 6895 section 3.1).
  static var dataType: Form {
    Form("a record type, e.g. \"AAAA\" or \"TYPE65\", but no meta type") { value in
      guard let type = value.line.flatMap({ RecordType(text: $0) }) else { return nil }
      return type.rawValue == 0 || type == .opt || (128...255).contains(type.rawValue) ? nil : type
    }
  }
}
