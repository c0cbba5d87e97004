// ToldRefusals.swift -- which refusals of a table of buckets somebody has been told of.

import FairShares

/// What is known of one table, and of the one that takes its place after a reload.
package struct ToldRefusals {
  private var table: BucketTable?
  private var count: UInt64 = 0

  /// Nothing is known yet.
  package init() {}

  /// Whether there were refusals since the last time. Those of another table begin at none.
  package mutating func hasNews(of table: BucketTable) -> Bool {
    if self.table !== table { (self.table, count) = (table, 0) }
    let current = table.refusalCount
    defer { count = current }
    return current != count
  }
}
