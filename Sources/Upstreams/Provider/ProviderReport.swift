// ProviderReport.swift -- the state of a provider, in human-readable values.
//
// Resolver's loop only, as what it is drawn from.

import EventLoop
import Telemetry

/// The state and the usage of a provider.
package struct ProviderReport: Sendable, Equatable {
  /// Whether it is asked.
  package enum State: Sendable, Equatable {
    /// It is asked.
    case up
    /// Every server has failed, or there is none: why, where that is known. A probe ends it, or a list of servers.
    case down(String?)
    /// The daemon backs off from it: why, and until when in seconds since 1970.
    case aside(String, until: Int64)
    /// `units_per_day` is used up; until when in seconds since 1970.
    case spent(until: Int64)

    /// All words.
    package static let words = ["up", "down", "aside", "spent"]

    /// One word for programs.
    package var word: String {
      switch self {
      case .up: "up"
      case .down: "down"
      case .aside: "aside"
      case .spent: "spent"
      }
    }
  }

  /// Its name in the configuration.
  package var name: String
  /// Whether it is asked.
  package var state = State.up
  /// What is odd though it does its work, in a few words.
  package var remark: String?
  /// Its last failure that was not the question's fault, with the server; nil where there was none.
  package var lastFailure: String?
  /// How long ago that was.
  package var lastFailureAge = Duration.zero
  /// Seconds by which its clock was ahead of ours in its last response; nil where none has told.
  package var clockDifference: Int64?
  /// The server that is asked first; nil where there is none.
  package var server: String?
  /// Billing units of this day (UTC), as far as they are known, those before a restart among them where a ledger keeps
  /// them.
  package var unitsToday = 0
  /// `units_per_day`; 0 for no limit.
  package var unitsPerDay = 0
  /// Transfers since the start, probes and checks among them.
  package var transfers = 0
  /// Transfers of those that found out whether it is well, or whose fault a failure was.
  package var probes = 0
  /// Transfers of those that brought no reply of any use.
  package var failures: Int { failureCounts.total }
  /// The same by reason.
  package var failureCounts = TransferFailures()
  /// How long replies took since the start.
  package var roundTrips = LatencyHistogram()
  /// Billing units since the start, as far as they are known.
  package var units = 0
  /// Questions since the start that were not sent because it was down, aside or at its limit.
  package var refusals = 0
  /// How often since the start it, or a server of it, was put behind others.
  package var demotions = ProviderDemotions()

  /// A provider that is up and has not been asked.
  package init(name: String) { self.name = name }

  mutating func take(_ counters: ProviderCounters) {
    transfers = counters.transfers
    probes = counters.probes + counters.checks
    failureCounts = counters.failures
    roundTrips = counters.roundTrips
    units = counters.units
    refusals = counters.refusals
    demotions = counters.demotions
  }
}

extension HTTPDNSProvider {
  var report: ProviderReport {
    var report = ProviderReport(name: name)
    let (now, time) = (loop.now.nanoseconds, loop.wallTime)
    var today = budget
    let isOpen = today.isOpen(unixTime: time, now: now)
    report.unitsToday = today.spent
    report.unitsPerDay = settings.unitsPerDay
    report.take(counters)
    if let lastFailure {
      report.lastFailure = lastFailure.text
      report.lastFailureAge = loop.now - lastFailure.at
    }
    report.clockDifference = datedClockDifference
    let current = health.rotation.current
    report.server = servers.indices.contains(current) ? "\(servers[current])" : nil
    switch health.fitness(now: now) {
    case .aside(let reason):
      let pause = (health.asideUntil(now: now) ?? now) - now
      report.state = .aside(reason.text, until: time + (pause + 999_999_999) / 1_000_000_000)
    case .down: report.state = .down("all of its servers have failed")
    case .up where servers.isEmpty: report.state = .down(schedule?.problem)
    case .up: report.state = isOpen ? .up : .spent(until: (today.day + 1) * 86_400)
    }
    return report
  }
}
