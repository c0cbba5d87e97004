// RankingReport.swift -- what ranking does and what hinders it, for output.

import Frontend
import Ranking

/// Counters of ranking since the start.
package struct RankingCounters: Hashable, Sendable {
  /// Probes by kind (`icmp` or `tcp`) and result.
  package var answered: [String: UInt64] = [:]
  package var failed: [String: UInt64] = [:]
  package var unknown: [String: UInt64] = [:]
  /// Probes that the budget put off.
  package var deferred: UInt64 = 0
  /// Cached answers whose order was changed.
  package var rearranged: UInt64 = 0
  /// Reports of programs: that an address works, that it does not, and of an address that no cached answer has.
  package var goodReports: UInt64 = 0
  package var badReports: UInt64 = 0
  package var unknownReports: UInt64 = 0

  /// Probes that have ended, of every kind.
  package var probes: UInt64 { [answered, failed, unknown].reduce(0) { $0 + $1.values.reduce(0, +) } }
  /// Those of them that failed.
  package var failures: UInt64 { failed.values.reduce(0, +) }
}

/// What ranking does at the moment.
package struct RankingReport: Sendable {
  /// Whether any name is measured.
  package var measures = false
  /// Counters since the start.
  package var counters = RankingCounters()
  /// The number of answers that are measured while they are used.
  package var answers = 0
  /// What hinders measurements, human-readable.
  package var problems: [String] = []

  /// Creates the report of a ranker that has done nothing.
  package init() {}
}

extension Ranker {
  /// What it does at the moment.
  var report: RankingReport {
    var report = RankingReport()
    (report.measures, report.counters, report.answers) = (measures, counters, entries.count)
    report.problems = [prober.problem, canaryProblem].compactMap(\.self)
    return report
  }

  private var canaryProblem: String? {
    let kinds = settings.kinds + settings.domains.values.joined()
    guard let connection = kinds.first(where: \.isConnection),
      [false, true].contains(where: { canary.isVoid(isIPv6: $0, on: network.number) })
    else { return nil }
    return CanaryWatch.problem(connection)
  }
}
