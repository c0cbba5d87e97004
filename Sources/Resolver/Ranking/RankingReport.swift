// RankingReport.swift -- what ranking does and what hinders it, for output.

import MessageCache
import Ranking

/// Counters of ranking since the start.
package struct RankingCounters: Hashable, Sendable {
  /// Probes by kind (`icmp` or `tcp`) and result.
  package var answered: [String: UInt64] = [:]
  package var failed: [String: UInt64] = [:]
  package var unknown: [String: UInt64] = [:]
  /// Probes that the budget, or another one in flight, put off.
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
  /// What each kind of probe has found so far, human-readable.
  package var kinds: [String] = []

  /// Creates the report of a ranker that has done nothing.
  package init() {}
}

extension Ranker {
  /// What it does at the moment.
  var report: RankingReport {
    var report = RankingReport()
    (report.measures, report.counters, report.answers) = (measures, counters, entries.count)
    report.problems = [prober.problem].compactMap(\.self) + canaryProblems
    if measures { report.kinds = kindLines + canaryLines }
    return report
  }

  /// What the probes of each kind found so far, human-readable.
  private var kindLines: [String] {
    Set(settings.allKinds.map(\.family)).sorted().map { kind in
      let (answered, failed) = (counters.answered[kind] ?? 0, counters.failed[kind] ?? 0)
      return answered + failed > 0
        ? "\(kind): \(answered) answered, \(failed) failed" : "\(kind): no probe has ended yet"
    }
  }

  private var canaryLines: [String] {
    guard settings.allKinds.contains(where: \.isConnection), canaryProblems.isEmpty else { return [] }
    let isKnown = [false, true].contains { canary.isSilent(isIPv6: $0, on: network.number) }
    return [isKnown ? "tcp: nothing answers for addresses that do not exist" : "tcp: the canary has not been asked yet"]
  }

  private var canaryProblems: [String] {
    guard let connection = settings.allKinds.first(where: \.isConnection) else { return [] }
    return [false, true].filter { canary.isVoid(isIPv6: $0, on: network.number) }
      .map { CanaryWatch.problem(connection, isIPv6: $0) }
  }
}
