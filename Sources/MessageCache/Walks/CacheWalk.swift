// CacheWalk.swift -- walks all shards in steps, while the listeners keep using the cache.
//
// Entries cannot be looked up by name alone: a key also has a type, a route, a network and a subnet.

import CHotPath

extension MessageCache {
  /// Steps of a walk in one turn of a loop, which take about half a millisecond; then waiting queries come first.
  public static let stepsInTurn = 32
}

/// A walk through every bucket of a cache. One thread at a time.
///
/// Consecutive steps use different shards, so that waiting threads get a lock in between. An entry that exists the whole
/// time is visited exactly once; one inserted meanwhile may be skipped.
struct CacheWalk {
  private let cache: MessageCache
  private var walks: [TableWalk]
  private var next = 0

  init(through cache: MessageCache) {
    self.cache = cache
    walks = Array(repeating: TableWalk(), count: cache.shardCount)
  }

  /// Whether the walk is complete.
  var isDone: Bool { walks.allSatisfy(\.isAtEnd) }

  /// - Parameter visit: called once per step with a shard and the position in it. No lock is held.
  mutating func advance(steps most: Int, _ visit: (CacheShard, inout TableWalk) -> Void) {
    for _ in 0..<most {
      guard let index = nextShard() else { return }
      visit(cache.shards[index].takeUnretainedValue(), &walks[index])
      next = (index + 1) % walks.count
    }
  }

  private func nextShard() -> Int? { walks.indices.map { (next + $0) % walks.count }.first { !walks[$0].isAtEnd } }
}

extension CacheShard {
  /// Buckets visited under one lock.
  static let bucketsPerVisit = 32

  /// Visits the entries of the next buckets with the lock held. `body` may discard the entry that it gets.
  func visit(_ walk: inout TableWalk, _ body: (EntryPointer) -> Void) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    for _ in 0..<CacheShard.bucketsPerVisit where !walk.isAtEnd {
      var next = buckets[walk.bucket]
      while let entry = next {
        next = entry.pointee.chain
        body(entry)
      }
      walk.advance(bucketCount: bucketCount)
    }
  }
}
