// RateLimits.swift -- what clients have used of a limit, over reloads.

import FairShares
import Synchronization

/// The buckets of a limit: the same ones for as long as the limit does not change. Any thread.
package final class RateLimits: Sendable {
  private let table: Mutex<BucketTable>
  private let burst: Int64

  /// - Parameter burst: what a client may do at once, in seconds' worth of the limit.
  package init(burst: Int64 = 1) {
    self.burst = burst
    table = Mutex(BucketTable(rate: 0, burst: burst))
  }

  /// The buckets for a limit in times a second; 0 means no limit.
  package func table(perSecond rate: Int) -> BucketTable {
    table.withLock { table in
      if table.rate != rate { table = BucketTable(rate: rate, burst: burst) }
      return table
    }
  }
}
