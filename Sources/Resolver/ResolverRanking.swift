// ResolverRanking.swift -- ranking, as the rest of the daemon uses it.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Ranking
import Refresh

extension Resolver {
  /// Begins to measure addresses and to order answers.
  ///
  /// - Parameter note: logs a line.
  package func beginRanking(
    _ settings: RankingSettings, prober: sending any AddressProber, note: @escaping @Sendable (String) -> Void
  ) {
    ranker = Ranker(settings, of: cache, network, prober: prober, on: loop, log: note)
  }

  /// Applies new settings of ranking, and retries what the kernel has refused.
  package func useRanking(_ settings: RankingSettings) {
    guard let ranker, ranker.settings != settings else {
      // The settings are the same, but the kernel may now allow what it has refused.
      ranker?.use(settings)
      return
    }
    ranker.use(settings)
    guard settings.measures else { return }
    Task(executorPreference: loop) { await self.rankCachedAnswers() }
  }

  /// Cancels all probes and removes the ranker.
  func endRanking() {
    ranker?.close()
    ranker = nil
  }

  /// The current state of ranking; nil if the resolver has no ranker.
  package var ranking: RankingReport? { ranker?.report }

  /// Measures answers that were cached before, from the cache file or under earlier settings: those of listed names and
  /// of the keep list now, others when they are used. Call it from a task that prefers the loop.
  package func rankCachedAnswers() async {
    guard ranker?.measures == true else { return }
    let types = [RecordType.a, .aaaa].map(\.rawValue)
    await tour { record, hash -> (key: [UInt8], hash: UInt64)? in
      guard record.answers > 0, let type = record.type, types.contains(type) else { return nil }
      return (Array(record.key), hash)
    } use: { key, hash in
      guard let ranker, let parts = KeyParts(key), parts.subnet.family == 0 else { return }
      let type = RecordType(rawValue: parts.scope.type)
      let question = HTTPDNSQuestion(name: parts.name, type: type)
      ranker.stored(parts.name, type, hash: hash, isKept: refresher?.isOnKeepList(question) ?? false)
    }
  }

  /// Applies the reports of a request; none of them if reports are off or exceed the limit of a second.
  package func take(_ batch: ReportBatch) -> ReportOutcome {
    guard let ranker, ranker.takesReports else { return .off }
    guard ranker.mayTake(batch.reports.count) else { return .tooMany }
    let counted = batch.reports.count { report in
      ranker.take(report, answers: answers(to: report.name, isIPv6: report.address.isIPv6)) != nil
    }
    return .taken(counted: counted, unknown: batch.reports.count - counted)
  }

  /// The hashes of the keys of cached answers to a name on the current network. Answers for one client subnet are left
  /// out, since they are not measured either.
  private func answers(to name: DomainName, isIPv6: Bool) -> [UInt64] {
    var hashes: Set<UInt64> = []
    for route in settings.routes {
      for flags in 0..<4 {
        let question = HTTPDNSQuestion(
          name: name, type: isIPv6 ? .aaaa : .a, dnssecOK: flags & 1 != 0, checkingDisabled: flags & 2 != 0)
        let hash = store.question(question, configuration, route).key.keyedHash
        if cache.state(hash: hash) != nil { hashes.insert(hash) }
      }
    }
    return Array(hashes)
  }
}
