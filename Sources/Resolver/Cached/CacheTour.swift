// CacheTour.swift -- visits every entry of the cache in turns of the loop.

import EventLoop
import MessageCache

extension Resolver {
  /// Uses something of each entry that exists the whole time. Call it from a task that prefers the loop.
  ///
  /// - Parameters:
  ///   - pick: what is used of an entry; nil for nothing. Called with a lock held: it must be brief and must not use the
  ///     cache.
  ///   - use: may use the cache.
  /// - Complexity: O(n) in the number of entries.
  func tour<Picked>(_ pick: (CacheRecord, UInt64) -> Picked?, use: (Picked) -> Void) async {
    var survey = CacheSurvey(of: cache)
    await loop.inPortions {
      var found: [Picked] = []
      survey.advance { if let picked = pick($0, $1) { found.append(picked) } }
      for picked in found { use(picked) }
      return survey.isDone
    }
  }
}
