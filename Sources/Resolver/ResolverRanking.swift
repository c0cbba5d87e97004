// ResolverRanking.swift -- ranking, as the rest of the daemon uses it.

import Ranking

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
    Task(executorPreference: loop) { await self.console { await $0.rankCachedAnswers() } }
  }

  /// The current state of ranking; nil if the resolver has no ranker.
  package var ranking: RankingReport? { ranker?.report }
}
