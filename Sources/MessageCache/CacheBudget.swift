// CacheBudget.swift -- the bounds that all shards share: names do not spread evenly, so no shard has a part of its own.

import Synchronization

/// How much the shards hold together. Any thread.
final class CacheBudget: Sendable {
  /// The bounds.
  let bounds: CacheBounds
  private let entries = Atomic<Int>(0)
  private let octets = Atomic<Int>(0)

  init(_ bounds: CacheBounds) { self.bounds = bounds }

  /// Whether something has to go.
  var isExceeded: Bool {
    entries.load(ordering: .relaxed) > bounds.maxEntries || octets.load(ordering: .relaxed) > bounds.maxOctets
  }

  /// Whether that much more stays within the bounds.
  func hasRoom(entries count: Int, octets size: Int) -> Bool {
    entries.load(ordering: .relaxed) + count <= bounds.maxEntries
      && octets.load(ordering: .relaxed) + size <= bounds.maxOctets
  }

  func add(entries count: Int, octets size: Int) {
    if count != 0 { entries.wrappingAdd(count, ordering: .relaxed) }
    octets.wrappingAdd(size, ordering: .relaxed)
  }
}
