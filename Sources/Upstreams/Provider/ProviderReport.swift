// ProviderReport.swift -- the state of a provider, in human-readable values.
//
// Resolver's loop only, since it reads the provider's state.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import Logging
import Telemetry

/// The state and the usage of a provider.
package struct ProviderReport: Sendable, Equatable {
  /// Whether the daemon uses the provider.
  package enum State: Sendable, Equatable {
    /// In use.
    case up
    /// It is asked, and has given no verdict: since when, in seconds since 1970. A verdict ends it.
    case noAnswers(since: Int64)
    /// Not asked, since no server can be reached: since when, and the reason if known. A handshake, a list of servers or a
    /// table ends it.
    case unreachable(since: Int64?, String?)
    /// Not asked because of what it says about the account: the reason, and the end in seconds since 1970.
    case pausing(String, until: Int64)
    /// `units_per_day` is used up: the end in seconds since 1970.
    case noUnits(until: Int64)

    /// Every value of `word`.
    package static let words = ["up", "down", "aside", "spent"]

    /// The state in one word, for programs.
    package var word: String {
      switch self {
      case .up: "up"
      case .noAnswers, .unreachable: "down"
      case .pausing: "aside"
      case .noUnits: "spent"
      }
    }
  }

  /// The names that it fails to answer while it answers others.
  package struct FailingNames: Sendable, Equatable {
    /// The number of questions.
    package var count = 0
    /// The latest reasons, human-readable, the latest one first.
    package var reasons: [String] = []

    private static let mostReasons = 3

    package init() {}

    /// Adds a question with its reason.
    package mutating func add(_ failure: UpstreamFailure) {
      count += 1
      if reasons.count < FailingNames.mostReasons, !reasons.contains(failure.explanation) {
        reasons.append(failure.explanation)
      }
    }
  }

  /// Its name in the configuration.
  package var name: String
  /// Whether the daemon uses the provider.
  package var state = State.up
  /// The time until the daemon tries by itself to reach it: a handshake, or its list of servers or table. Nil if no attempt
  /// is planned.
  package var nextAttempt: Duration?
  /// What helps against the reason for the state, human-readable; empty if nothing is known.
  package var advice = ""
  /// A problem that does not prevent its use, in a few words; nil without such a problem.
  package var remark: String?
  /// The questions that it fails to answer, as far as they are remembered.
  package var failing = FailingNames()
  /// The last failure, with the server; nil if there was none.
  package var lastFailure: String?
  /// The time since that failure.
  package var lastFailureAge = Duration.zero
  /// Seconds by which its clock was ahead of ours in its last response; nil if no response had a date.
  package var clockDifference: Int64?
  /// The server that is asked first; nil if no server can be asked.
  package var server: String?
  /// Known billing units of the current day (UTC); with a ledger, including those spent before a restart.
  package var unitsToday = 0
  /// The same of all daemons of the fleet; nil if units are not shared.
  package var fleetUnits: Int?
  /// `units_per_day`; 0 for no limit.
  package var unitsPerDay = 0
  /// What it has counted since the start.
  package var counters = ProviderCounters()

  /// A provider that is up and has not been used.
  package init(name: String) { self.name = name }
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
    report.counters = counters.values
    if let lastFailure {
      report.lastFailure = lastFailure.text
      report.lastFailureAge = loop.now - lastFailure.at
    }
    report.clockDifference = datedClockDifference
    report.server = order.first.map { "\(servers[$0])" }
    func unixTime(_ instant: BootInstant) -> Int64 { time - (loop.now - instant).components.seconds }
    if let left = pause.left(now: loop.now) {
      report.advice = pauseReason.remedy
      report.state = .pausing(pauseReason.text, until: time + (left.nanoseconds + 999_999_999) / 1_000_000_000)
    } else if order.isOutOfReach {
      report.state = .unreachable(since: order.loss.map { unixTime($0.since) }, lossReason)
      report.advice = outOfReach.advice
      report.nextAttempt = nextHandshake
    } else if !isOpen {
      report.state = .noUnits(until: (today.day + 1) * 86_400)
    } else if patience.isSilent(now: loop.now), let since = patience.silentSince {
      report.state = .noAnswers(since: unixTime(since))
      report.advice = lastFailure?.advice ?? ""
    }
    return report
  }
}

extension HTTPDNSProvider {
  /// The failure of a provider whose servers are all left out.
  var outOfReach: UpstreamFailure {
    var failure = UpstreamFailure(.noReachableAuthority, "unreachable: \(lossReason)", .notAsked)
    failure.advice = order.loss?.advice ?? ""
    return failure
  }

  /// Why no server can be reached, human-readable.
  var lossReason: String {
    guard let loss = order.loss else { return ServerSchedule.switchedOffText }
    let others = servers.count > 1 ? " and the others" : ""
    return order.losses.first { $0.loss == loss }.map { "\(servers[$0.server])\(others): \(loss.reason)" }
      ?? loss.reason
  }
}

/// What was logged last about a provider.
struct LoggedStanding: Equatable {
  var isSilent = false
  var isOutOfReach = false
  /// The number of the server that is asked first.
  var server: Int? = 0
}

extension HTTPDNSProvider {
  /// Logs at level debug what has changed since the last call.
  func logStanding() {
    let isSilent = isSilent
    let standing = LoggedStanding(isSilent: isSilent, isOutOfReach: order.isOutOfReach, server: order.first)
    guard standing != loggedStanding else { return }
    let hasComeBack = (loggedStanding.isSilent || loggedStanding.isOutOfReach) && !isSilent && !standing.isOutOfReach
    loggedStanding = standing
    if standing.isOutOfReach { return note(.debug, "provider \(name): \(outOfReach.reason)") }
    if isSilent { return note(.debug, "provider \(name): no answers") }
    let server = standing.server.map { "\(servers[$0])" } ?? "none"
    note(.debug, "provider \(name): \(hasComeBack ? "is back; " : "")\(server) is asked first")
  }
}
