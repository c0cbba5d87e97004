// RankingReport.swift -- counters and problems of ranking, for output.

import MessageCache

/// Counters of ranking since the start.
package struct RankingCounters: Hashable, Sendable {
  /// Answered probes by kind (`icmp` or `tcp`).
  package var answered: [String: UInt64] = [:]
  /// Failed probes by kind.
  package var failed: [String: UInt64] = [:]
  /// Probes that say nothing about their address, by kind.
  package var unknown: [String: UInt64] = [:]
  /// Probes that had to wait because `ranking.probes_per_minute`, or the share of their client or domain, was used up.
  package var deferred: UInt64 = 0
  /// Cached answers whose order was changed.
  package var rearranged: UInt64 = 0
  /// Reports that an address works.
  package var goodReports: UInt64 = 0
  /// Reports that an address does not work.
  package var badReports: UInt64 = 0
  /// Reports about an address that no cached answer to the name has.
  package var unknownReports: UInt64 = 0

  /// All probes that have ended.
  package var probes: UInt64 { [answered, failed, unknown].reduce(0) { $0 + $1.values.reduce(0, +) } }
  /// All probes that failed.
  package var failures: UInt64 { failed.values.reduce(0, +) }
}

/// The current state of ranking.
package struct RankingReport: Sendable {
  /// Whether any name is measured.
  package var measures = false
  /// Counters since the start.
  package var counters = RankingCounters()
  /// The number of answers that are measured while they are used.
  package var answers = 0
  /// Problems that prevent measurements, human-readable.
  package var problems: [String] = []
  /// The results of each kind of probe so far, human-readable.
  package var kinds: [String] = []
}

extension Ranker {
  package var report: RankingReport {
    var report = RankingReport()
    (report.measures, report.counters, report.answers) = (measures, rounds.counters, entries.count)
    report.problems = [rounds.prober.problem].compactMap(\.self) + canaryProblems
    if measures { report.kinds = kindLines + canaryLines }
    return report
  }

  private var kindLines: [String] {
    Set(settings.allKinds.map(\.family)).sorted().map { kind in
      let (answered, failed) = (rounds.counters.answered[kind] ?? 0, rounds.counters.failed[kind] ?? 0)
      return answered + failed > 0
        ? "\(kind): \(answered) answered, \(failed) failed" : "\(kind): no probe has ended yet"
    }
  }

  private var canaryLines: [String] {
    guard settings.allKinds.contains(where: \.isConnection), canaryProblems.isEmpty else { return [] }
    let isKnown = [false, true].contains { rounds.canary.isSilent(isIPv6: $0, on: network.number) }
    return [isKnown ? "tcp: no transparent proxy detected" : "tcp: the proxy check has no result yet"]
  }

  private var canaryProblems: [String] {
    guard let connection = settings.allKinds.first(where: \.isConnection) else { return [] }
    return [false, true].filter { rounds.canary.isVoid(isIPv6: $0, on: network.number) }
      .map { CanaryWatch.problem(connection, isIPv6: $0) }
  }
}
