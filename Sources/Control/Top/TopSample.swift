// TopSample.swift -- the numbers that `httpdnsd top` gets from the daemon, and the lines in which they travel.
//
// Both ends are programs of one version: a line for each group of numbers, separated by tabs, texts percent-encoded. The
// first line has the version.

import DNSWire
import EventLoop
import Forwarder
import Frontend
import MessageCache
import Resolver
import Telemetry
import Upstreams

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

  /// The numbers of a daemon.
  init(_ numbers: DaemonNumbers, names reports: [NameReport]) {
    let statistics = numbers.statistics
    time = UInt64(clamping: statistics.time.nanoseconds)
    startedAt = UInt64(clamping: statistics.startedAt.nanoseconds)
    fates = QueryFate.allCases.map { statistics.queries.count($0) }
    codes = CountedCode.allCases.map { statistics.queries.count($0) }
    (atHand, resolved) = (statistics.queries.atHand, statistics.queries.resolved)
    (entries, maxEntries) = (UInt64(clamping: statistics.cache.entries), UInt64(clamping: statistics.cache.maxEntries))
    (octets, maxOctets) = (UInt64(clamping: statistics.cache.octets), UInt64(clamping: statistics.cache.maxOctets))
    inFlight = UInt64(clamping: statistics.questionsInFlight)
    waiting = UInt64(clamping: statistics.waitingClients)
    refreshes = statistics.refresh?.transfers ?? 0
    let now = LogTime.now.nanoseconds / 1_000_000_000
    providers = statistics.providers.map { report in
      Provider(
        name: report.name, state: report.state.label, reason: report.explanation(now: now) ?? "",
        server: report.server ?? "",
        transfers: UInt64(clamping: report.transfers), failures: UInt64(clamping: report.failures),
        unitsToday: UInt64(clamping: report.unitsToday), unitsPerDay: UInt64(clamping: report.unitsPerDay),
        roundTrips: report.roundTrips)
    }
    failing = numbers.failing.map { row in
      Failing(
        name: row.name.text, type: "\(row.type)", count: row.count, reason: row.reason,
        age: UInt64(clamping: row.age.nanoseconds))
    }
    let failed = Dictionary(failing.map { ("\($0.name) \($0.type)", $0.count) }) { first, _ in first }
    names = reports.map { report in
      Name(
        name: report.name.text, type: report.type.counted, hits: report.counts.cacheDnsNum,
        questions: report.counts.requestPDnsNum + report.counts.gobackLocaldnsNum,
        averageRoundTrip: UInt64(clamping: report.counts.avgRtt),
        failed: failed["\(report.name.text) \(report.type)"] ?? 0)
    }
  }
}

extension TopSample: ControlText {
  private static let version = "httpdnsd-top\t2"

  /// For the other program.
  var text: String {
    var lines = [
      TopSample.version, TopSample.line("time", [], [time, startedAt]), TopSample.line("fates", [], fates),
      TopSample.line("codes", [], codes), TopSample.line("at-hand", [], atHand.numbers),
      TopSample.line("resolved", [], resolved.numbers),
      TopSample.line("cache", [], [entries, maxEntries, octets, maxOctets]),
      TopSample.line("load", [], [inFlight, waiting, refreshes]),
    ]
    lines += providers.map { provider in
      TopSample.line(
        "provider", [provider.name, provider.state, provider.reason, provider.server],
        [provider.transfers, provider.failures, provider.unitsToday, provider.unitsPerDay]
          + provider.roundTrips.numbers)
    }
    lines += names.map {
      TopSample.line("name", [$0.name, $0.type], [$0.hits, $0.questions, $0.averageRoundTrip, $0.failed])
    }
    lines += failing.map { TopSample.line("failing", [$0.name, $0.type, $0.reason], [$0.count, $0.age]) }
    return lines.map { "\($0)\n" }.joined()
  }

  var json: String { TopFrame(self, after: nil).json }

  private static func line(_ word: String, _ texts: [String], _ numbers: [UInt64]) -> String {
    ([word] + texts.map(PercentText.encode) + numbers.map { "\($0)" }).joined(separator: "\t")
  }

  /// What the other program sent; nil where it is of another version.
  public init?(text: String) {
    self.init()
    var lines = text.split(separator: "\n")[...]
    guard lines.popFirst() == TopSample.version[...] else { return nil }
    for line in lines {
      guard read(line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)) else { return nil }
    }
  }

  private mutating func read(_ fields: [String]) -> Bool {
    let texts = ["provider": 4, "name": 2, "failing": 3][fields[0]] ?? 0
    let numbers = fields.dropFirst(1 + texts).compactMap { UInt64($0) }
    let words = fields.dropFirst().prefix(texts).compactMap { PercentText.decode($0) }
    guard words.count == texts, numbers.count == fields.count - 1 - texts else { return false }
    switch (fields[0], numbers.count) {
    case ("time", 2): (time, startedAt) = (numbers[0], numbers[1])
    case ("fates", fates.count): fates = numbers
    case ("codes", codes.count): codes = numbers
    case ("at-hand", LatencyHistogram.numberCount): atHand = LatencyHistogram(numbers: numbers[...])
    case ("resolved", LatencyHistogram.numberCount): resolved = LatencyHistogram(numbers: numbers[...])
    case ("cache", 4): (entries, maxEntries, octets, maxOctets) = (numbers[0], numbers[1], numbers[2], numbers[3])
    case ("load", 3): (inFlight, waiting, refreshes) = (numbers[0], numbers[1], numbers[2])
    case ("provider", 4 + LatencyHistogram.numberCount):
      providers.append(
        Provider(
          name: words[0], state: words[1], reason: words[2], server: words[3], transfers: numbers[0],
          failures: numbers[1], unitsToday: numbers[2], unitsPerDay: numbers[3],
          roundTrips: LatencyHistogram(numbers: numbers[4...])))
    case ("failing", 2):
      failing.append(
        Failing(name: words[0], type: words[1], count: numbers[0], reason: words[2], age: numbers[1]))
    case ("name", 4):
      names.append(
        Name(
          name: words[0], type: words[1], hits: numbers[0], questions: numbers[1], averageRoundTrip: numbers[2],
          failed: numbers[3]))
    default: return false
    }
    return true
  }
}

extension LatencyHistogram {
  fileprivate static let numberCount = 2 + bucketCount

  /// The sum and the counts.
  fileprivate var numbers: [UInt64] { [sum, longest] + counts }

  /// - Precondition: there are `numberCount` of them.
  fileprivate init(numbers: ArraySlice<UInt64>) {
    let (sum, longest) = (numbers[numbers.startIndex], numbers[numbers.startIndex + 1])
    self.init(counts: Array(numbers.dropFirst(2)), sum: sum, longest: longest)
  }
}
