// Refresh.swift -- the `[refresh]` section: refreshing of entries before they expire (prefetch).

import DNSWire

extension Configuration {
  /// Refreshing of entries before they expire (prefetch), so that clients do not wait for them.
  public struct Refresh: Hashable, Sendable {
    /// Part of the TTL after which an answer is fetched again.
    public var at = 0.75
    /// Names that are always in the cache, also if no client asks for them.
    public var keep: [DomainName] = []
    /// Names that are resolved at start, and first after a change of network.
    public var preload: [DomainName] = []
    /// Types of the names in `keep` and `preload`.
    public var types: [RecordType] = [.a, .aaaa]
    /// Hits within one TTL that make a name hot; 0 means that only `keep` is refreshed.
    public var hotHits = 5
    /// Refreshes without a hit after which a hot name is dropped.
    public var giveUpAfter = 3
    /// Answers with a shorter TTL are not fetched ahead.
    public var minTTL: Duration = .seconds(10)
    /// Billing units in a minute; where nothing is billed, the number of transfers, by default 1200.
    public var budgetPerMinute = 60
    /// Transfers per minute for refreshing at providers that do not bill: the same key, with another default.
    public var freePerMinute = 1200
    /// Billing units in a day; no limit where nothing is billed.
    public var budgetPerDay = 10_000
    /// Whether one transfer carries several names, where the provider can.
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
      value.line.flatMap { RecordType(text: $0) }.flatMap { $0.isDataType ? $0 : nil }
    }
  }
}
