// CacheBudget.swift -- the bounds of all shards together: hashes do not spread evenly, so a shard has no fixed part.

import Synchronization

/// Counts what all shards hold. Any thread.
final class CacheBudget: Sendable {
  let bounds: CacheBounds
  private let entries = Atomic<Int>(0)
  private let octets = Atomic<Int>(0)

  init(_ bounds: CacheBounds) { self.bounds = bounds }

  /// Whether entries must be evicted.
  var isExceeded: Bool {
    entries.load(ordering: .relaxed) > bounds.maxEntries || octets.load(ordering: .relaxed) > bounds.maxOctets
  }

  /// Whether an addition would stay within the bounds.
  func hasRoom(entries count: Int, octets size: Int) -> Bool {
    entries.load(ordering: .relaxed) + count <= bounds.maxEntries
      && octets.load(ordering: .relaxed) + size <= bounds.maxOctets
  }

  func add(entries count: Int, octets size: Int) {
    if count != 0 { entries.wrappingAdd(count, ordering: .relaxed) }
    octets.wrappingAdd(size, ordering: .relaxed)
  }
}
