// ResolverRanking.swift -- what the rest of the daemon does with ranking.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Ranking

extension Resolver {
  /// Puts the addresses of answers in order from now on.
  ///
  /// - Parameter note: takes a line for the log.
  package func beginRanking(
    _ settings: RankingSettings, prober: sending any AddressProber, note: @escaping @Sendable (String) -> Void
  ) {
    ranker = Ranker(settings, of: cache, network, prober: prober, on: loop, note: note)
  }

  /// Takes over other settings of ranking.
  package func useRanking(_ settings: RankingSettings) {
    guard let ranker, ranker.settings != settings else {
      // What the kernel refused may be allowed by now.
      ranker?.use(settings)
      return
    }
    ranker.use(settings)
    guard settings.measures else { return }
    Task(executorPreference: loop) { await self.rankCachedAnswers() }
  }

  /// Ends all probes.
  func endRanking() {
    ranker?.close()
    ranker = nil
  }

  /// What ranking does; nil without a cache.
  package var ranking: RankingReport? { ranker?.report }

  /// Measures answers that are cached already, those of listed and kept names at once and others when they are used: from
  /// the cache file, or from the time before other settings. Call it from a task that prefers the loop.
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

  /// Takes reports of programs.
  package func take(_ batch: ReportBatch) -> ReportOutcome {
    guard let ranker, ranker.takesReports else { return .off }
    guard ranker.mayTake(batch.reports.count) else { return .tooMany }
    let counted = batch.reports.count { report in
      ranker.take(report, answers: answers(to: report.name, isIPv6: report.address.isIPv6)) != nil
    }
    return .taken(counted: counted, unknown: batch.reports.count - counted)
  }

  /// The hashes of the keys of cached answers to a name for all clients, on the current network. Answers to one client
  /// subnet are not among them: they are not measured either.
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
