// Refresh.swift -- the `[refresh]` section: what is fetched again before it expires.

import DNSWire

extension Configuration {
  /// What is fetched again before it expires, so that its users never wait.
  public struct Refresh: Hashable, Sendable {
    /// After which part of its TTL an entry is fetched again, 0.1 to 0.99.
    public var at = 0.75
    /// Names that are always kept fresh, asked for or not.
    public var keep: [DomainName] = []
    /// Names that are resolved once at start and after a change of network.
    public var preload: [DomainName] = []
    /// The types that `keep` and `preload` mean.
    public var types: [RecordType] = [.a, .aaaa]
    /// Hits within one TTL that make a name hot; 0 means that nothing is refreshed by itself.
    public var hotHits = 5
    /// Refreshes without a hit after which a name is no longer hot.
    public var giveUpAfter = 3
    /// Shorter TTLs are not refreshed ahead; whole seconds.
    public var minTTL: Duration = .seconds(10)
    /// Billing units that refreshing may cost in a minute.
    public var budgetPerMinute = 60
    /// Transfers that refreshing may cause in a minute to providers that bill nothing: the same key, with its own default.
    public var freePerMinute = 1200
    /// Billing units that refreshing may cost in a day; there is no limit for providers that bill nothing.
    public var budgetPerDay = 10_000
    /// Whether several names go in one transfer where the provider can.
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
    var perMinute = -1
    reader.read("budget_per_minute", &perMinute, .integer(0...1_000_000))
    if perMinute >= 0 { (budgetPerMinute, freePerMinute) = (perMinute, perMinute) }
    reader.read("budget_per_day", &budgetPerDay, .integer(0...1_000_000_000))
    reader.read("batch", &batch, .boolean)
  }
}

extension Form where Result == RecordType {
  /// A type of data: no type that is only asked for or belongs to the message (RFC 6895 section 3.1).
  static var dataType: Form {
    Form("a record type such as \"AAAA\" or \"TYPE65\", not a meta type") { value in
      guard let type = value.line.flatMap({ RecordType(text: $0) }) else { return nil }
      return type.rawValue == 0 || type == .opt || (128...255).contains(type.rawValue) ? nil : type
    }
  }
}
