// CacheShard.swift -- a part of the cache: a hash table with chains, a list from the newest use to the oldest, a lock.

import CLock
import DNSWire

/// One shard. Every method takes the shard's lock itself; none is called with it held.
final class CacheShard: @unchecked Sendable {
  private let lock: UnsafeMutablePointer<hot_mutex>
  private var buckets: UnsafeMutablePointer<EntryPointer?>
  private var bucketCount: Int
  private var newest: EntryPointer?
  private var oldest: EntryPointer?
  private var count = 0
  private var octets = 0
  private let budget: CacheBudget

  /// Octets that an allocator and the table add to a block, about.
  private static let overhead = 16

  init(_ budget: CacheBudget) {
    self.budget = budget
    lock = .allocate(capacity: 1)
    hot_mutex_init(lock)
    bucketCount = 16
    buckets = .allocate(capacity: bucketCount)
    buckets.initialize(repeating: nil, count: bucketCount)
    budget.add(entries: 0, octets: bucketCount * MemoryLayout<EntryPointer?>.stride)
  }

  deinit {
    clear()
    buckets.deallocate()
    hot_mutex_destroy(lock)
    lock.deallocate()
  }

  /// Entries and octets at present, the table included.
  var usage: (entries: Int, octets: Int) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return (count, octets + tableOctets(for: count))
  }

  /// Serves a fresh entry into `output`, marks it as used, and fills `head`.
  @_noAllocation
  func find(
    _ key: CacheKey, now: Int64, into output: UnsafeMutablePointer<UInt8>, capacity: Int, _ head: inout ResponseHead
  ) -> CacheLookup {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key), now < entry.pointee.expiresAt else { return .miss }
    // Its neighbours in the list are written at the end: they arrive while the body is copied.
    hot_prefetch(entry.pointee.newer)
    hot_prefetch(entry.pointee.older)
    defer { touch(entry) }
    head.responseCode = UInt16(entry.pointee.responseCode)
    head.isAuthenticated = entry.pointee.isAuthenticated
    head.isAuthoritative = entry.pointee.isAuthoritative
    head.answers = entry.pointee.answers
    head.authorities = entry.pointee.authorities
    head.extendedError = entry.pointee.extendedError
    head.bodyLength = Int(entry.pointee.bodyLength)
    let isForAll = entry.pointee.isForEverySubnet
    guard Int(entry.pointee.bodyLength) <= capacity else { return isForAll ? .tooLong : .tooLongForNoSubnet }
    CacheEntry.serve(entry, now: now, into: output)
    return isForAll ? .hit : .hitForNoSubnet
  }

  /// Inserts or replaces an entry, then evicts the shard's least recently used ones until the cache is within its bounds
  /// or nothing else is left.
  ///
  /// - Returns: false where the response has no room, even with every other entry gone.
  func insert(_ key: CacheKey, _ response: ComposedResponse, now: Int64, expiresAt: Int64) -> Bool {
    let size = CacheEntry.size(keyLength: key.length, response) + CacheShard.overhead
    guard size <= budget.bounds.maxOctets else { return false }
    let entry = CacheEntry.allocate(key, response, storedAt: now, expiresAt: expiresAt)
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    // The table stays when entries go, so a response that has no room beside it cannot be helped by evictions.
    guard size + tableOctets(for: count + 1) <= budget.bounds.maxOctets else {
      UnsafeMutableRawPointer(entry).deallocate()
      return false
    }
    if let previous = lookUp(key) { remove(previous) }
    if count >= bucketCount { grow() }
    let bucket = Int(truncatingIfNeeded: key.hash) & (bucketCount - 1)
    entry.pointee.chain = buckets[bucket]
    buckets[bucket] = entry
    pushNewest(entry)
    count += 1
    octets += size
    budget.add(entries: 1, octets: size)
    while budget.isExceeded, let victim = oldest, victim != entry { remove(victim) }
    return true
  }

  /// Evicts the least recently used entries until the cache is within its bounds or nothing is left.
  func makeRoom() {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    while budget.isExceeded, let victim = oldest { remove(victim) }
  }

  /// Removes the entry of that key, fresh or not.
  func remove(_ key: CacheKey) -> Bool {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key) else { return false }
    remove(entry)
    return true
  }

  /// Calls `body` with a copy of the response that a fresh entry holds, its TTLs as they were stored.
  func peek(_ key: CacheKey, now: Int64) -> CachedResponse? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key), now < entry.pointee.expiresAt else { return nil }
    let body = UnsafeBufferPointer(start: CacheEntry.body(entry), count: Int(entry.pointee.bodyLength))
    return CachedResponse(
      responseCode: ResponseCode(rawValue: UInt16(entry.pointee.responseCode)), answers: entry.pointee.answers,
      authorities: entry.pointee.authorities, isAuthenticated: entry.pointee.isAuthenticated,
      extendedError: ExtendedError(kept: entry.pointee.extendedError), body: Array(body),
      storedAt: entry.pointee.storedAt, expiresAt: entry.pointee.expiresAt)
  }

  /// Removes everything.
  func clear() {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    while let entry = newest { remove(entry) }
  }

  @_noAllocation @inline(__always)
  private func lookUp(_ key: CacheKey) -> EntryPointer? {
    var entry = buckets[Int(truncatingIfNeeded: key.hash) & (bucketCount &- 1)]
    while let candidate = entry {
      // Key and body follow the fixed part: all of it arrives at once.
      let block = UnsafeRawPointer(candidate)
      hot_prefetch(block + 64)
      hot_prefetch(block + 128)
      if candidate.pointee.hash == key.hash, Int(candidate.pointee.keyLength) == key.length,
        hot_equal(CacheEntry.key(candidate), key.octets, key.length) != 0
      {
        return candidate
      }
      entry = candidate.pointee.chain
    }
    return nil
  }

  @_noAllocation @inline(__always)
  private func touch(_ entry: EntryPointer) {
    guard newest != entry else { return }
    unlink(entry)
    pushNewest(entry)
  }

  @_noAllocation @inline(__always)
  private func unlink(_ entry: EntryPointer) {
    let newer = entry.pointee.newer
    let older = entry.pointee.older
    if let newer { newer.pointee.older = older } else { newest = older }
    if let older { older.pointee.newer = newer } else { oldest = newer }
  }

  @_noAllocation @inline(__always)
  private func pushNewest(_ entry: EntryPointer) {
    entry.pointee.newer = nil
    entry.pointee.older = newest
    if let newest { newest.pointee.newer = entry } else { oldest = entry }
    newest = entry
  }

  private func remove(_ entry: EntryPointer) {
    let bucket = Int(truncatingIfNeeded: entry.pointee.hash) & (bucketCount - 1)
    if buckets[bucket] == entry {
      buckets[bucket] = entry.pointee.chain
    } else {
      var previous = buckets[bucket]
      while let candidate = previous, candidate.pointee.chain != entry { previous = candidate.pointee.chain }
      previous?.pointee.chain = entry.pointee.chain
    }
    unlink(entry)
    count -= 1
    octets -= CacheEntry.size(entry) + CacheShard.overhead
    budget.add(entries: -1, octets: -CacheEntry.size(entry) - CacheShard.overhead)
    UnsafeMutableRawPointer(entry).deallocate()
  }

  /// Octets of the table when it holds that many entries: as it is, or doubled.
  private func tableOctets(for entries: Int) -> Int {
    (entries > bucketCount ? 2 : 1) * bucketCount * MemoryLayout<EntryPointer?>.stride
  }

  private func grow() {
    let old = buckets
    let oldCount = bucketCount
    bucketCount *= 2
    buckets = .allocate(capacity: bucketCount)
    buckets.initialize(repeating: nil, count: bucketCount)
    for index in 0..<oldCount {
      var next = old[index]
      while let entry = next {
        next = entry.pointee.chain
        let bucket = Int(truncatingIfNeeded: entry.pointee.hash) & (bucketCount - 1)
        entry.pointee.chain = buckets[bucket]
        buckets[bucket] = entry
      }
    }
    budget.add(entries: 0, octets: (bucketCount - oldCount) * MemoryLayout<EntryPointer?>.stride)
    old.deallocate()
  }
}
