// ProviderReport.swift -- the state of a provider, in human-readable values.
//
// Resolver's loop only, since it reads the provider's state.

import Configuration
import EventLoop
import Telemetry

/// The state and the usage of a provider.
package struct ProviderReport: Sendable, Equatable {
  /// Whether the daemon uses the provider.
  package enum State: Sendable, Equatable {
    /// In use.
    case up
    /// Every server has failed, or there is none: the reason, if known. A successful probe or a list of servers ends
    /// it.
    case down(String?)
    /// The daemon backs off from it: the reason, and the end in seconds since 1970.
    case aside(String, until: Int64)
    /// `units_per_day` is used up: the end in seconds since 1970.
    case spent(until: Int64)

    /// Every value of `word`.
    package static let words = ["up", "down", "aside", "spent"]

    /// The state in one word, for programs.
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
  /// Whether the daemon uses the provider.
  package var state = State.up
  /// The time until the daemon asks a provider that is down by itself: a probe, or its list of servers or table. Nil if no
  /// attempt is planned.
  package var nextAttempt: Duration?
  /// What helps against the reason for the state, human-readable; empty if nothing is known.
  package var advice = ""
  /// A problem that does not prevent its use, in a few words; nil if there is none.
  package var remark: String?
  /// The last failure that was not the fault of the question, with the server; nil if there was none.
  package var lastFailure: String?
  /// The time since that failure.
  package var lastFailureAge = Duration.zero
  /// Seconds by which its clock was ahead of ours in its last response; nil if no response had a date.
  package var clockDifference: Int64?
  /// The server that is asked first; nil if there is none.
  package var server: String?
  /// Known billing units of the current day (UTC); with a ledger, including those spent before a restart.
  package var unitsToday = 0
  /// The same of all daemons of the fleet; nil if units are not shared.
  package var fleetUnits: Int?
  /// `units_per_day`; 0 for no limit.
  package var unitsPerDay = 0
  /// Transfers since the start, including probes and checks.
  package var transfers = 0
  /// Transfers among these that tested whether a server works, or whether a question caused a failure.
  package var probes = 0
  /// Transfers among these that asked for the A and AAAA records of a name at once.
  package var pairs = 0
  /// Questions since the start that were not sent because the provider recently answered that it does not list the name.
  package var notListed = 0
  /// Transfers among these without a usable reply.
  package var failures: Int { failureCounts.total }
  /// The failures by reason.
  package var failureCounts = TransferFailures()
  /// The round-trip times of replies since the start.
  package var roundTrips = LatencyHistogram()
  /// Known billing units since the start.
  package var units = 0
  /// Questions since the start that were not sent because it was down, backing off or at its limit.
  package var refusals = 0
  /// How often since the start the provider or one of its servers was demoted.
  package var demotions = ProviderDemotions()

  /// Creates the report of a provider that is up and has not been used.
  package init(name: String) { self.name = name }

  mutating func take(_ counters: ProviderCounters) {
    transfers = counters.transfers
    probes = counters.probes + counters.checks
    failureCounts = counters.failures
    roundTrips = counters.roundTrips
    pairs = counters.pairs
    notListed = counters.notListed
    units = counters.units
    refusals = counters.refusals
    demotions = counters.demotions
  }
}

extension HTTPDNSProvider {
  var report: ProviderReport {
    loop.assertCurrent()
    var report = ProviderReport(name: name)
    let (now, time) = (loop.now.nanoseconds, loop.wallTime)
    var today = budget
    let isOpen = today.isOpen(unixTime: time, now: now)
    report.unitsToday = today.spent
    report.unitsPerDay = settings.unitsPerDay
    report.fleetUnits = sharing.map { today.spent + $0.othersUnits(own: today.spent, day: today.day) }
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
      report.advice = asideRemedy
      report.state = .aside(reason.text, until: time + (pause + 999_999_999) / 1_000_000_000)
    case .down:
      report.state = .down("all of its servers have failed")
      report.nextAttempt = probeTimer.map { $0.deadline - loop.now }
    case .up where servers.isEmpty:
      report.state = .down(schedule?.problem)
      report.advice = schedule?.remedy ?? ""
      report.nextAttempt = schedule?.nextAttempt
    case .up: report.state = isOpen ? .up : .spent(until: (today.day + 1) * 86_400)
    }
    return report
  }
}
