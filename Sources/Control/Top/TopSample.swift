// TopSample.swift -- the numbers that `httpdnsd top` reads from the daemon's statistics.

import Frontend
import Telemetry

/// What the daemon has done until a moment.
public struct TopSample: Sendable, Equatable {
  /// A provider.
  public struct Provider: Sendable, Equatable {
    /// Its name in the configuration.
    public var name = ""
    /// Its state in a word or two.
    public var state = ""
    /// Why, for how long, and its last failure; empty where it is up without failures.
    public var reason = ""
    /// The server that is asked first; empty for none.
    public var server = ""
    /// Transfers since the start.
    public var transfers: UInt64 = 0
    /// Those of them that failed.
    public var failures: UInt64 = 0
    /// Billing units of this day.
    public var unitsToday: UInt64 = 0
    /// `units_per_day`; 0 for no limit.
    public var unitsPerDay: UInt64 = 0
    /// How long replies took.
    public var roundTrips = LatencyHistogram()
  }

  /// A name and type.
  public struct Name: Sendable, Equatable {
    /// The name as text.
    public var name = ""
    /// The type as text.
    public var type = ""
    /// Queries that the cache answered.
    public var hits: UInt64 = 0
    /// Questions to providers, or to LocalDNS in their place.
    public var questions: UInt64 = 0
    /// How long providers took on average, in nanoseconds.
    public var averageRoundTrip: UInt64 = 0
    /// Answers to clients that were SERVFAIL.
    public var failed: UInt64 = 0
  }

  /// A name and type whose clients got SERVFAIL.
  public struct Failing: Sendable, Equatable {
    /// The name as text.
    public var name = ""
    /// The type as text.
    public var type = ""
    /// How often.
    public var count: UInt64 = 0
    /// Why, the last time.
    public var reason = ""
    /// How long ago that was, in nanoseconds.
    public var age: UInt64 = 0
  }

  /// When, in nanoseconds of the boot-time clock.
  public var time: UInt64 = 0
  /// Since when it counts, by the same clock.
  public var startedAt: UInt64 = 0
  /// Queries by their fates, in the order of `QueryFate`.
  public var fates: [UInt64] = Array(repeating: 0, count: QueryFate.allCases.count)
  /// Responses by their codes, in the order of `CountedCode`.
  public var codes: [UInt64] = Array(repeating: 0, count: CountedCode.allCases.count)
  /// How long answers took that came from the cache or from httpdnsd itself.
  public var atHand = LatencyHistogram()
  /// How long answers took that an upstream gave.
  public var resolved = LatencyHistogram()
  /// Entries of the cache.
  public var entries: UInt64 = 0
  /// How many there may be.
  public var maxEntries: UInt64 = 0
  /// Octets of the cache.
  public var octets: UInt64 = 0
  /// How many there may be.
  public var maxOctets: UInt64 = 0
  /// Questions in flight.
  public var inFlight: UInt64 = 0
  /// Clients that wait.
  public var waiting: UInt64 = 0
  /// Transfers for refreshing.
  public var refreshes: UInt64 = 0
  /// In the order of the configuration.
  public var providers: [Provider] = []
  /// The busiest first.
  public var names: [Name] = []
  /// The one that failed last first.
  public var failing: [Failing] = []

  /// Nothing yet.
  public init() {}
}

extension TopSample {
  /// The numbers in the JSON of `GET /stats?top`; nil if a member is missing or is not of its kind.
  ///
  /// - Complexity: O(*n*) in the length of the text.
  init?(json: String) {
    guard let sample = try? StatsValue.read(json, TopSample.init(_:)) else { return nil }
    self = sample
  }

  private init(_ stats: StatsValue) throws(UnreadableStats) {
    (time, startedAt) = (try stats.number("time_ns"), try stats.number("started_ns"))
    let fates = try stats.member("fates")
    for fate in QueryFate.allCases { self.fates[fate.rawValue] = try fates.number(fate.word) }
    let codes = try stats.member("rcodes")
    for code in CountedCode.allCases { self.codes[code.rawValue] = try codes.number(code.word) }
    atHand = try stats.member("latency_at_hand_ms").histogram()
    resolved = try stats.member("latency_resolved_ms").histogram()
    let cache = try stats.member("cache")
    (entries, maxEntries) = (try cache.number("entries"), try cache.number("max_entries"))
    (octets, maxOctets) = (try cache.number("octets"), try cache.number("max_octets"))
    (inFlight, waiting) = (try stats.number("questions_under_way"), try stats.number("waiting_clients"))
    refreshes = try stats.number("refresh_transfers", absent: 0)
    providers = try stats.elements("providers", Provider.init(_:))
    names = try stats.elements("names", Name.init(_:))
    failing = try stats.elements("failing", Failing.init(_:))
  }
}

extension TopSample.Provider {
  fileprivate init(_ provider: StatsValue) throws(UnreadableStats) {
    (name, state) = (try provider.text("name"), try provider.text("label"))
    (reason, server) = (try provider.text("explanation", absent: ""), try provider.text("server", absent: ""))
    (transfers, failures) = (try provider.number("transfers"), try provider.number("failures"))
    (unitsToday, unitsPerDay) = (try provider.number("units_today"), try provider.number("units_per_day"))
    roundTrips = try provider.member("round_trip_ms").histogram()
  }
}

extension TopSample.Name {
  fileprivate init(_ row: StatsValue) throws(UnreadableStats) {
    (name, type) = (try row.text("name"), try row.text("type"))
    (hits, questions) = (try row.number("hits"), try row.number("questions"))
    (averageRoundTrip, failed) = (try row.number("round_trip_ns"), try row.number("failures"))
  }
}

extension TopSample.Failing {
  fileprivate init(_ row: StatsValue) throws(UnreadableStats) {
    (name, type) = (try row.text("name"), try row.text("type"))
    (count, reason, age) = (try row.number("failures"), try row.text("reason"), try row.number("age_ns"))
  }
}

extension StatsValue {
  /// The histogram that `JSONText.histogram` has written.
  fileprivate func histogram() throws(UnreadableStats) -> LatencyHistogram {
    let counts = try elements("buckets") { count throws(UnreadableStats) in try count.number() }
    guard counts.count == LatencyHistogram.bucketCount else { throw UnreadableStats() }
    return LatencyHistogram(counts: counts, sum: try number("sum_ns"), longest: try number("longest_ns"))
  }
}
