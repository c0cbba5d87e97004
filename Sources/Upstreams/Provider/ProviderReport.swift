// ProviderReport.swift -- the state of a provider, in human-readable values.

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
}
