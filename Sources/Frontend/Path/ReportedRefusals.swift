// ReportedRefusals.swift -- which refusals of a bucket table are already reported.

import FairShares

/// The reported refusals of one table, and of the table that replaces it after a reload.
package struct ReportedRefusals {
  private var table: BucketTable?
  private var count: UInt64 = 0

  /// Starts with no table and no reported refusals.
  package init() {}

  /// Whether the table has refused anything since the last call; another table starts from 0.
  package mutating func hasUnreported(of table: BucketTable) -> Bool {
    if self.table !== table { (self.table, count) = (table, 0) }
    let current = table.refusalCount
    defer { count = current }
    return current != count
  }
}
