// Sample.swift -- what the daemon has counted between two readings: a row of the plots.

import EventLoop
import Forwarder
import Frontend
import Refresh
import Resolver
import Telemetry
import Upstreams

/// The figures of a row besides those of providers, in the order of `Sample.figures`.
enum Figure {
  /// Their names in JSON.
  static let names: [String] =
    ["seconds"] + QueryFate.allCases.map(\.word) + [
      "servfail", "joined", "questions", "transfers", "failures", "refreshes", "hit_p50", "hit_p95", "hit_p99",
      "miss_p50", "miss_p95", "miss_p99",
    ]
  static let count = names.count
}

/// The difference between two readings of the statistics. What is unknown is NaN.
struct Sample: Sendable {
  /// The difference for one provider, and its state at the end.
  struct Provider: Sendable {
    var name: String
    /// Its place in `ProviderReport.State.words`.
    var state: Int
    var transfers: Int
    var failures: Int
    var unitsToday: Int
    var unitsPerDay: Int
    /// The median of the round trips in milliseconds.
    var median: Float
  }

  /// The time of the later reading.
  var end: BootInstant
  var figures: [Float]
  var providers: [Provider]

  init(end: BootInstant, figures: [Float], providers: [Provider]) {
    (self.end, self.figures, self.providers) = (end, figures, providers)
  }

  init(_ later: ForwarderStatistics, after earlier: ForwarderStatistics) {
    end = later.time
    let queries = later.queries - earlier.queries
    var before: [String: ProviderCounters] = [:]
    for report in earlier.providers { before[report.name] = report.counters }
    providers = later.providers.map { report in
      let last = before[report.name]
      return Provider(
        name: report.name, state: ProviderReport.State.words.firstIndex(of: report.state.word) ?? 0,
        transfers: Sample.growth(of: report.counters.transfers, since: last?.transfers),
        failures: Sample.growth(of: report.counters.failures.total, since: last?.failures.total),
        unitsToday: report.unitsToday,
        unitsPerDay: report.unitsPerDay,
        median: Sample.quantiles(
          report.counters.roundTrips - (last?.roundTrips ?? LatencyHistogram()), [0.5], per: .milliseconds(1))[0])
    }
    figures = [Float((later.time - earlier.time) / .seconds(1))]
    figures += QueryFate.allCases.map { Float(queries.count($0)) }
    func difference(_ value: (ForwarderStatistics) -> UInt64) -> Float {
      let (later, earlier) = (value(later), value(earlier))
      return later > earlier ? Float(later - earlier) : 0
    }
    figures.append(Float(queries.count(.servFail)))
    figures.append(difference { UInt64($0.resolver.joined) })
    figures.append(difference { UInt64($0.resolver.fetches) })
    figures.append(Float(providers.reduce(0) { $0 + $1.transfers }))
    figures.append(Float(providers.reduce(0) { $0 + $1.failures }))
    figures.append(difference { $0.refresh?.transfers ?? 0 })
    figures += Sample.quantiles(queries.atHand, Sample.shown, per: .microseconds(1))
    figures += Sample.quantiles(queries.resolved, Sample.shown, per: .milliseconds(1))
  }

  /// A row without figures, for a time of which nothing can be said.
  init(gapUntil end: BootInstant) {
    self.init(end: end, figures: Array(repeating: .nan, count: Figure.count), providers: [])
  }

  private static let shown = [0.5, 0.95, 0.99]

  /// A counter that has fallen began again.
  private static func growth(of later: Int, since earlier: Int?) -> Int {
    later - (earlier.map { $0 > later ? 0 : $0 } ?? 0)
  }

  private static func quantiles(_ histogram: LatencyHistogram, _ fractions: [Double], per unit: Duration) -> [Float] {
    fractions.map { fraction in histogram.quantile(fraction).map { Float($0 / unit) } ?? .nan }
  }
}
