// ExcessReports.swift -- what the log says about clients beyond `listen.rate_limit`.

import FairShares

/// What is already reported of a bucket table, and of the table that replaces it after a reload. Resolver's loop only.
package struct ExcessReports {
  private var table: BucketTable?
  private var count: UInt64 = 0

  package init() {}

  /// One line for the log if a client has exceeded the limit since the last call; another table starts from 0.
  package mutating func next(of table: BucketTable) -> String? {
    if self.table !== table { (self.table, count) = (table, 0) }
    let current = table.excessCount
    guard count != current else { return nil }
    count = current
    guard let network = table.takeFirstExcess().flatMap({ ClientKey(value: $0).network }) else { return nil }
    return
      "a client in \(network) sends more queries than listen.rate_limit allows, and others may too: over UDP they get an "
      + "empty answer with TC, over TCP, DoT and DoH they wait up to 1 s; raise the limit if this load is legitimate"
  }
}
