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
  package func useRanking(_ settings: RankingSettings) { ranker?.use(settings) }

  /// Ends all probes.
  package func endRanking() {
    ranker?.close()
    ranker = nil
  }

  /// Counters of ranking, and the number of answers that are measured while they are used; nil without a cache.
  package var ranking: (counters: RankingCounters, answers: Int)? { ranker.map { ($0.counters, $0.count) } }

  /// Takes reports of programs.
  ///
  /// - Returns: how many counted: a cached answer to the name has the address.
  package func take(_ reports: [AddressReport]) -> Int {
    guard let ranker else { return 0 }
    return reports.count { ranker.take($0, answers: answers(to: $0.name, isIPv6: $0.address.isIPv6)) != nil }
  }

  /// The hashes of the keys of cached answers to a name for all clients, on the current network.
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
