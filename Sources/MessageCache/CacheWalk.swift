// CacheWalk.swift -- goes through all shards in steps, while the listeners go on using what is there.
//
// A key cannot be looked up by its name alone: it has a type, a route, a network and a subnet too.

import CHotPath

/// A walk through every bucket of a cache. One thread at a time.
///
/// Each step is made in another shard than the one before, so that who waits for a lock gets it in between. An entry that
/// is there the whole time is visited exactly once; one that is inserted meanwhile may be left out.
struct CacheWalk {
  private let cache: MessageCache
  private var walks: [TableWalk]
  private var next = 0

  init(through cache: MessageCache) {
    self.cache = cache
    walks = Array(repeating: TableWalk(), count: cache.shardCount)
  }

  /// Whether everything has been visited.
  var isDone: Bool { walks.allSatisfy(\.isAtEnd) }

  /// Makes some steps.
  ///
  /// - Parameter visit: called once for each, with the shard, where its own walk stands, and no lock held.
  mutating func advance(steps most: Int, _ visit: (CacheShard, inout TableWalk) -> Void) {
    for _ in 0..<most {
      guard let index = nextShard() else { return }
      visit(cache.shards[index].takeUnretainedValue(), &walks[index])
      next = (index + 1) % walks.count
    }
  }

  private func nextShard() -> Int? {
    walks.indices.map { (next + $0) % walks.count }.first { !walks[$0].isAtEnd }
  }
}

extension CacheShard {
  /// Buckets that are visited while the lock is held.
  static let bucketsPerVisit = 32

  /// Visits the entries of the next buckets, with the lock held. The entry that is visited may be discarded.
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
