// TopSample.swift -- the numbers that `httpdnsd top` reads from the daemon's statistics.

import Frontend
import JSON
import Telemetry

/// The daemon's numbers at one moment. Counters count from the start of the daemon.
public struct TopSample: Sendable, Equatable {
  struct Provider: Equatable {
    var name = ""
    /// The state in one or two words.
    var state = ""
    /// The reason for the state, how long it lasts, and the last failure; empty if there is nothing to explain.
    var reason = ""
    /// The server that is asked first; empty for none.
    var server = ""
    var transfers: UInt64 = 0
    /// Transfers that failed.
    var failures: UInt64 = 0
    /// Billing units of the current day (UTC).
    var unitsToday: UInt64 = 0
    /// Those of all daemons of the fleet; nil if they are not added up.
    var fleetUnits: UInt64?
    /// `units_per_day`; 0 for no limit.
    var unitsPerDay: UInt64 = 0
    var roundTrips = LatencyHistogram()
  }

  /// A name and type.
  struct Name: Equatable {
    var name = ""
    var type = ""
    /// Queries that the cache answered.
    var hits: UInt64 = 0
    /// Questions to providers, or to LocalDNS instead.
    var questions: UInt64 = 0
    /// The average round-trip time of providers, in nanoseconds.
    var averageRoundTrip: UInt64 = 0
    /// SERVFAIL responses to clients.
    var failed: UInt64 = 0
  }

  /// A name and type for which clients got SERVFAIL.
  struct Failing: Equatable {
    var name = ""
    var type = ""
    var count: UInt64 = 0
    /// The reason for the last failure.
    var reason = ""
    /// The time since the last failure, in nanoseconds.
    var age: UInt64 = 0
  }

  /// What ranking has done.
  public struct Ranking: Sendable, Equatable {
    /// Answers that are measured while they are used.
    public var answers: UInt64 = 0
    /// Probes that have ended.
    public var probes: UInt64 = 0
    /// Those of them that failed.
    public var failed: UInt64 = 0
    /// Probes put off because of `ranking.probes_per_minute`.
    var deferred: UInt64 = 0
    /// Cached answers whose order was changed.
    var rearranged: UInt64 = 0
    /// What hinders measurements.
    public var problems: [String] = []
    /// What each kind of probe has found so far.
    public var kinds: [String] = []
  }

  /// What the store that daemons share has brought.
  struct Fleet: Equatable {
    /// Whether the store is used.
    var isUp = false
    /// The state of the connection.
    var state = ""
    /// Answers of other daemons.
    var hits: UInt64 = 0
    /// Looks without an answer.
    var misses: UInt64 = 0
    /// Refreshes of other daemons that were adopted.
    var adopted: UInt64 = 0
  }

  /// The time of the sample, in nanoseconds of the boot-time clock.
  var time: UInt64 = 0
  /// The start of the daemon, by the same clock.
  var startedAt: UInt64 = 0
  /// Queries by outcome, in the order of `QueryFate`.
  var fates: [UInt64] = Array(repeating: 0, count: QueryFate.allCases.count)
  /// Responses by RCODE, in the order of `CountedCode`.
  var codes: [UInt64] = Array(repeating: 0, count: CountedCode.allCases.count)
  /// The latency of answers from the cache or from httpdnsd itself.
  var atHand = LatencyHistogram()
  /// The latency of answers from upstreams.
  var resolved = LatencyHistogram()
  /// The entries of the cache and their octets, each with the largest number.
  var entries: UInt64 = 0
  var maxEntries: UInt64 = 0
  var octets: UInt64 = 0
  var maxOctets: UInt64 = 0
  /// Questions in flight.
  var inFlight: UInt64 = 0
  /// Clients that wait for an upstream.
  var waiting: UInt64 = 0
  /// Transfers of refreshes.
  var refreshes: UInt64 = 0
  /// What ranking has done; nil if nothing is to be measured.
  public var ranking: Ranking?
  /// The store that daemons share; nil without one.
  var fleet: Fleet?
  /// The providers in the order of the configuration.
  var providers: [Provider] = []
  /// The busiest names, busiest first.
  var names: [Name] = []
  /// The failing names, the most recent failure first.
  var failing: [Failing] = []
}

extension TopSample {
  /// Reads the JSON of `GET /stats?top`; nil if a member is missing or has the wrong type.
  ///
  /// - Complexity: O(*n*) in the length of the text.
  init?(json: String) {
    guard let sample = try? withStats(json, TopSample.init(_:)) else { return nil }
    self = sample
  }

  private init(_ stats: JSONValue) throws(UnreadableStats) {
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
    if let ranking = stats["ranking"] { self.ranking = try Ranking(ranking) }
    if let fleet = stats["fleet"] { self.fleet = try Fleet(fleet) }
    providers = try stats.elements("providers", Provider.init(_:))
    names = try stats.elements("names", Name.init(_:))
    failing = try stats.elements("failing", Failing.init(_:))
  }
}

extension TopSample.Provider {
  fileprivate init(_ provider: JSONValue) throws(UnreadableStats) {
    (name, state) = (try provider.text("name"), try provider.text("label"))
    (reason, server) = (try provider.text("explanation", absent: ""), try provider.text("server", absent: ""))
    (transfers, failures) = (try provider.number("transfers"), try provider.number("failures"))
    (unitsToday, unitsPerDay) = (try provider.number("units_today"), try provider.number("units_per_day"))
    if let units = provider["fleet_units_today"] { fleetUnits = try units.counter() }
    roundTrips = try provider.member("round_trip_ms").histogram()
  }
}

extension TopSample.Fleet {
  fileprivate init(_ fleet: JSONValue) throws(UnreadableStats) {
    (isUp, state) = (try fleet.number("is_up") == 1, try fleet.text("state"))
    (hits, misses) = (try fleet.number("hits"), try fleet.number("misses"))
    adopted = try fleet.number("adopted")
  }
}

extension TopSample.Ranking {
  fileprivate init(_ ranking: JSONValue) throws(UnreadableStats) {
    (answers, probes) = (try ranking.number("answers"), try ranking.number("probes"))
    (failed, deferred) = (try ranking.number("failed"), try ranking.number("deferred"))
    rearranged = try ranking.number("rearranged")
    problems = try ranking.elements("problems") { problem throws(UnreadableStats) in try problem.string() }
    kinds = try ranking.elements("kinds") { line throws(UnreadableStats) in try line.string() }
  }
}

extension TopSample.Name {
  fileprivate init(_ row: JSONValue) throws(UnreadableStats) {
    (name, type) = (try row.text("name"), try row.text("type"))
    (hits, questions) = (try row.number("hits"), try row.number("questions"))
    (averageRoundTrip, failed) = (try row.number("round_trip_ns"), try row.number("failures"))
  }
}

extension TopSample.Failing {
  fileprivate init(_ row: JSONValue) throws(UnreadableStats) {
    (name, type) = (try row.text("name"), try row.text("type"))
    (count, reason, age) = (try row.number("failures"), try row.text("reason"), try row.number("age_ns"))
  }
}

struct UnreadableStats: Error {}

/// Passes the root of a text to `read`. `ControlClient` limits its length.
func withStats<Value>(
  _ text: String, _ read: (JSONValue) throws(UnreadableStats) -> Value
) throws(UnreadableStats) -> Value {
  let octets = Array(text.utf8)
  return try withJSON(octets, limit: octets.count, orThrow: { _ in UnreadableStats() }, read)
}

extension JSONValue {
  fileprivate func member(_ name: String) throws(UnreadableStats) -> JSONValue {
    guard let member = member(named: name) else { throw UnreadableStats() }
    return member
  }

  fileprivate func counter() throws(UnreadableStats) -> UInt64 {
    guard let unsigned else { throw UnreadableStats() }
    return unsigned
  }

  fileprivate func string() throws(UnreadableStats) -> String {
    guard let text else { throw UnreadableStats() }
    return text
  }

  /// Returns an integer member, or `absent` if it is missing.
  fileprivate func number(_ name: String, absent: UInt64? = nil) throws(UnreadableStats) -> UInt64 {
    if let absent, member(named: name) == nil { return absent }
    return try member(name).counter()
  }

  /// Returns a string member, or `absent` if it is missing.
  func text(_ name: String, absent: String? = nil) throws(UnreadableStats) -> String {
    if let absent, member(named: name) == nil { return absent }
    return try member(name).string()
  }

  /// Reads each element of an array member.
  fileprivate func elements<Element>(
    _ name: String, _ read: (JSONValue) throws(UnreadableStats) -> Element
  ) throws(UnreadableStats) -> [Element] {
    let array = try member(name)
    guard array.isArray else { throw UnreadableStats() }
    return try array.elements.map(read)
  }

  /// Reads a histogram that `JSONText.histogram` wrote.
  fileprivate func histogram() throws(UnreadableStats) -> LatencyHistogram {
    let counts = try elements("buckets") { count throws(UnreadableStats) in try count.counter() }
    guard counts.count == LatencyHistogram.bucketCount else { throw UnreadableStats() }
    return LatencyHistogram(counts: counts, sum: try number("sum_ns"), longest: try number("longest_ns"))
  }
}
