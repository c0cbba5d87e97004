// RateLimits.swift -- what clients have used of `listen.rate_limit`, over reloads.

import FairShares
import Synchronization

/// The buckets of `listen.rate_limit`: the same ones for as long as the limit does not change. Any thread.
package final class RateLimits: Sendable {
  private let table = Mutex(BucketTable(rate: 0, burst: RateLimits.burst))

  /// The queries that a client may send at once, in seconds' worth of the limit.
  private static let burst: Int64 = 1

  package init() {}

  /// The buckets for a limit in queries a second; 0 means no limit.
  package func table(perSecond rate: Int) -> BucketTable {
    table.withLock { table in
      if table.rate != rate { table = BucketTable(rate: rate, burst: RateLimits.burst) }
      return table
    }
  }
}
