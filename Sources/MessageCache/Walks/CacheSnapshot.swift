// CacheSnapshot.swift -- copies all entries out of the cache, and restores them, while the listeners keep using it.
//
// Not on a listener thread. A lock is held for the time of copying a few dozen entries, and never taken twice in a row,
// so that waiting threads get it in between.

import CHotPath
import DNSWire

/// The result of restoring a record.
public enum CacheRestoration: Hashable, Sendable {
  /// It is in the cache.
  case stored
  /// The cache has a newer entry with that key.
  case present
  /// The cache is full.
  case noRoom
  /// It has expired, also as stale data.
  case past
  /// Its parts are inconsistent.
  case unsound
}

extension MessageCache {
  /// Visits each entry that can still be served, fresh or stale, in no particular order.
  ///
  /// An entry that exists the whole time is visited exactly once, even if the table grows meanwhile.
  /// - Parameters:
  ///   - now: nanoseconds of the boot-time clock.
  ///   - take: gets a record that is valid during the call, with no lock held; returning false ends the walk.
  public func forEachRecord(now: Int64, _ take: (CacheRecord) -> Bool) {
    var walks = [TableWalk](repeating: TableWalk(), count: shardCount)
    var room = CopyRoom(octets: CopyRoom.usual)
    defer { room.deallocate() }
    while walks.contains(where: { !$0.isAtEnd }) {
      for index in walks.indices where !walks[index].isAtEnd {
        let step = shards[index].takeUnretainedValue().copyEntries(&walks[index], now: now, into: room)
        if step.needed > 0 {
          room.deallocate()
          room = CopyRoom(octets: step.needed)
        }
        var place = room.start
        while place < room.start + step.used {
          let entry = place.assumingMemoryBound(to: CacheEntry.self)
          guard take(CacheRecord(entry)) else { return }
          place += CopyRoom.octets(of: entry)
        }
      }
    }
  }

  /// Restores a record as the least recently used entry, so restore the most recently used record first. Neither evicts nor
  /// replaces an entry. Any thread.
  ///
  /// - Parameters:
  ///   - route: the route's number, which replaces the one in the key.
  ///   - now: nanoseconds of the boot-time clock.
  ///   - whenStored: gets the hash of its key.
  public func restore(
    _ record: CacheRecord, route: UInt16, now: Int64, whenStored: (UInt64) -> Void = { _ in }
  ) -> CacheRestoration {
    guard let nameLength = CacheRecord.nameLength(record.key) else { return .unsound }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: CacheKey.longest) { buffer in
      _ = buffer.update(fromContentsOf: record.key)
      buffer[nameLength + 3] = UInt8(truncatingIfNeeded: route >> 8)
      buffer[nameLength + 4] = UInt8(truncatingIfNeeded: route)
      guard let octets = buffer.baseAddress else { return .unsound }
      let key = CacheKey(octets: octets, length: record.key.count, hash: hash(octets, record.key.count))
      var record = record
      record.storedAt = min(record.storedAt, now)
      guard let entry = record.makeEntry(key, nameLength: nameLength) else { return .unsound }
      let outcome = now < CacheEntry.end(entry) ? shard(key.hash).restore(entry, key) : .past
      if outcome == .stored { whenStored(key.hash) } else { UnsafeMutableRawPointer(entry).deallocate() }
      return outcome
    }
  }
}

/// The position of a walk through a shard's table.
///
/// Buckets are visited in the order of their bit-reversed numbers. A table that doubles puts both halves of a bucket at its
/// place in that order, so the walk continues without skipping or repeating a bucket.
struct TableWalk {
  /// The next bucket's bit-reversed number; as a fraction of 2^64 it is the completed part of the table.
  private var position: UInt64 = 0
  /// Whether every bucket has been visited.
  private(set) var isAtEnd = false

  /// The next bucket's number.
  var bucket: Int {
    var bits = position.byteSwapped
    bits = (bits >> 4) & 0x0F0F_0F0F_0F0F_0F0F | (bits & 0x0F0F_0F0F_0F0F_0F0F) << 4
    bits = (bits >> 2) & 0x3333_3333_3333_3333 | (bits & 0x3333_3333_3333_3333) << 2
    bits = (bits >> 1) & 0x5555_5555_5555_5555 | (bits & 0x5555_5555_5555_5555) << 1
    return Int(truncatingIfNeeded: bits)
  }

  /// Moves to the next bucket.
  mutating func advance(bucketCount: Int) {
    let (next, isPastEnd) = position.addingReportingOverflow(1 << UInt64(64 - bucketCount.trailingZeroBitCount))
    position = next
    isAtEnd = isPastEnd
  }
}

/// A buffer for copies of consecutive blocks.
private struct CopyRoom {
  let start: UnsafeMutableRawPointer
  let octets: Int

  /// Large enough for the largest response and several others.
  static let usual = 128 << 10

  init(octets: Int) {
    start = .allocate(byteCount: octets, alignment: MemoryLayout<CacheEntry>.alignment)
    // Touches the pages before a lock is held.
    start.initializeMemory(as: UInt8.self, repeating: 0, count: octets)
    self.octets = octets
  }

  func deallocate() { start.deallocate() }

  /// The octets of a block, rounded up to the alignment.
  static func octets(of entry: EntryPointer) -> Int {
    let alignment = MemoryLayout<CacheEntry>.alignment
    return (CacheEntry.size(entry) + alignment - 1) / alignment * alignment
  }
}

extension CacheShard {
  /// Buckets copied under one lock: about as many entries, at 0.1 to 0.3 µs each.
  private static let bucketsPerStep = 32

  /// Copies the usable entries of the next buckets, whole buckets only.
  ///
  /// - Returns: the octets filled, or the octets needed if the next bucket alone exceeds the buffer.
  fileprivate func copyEntries(_ walk: inout TableWalk, now: Int64, into room: CopyRoom) -> (used: Int, needed: Int) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    prefetch(walk)
    var used = 0
    for _ in 0..<CacheShard.bucketsPerStep where !walk.isAtEnd {
      let first = buckets[walk.bucket]
      let octets = octets(ofChain: first, now: now)
      guard used + octets <= room.octets else { return (used, used == 0 ? octets : 0) }
      var next = first
      while let entry = next {
        next = entry.pointee.chain
        guard now < CacheEntry.end(entry) else { continue }
        hot_copy(room.start + used, entry, CacheEntry.size(entry))
        used += CopyRoom.octets(of: entry)
      }
      walk.advance(bucketCount: bucketCount)
    }
    return (used, 0)
  }

  private func octets(ofChain first: EntryPointer?, now: Int64) -> Int {
    var octets = 0
    var next = first
    while let entry = next {
      next = entry.pointee.chain
      if now < CacheEntry.end(entry) { octets += CopyRoom.octets(of: entry) }
    }
    return octets
  }

  /// Prefetches the blocks of the step together; fetched one by one, they would hold the lock three times as long.
  private func prefetch(_ walk: TableWalk) {
    var ahead = walk
    for _ in 0..<CacheShard.bucketsPerStep where !ahead.isAtEnd {
      if let entry = buckets[ahead.bucket] {
        let block = UnsafeRawPointer(entry)
        hot_prefetch(block)
        hot_prefetch(block + 64)
        hot_prefetch(block + 128)
      }
      ahead.advance(bucketCount: bucketCount)
    }
  }
}
