// FigureText.swift -- the figures that everybody may see, as JSON: no name that was asked for, no client, no reason.

import EventLoop
import Fleet
import Forwarder
import Frontend
import JSON
import MessageCache
import Ranking
import Refresh
import Store
import Upstreams

/// Writes samples and the present state. What is unknown or off is null.
enum FigureText {
  /// What does not change while the daemon runs, or only by a reload.
  struct Settings {
    var version: String
    /// `refresh.budget_per_minute` and `refresh.budget_per_day`.
    var refreshBudgets: (minute: Int, day: Int)
  }

  static let null = "null"

  /// A number with three significant digits, or all of its whole ones; null for NaN, and for what no counter reaches.
  static func number(_ value: Float) -> String {
    guard abs(value) < 1e18 else { return null }
    let whole = value.rounded()
    if whole == value || abs(value) >= 100 { return "\(Int64(whole))" }
    let step = abs(value) >= 10 ? 10.0 : 100.0
    return JSONText.seconds(.milliseconds(Int64((Double(value) * step).rounded() * 1000 / step)))
  }

  /// Seconds since 1970.
  ///
  /// - Parameter offset: nanoseconds from the boot clock to the wall clock.
  static func time(_ instant: BootInstant, _ offset: Int64) -> String {
    JSONText.seconds(.nanoseconds(instant.nanoseconds + offset))
  }

  /// A row.
  ///
  /// - Parameter now: the present state as JSON; nil for a row of the past.
  static func sample(_ sample: Sample, offset: Int64, now: String?) -> String {
    let figures = zip(Figure.names, sample.figures).map { ($0, number($1)) }
    let providers = sample.providers.map { provider in
      JSONText.object([
        "name": JSONText.string(provider.name), "state": "\(provider.state)", "transfers": "\(provider.transfers)",
        "failures": "\(provider.failures)", "units_today": "\(provider.unitsToday)",
        "units_per_day": "\(provider.unitsPerDay)", "median_ms": number(provider.median),
      ])
    }
    return JSONText.object(
      [("time", time(sample.end, offset))] + figures + [("providers", JSONText.array(providers))]
        + JSONText.members(["now": now]))
  }

  /// The present state, and totals since the daemon began to count.
  static func now(_ statistics: ForwarderStatistics, _ settings: Settings, offset: Int64, readers: Int) -> String {
    let queries = statistics.queries
    let transfers = statistics.providers.reduce(0) { $0 + $1.counters.transfers }
    let totals =
      QueryFate.allCases.map { ($0.word, "\(queries.count($0))") }
      + [("servfail", "\(queries.count(.servFail))"), ("transfers", "\(transfers)")]
    let cache = statistics.cache
    return JSONText.object([
      "version": JSONText.string(settings.version), "started": time(statistics.startedAt, offset),
      "time": time(statistics.time, offset), "totals": JSONText.object(totals),
      "cache": cache.maxEntries == 0
        ? null
        : JSONText.object([
          "entries": "\(cache.entries)", "max_entries": "\(cache.maxEntries)", "octets": "\(cache.octets)",
          "max_octets": "\(cache.maxOctets)",
        ]),
      "in_flight": "\(statistics.questionsInFlight)", "in_flight_limit": "\(statistics.maxQuestionsInFlight)",
      "waiting_clients": "\(statistics.waitingClients)",
      "refresh": statistics.refresh.map { refresh in
        JSONText.object([
          "scheduled": "\(statistics.scheduledRefreshes)", "transfers": "\(refresh.transfers)",
          "over_budget": "\(refresh.overBudget)", "budget_per_minute": "\(settings.refreshBudgets.minute)",
          "budget_per_day": "\(settings.refreshBudgets.day)",
        ])
      } ?? null,
      "encrypted": statistics.encrypted.map { encrypted($0, queries) } ?? null,
      "fleet": statistics.fleet.map { fleet($0, statistics.providers) } ?? null,
      "ranking": statistics.ranking.flatMap { $0.measures ? ranking($0) : nil } ?? null,
      "tail": JSONText.object(["readers": "\(readers)"]),
    ])
  }

  private static func encrypted(_ report: EncryptedReport, _ queries: QueryTotals) -> String {
    func count(_ transport: QueryTransport) -> String {
      "\(QueryFate.allCases.reduce(0) { $0 + queries.count($1, over: transport) })"
    }
    let totals = report.totals
    return JSONText.object([
      "open": "\(totals.open)", "dot": count(.dot), "doh": count(.doh),
      "full": "\(totals[HandshakeResult.full])", "resumed": "\(totals[.resumed])", "failed": "\(totals[.failed])",
      "refused": JSONText.object(EncryptedRefusal.allCases.map { ($0.word, "\(totals[$0])") }),
      "displaced": "\(totals.displaced)", "certificate_end": report.certificateEnd.map { "\($0)" } ?? null,
    ])
  }

  private static func fleet(_ report: FleetReport, _ providers: [ProviderReport]) -> String {
    let counters = report.counters
    let units = providers.compactMap { provider in provider.fleetUnits.map { (provider.name, "\($0)") } }
    return JSONText.object([
      "used": "\(report.isUsed)", "degraded": "\(report.store.complaint != nil)",
      "members": report.memberCount.map { "\($0)" } ?? null, "hits": "\(counters.count(of: .hit))",
      "misses": "\(counters.count(of: .miss))", "adopted": "\(counters.adopted)", "units": JSONText.object(units),
    ])
  }

  private static func ranking(_ report: RankingReport) -> String {
    let counters = report.counters
    return JSONText.object([
      "answers": "\(report.answers)", "probes": "\(counters.probes)", "failed": "\(counters.failures)",
      "deferred": "\(counters.deferred)", "rearranged": "\(counters.rearranged)",
      "problems": "\(report.problems.count)",
    ])
  }
}
