// CacheOverview.swift -- sums up the cache and lists its busiest entries.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import MessageCache
import Refresh

/// A summary of the cache.
package struct CacheOverview: Sendable {
  /// Its size, its limits, and its counters of insertions and evictions.
  package var statistics = CacheStatistics()
  /// Entries that have not expired.
  package var fresh = 0
  /// Entries that have expired and may still be served as stale data.
  package var stale = 0
  /// Fresh and stale entries without records in the answer section.
  package var negative = 0
  /// The hits of all these entries.
  package var hits: UInt64 = 0
  /// Questions that failed recently and are not asked again yet (RFC 9520).
  package var failures = 0
  /// The entries with the most hits, the busiest first.
  package var busiest: [EntryReport] = []
}

extension ResolverConsole {
  /// Entries that are reported on in one turn.
  private static let reportsAtOnce = 100

  /// Visits every entry, in steps between which the loop answers queries.
  ///
  /// - Parameter most: the number of busiest entries to list.
  /// - Complexity: O(n) in the number of entries; it copies somewhat more than `most` of them.
  package func overview(busiest most: Int) async -> CacheOverview {
    var overview = CacheOverview()
    var candidates: [EntryCopy] = []
    /// The hits that an entry must exceed to be among the busiest so far.
    var least: UInt32?
    var survey = CacheSurvey(of: cache)
    await loop.inPortions {
      let now = loop.now.nanoseconds
      survey.advance { record, hash in
        guard now < record.life.usefulUntil(storedAt: record.storedAt) else { return }
        if now < record.life.expiry(storedAt: record.storedAt) { overview.fresh += 1 } else { overview.stale += 1 }
        if record.answers == 0 { overview.negative += 1 }
        overview.hits += UInt64(record.hits)
        guard most > 0, least.map({ record.hits > $0 }) ?? true else { return }
        candidates.append(EntryCopy(record, hash: hash))
      }
      if candidates.count >= max(2 * most, 1) {
        candidates = ResolverConsole.busiest(candidates, most: most)
        least = candidates.last?.hits
      }
      return survey.isDone
    }
    await loop.waitInQueue()
    let found = ResolverConsole.busiest(candidates, most: most).compactMap { copy in
      KeyParts(copy.key).map { (copy, $0) }
    }
    await loop.waitInQueue()
    let plans = refresher?.plans(Set(found.map(\.0.hash))) ?? [:]
    for begin in stride(from: 0, to: found.count, by: ResolverConsole.reportsAtOnce) {
      await loop.waitInQueue()
      let portion = found[begin..<min(begin + ResolverConsole.reportsAtOnce, found.count)]
      overview.busiest += portion.compactMap { report($0, $1, plans) }
    }
    overview.failures = memory.waiting(.everything, now: loop.now).count
    overview.statistics = cache.statistics
    return overview
  }

  private static func busiest(_ copies: [EntryCopy], most: Int) -> [EntryCopy] {
    Array(copies.sorted { ($0.hits, $0.usedAt) > ($1.hits, $1.usedAt) }.prefix(most))
  }
}
