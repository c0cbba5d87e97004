// CacheShard.swift -- a part of the cache: a hash table with chains, a list in order of last use, and a lock.
//
// A hit is the whole work of most queries, on as many threads as there are listeners, so it may neither allocate nor wait
// for long. One table with one lock is simple, but then all threads wait for each other, and for every walk through the
// table. A table without locks would let a thread read an entry that another one frees: it needs counters or epochs in
// each hit, and a hit writes anyway, since it moves the entry in the list of uses. So there are shards:
//
// * A key's hash selects the shard by its bits from 32 on, and the bucket by its lowest ones. The hash has a random seed in
//   each process, so that a client cannot choose names that meet in one bucket or shard.
// * An entry is one block: a fixed part, TTL offsets, key, body. A hit finds it by its chain, copies the body into the
//   caller's buffer and writes the TTLs into the copy, all under the lock.
// * The bounds are those of all shards together (`CacheBudget`), since hashes do not spread evenly. An insertion evicts the
//   least recently used entries of its own shard. If only the new entry is left there, `MessageCache.insert` goes on with
//   the other shards. An entry of the cache file evicts nothing (`restore`).
// * Time is a parameter, and nothing is removed because it expires. An expired entry may be stale data (`EntryLife`). It
//   leaves when it is the least recently used one, when its key is stored again, or by a flush or a reload.
// * An entry of one network is a miss on every other network. After a change of network, each other entry causes one refresh
//   when it is used, unless it is immutable (`epoch`); clients get its data meanwhile. So a change costs nothing at once.
// * The resolver refers to entries by their hash, never by a pointer. It compares the time of storage with that of `state`,
//   and so recognises an entry that was replaced. Walks through the table (`CacheWalk`) hold the lock for 32 buckets.
//
// Whenever the lock is free, an entry is in one chain and once in the list, and `count` and `octets` are those of the list.
// The budget is the sum over all shards, with their tables.

import CHotPath
import DNSWire

/// One shard. Any thread. Methods take the shard's lock; those that expect it to be held say so.
final class CacheShard: @unchecked Sendable {
  let lock: UnsafeMutablePointer<hot_mutex>
  private(set) var buckets: UnsafeMutablePointer<EntryPointer?>
  private(set) var bucketCount: Int
  private var newest: EntryPointer?
  private var oldest: EntryPointer?
  private var count = 0
  private var octets = 0
  private let budget: CacheBudget
  /// The longest TTL of stale data, in seconds. Under the lock.
  private var staleTTL: UInt32
  private var epoch: UInt32 = 0
  /// The number of the current network. Under the lock.
  private var network: UInt32 = 0
  private var changeCount: UInt64 = 0
  /// Called with the lock held for each entry that is removed after hits. Set it before the shard is used.
  var onDeparture: ((DepartedEntry) -> Void)?
  private var insertions: UInt64 = 0
  private var evictions: UInt64 = 0

  /// The approximate overhead of allocator and table per block, in octets.
  private static let overhead = 16

  init(_ budget: CacheBudget) {
    self.budget = budget
    staleTTL = budget.bounds.staleTTL
    lock = .allocate(capacity: 1)
    hot_mutex_init(lock)
    bucketCount = 16
    buckets = .allocate(capacity: bucketCount)
    buckets.initialize(repeating: nil, count: bucketCount)
    budget.add(entries: 0, octets: bucketCount * MemoryLayout<EntryPointer?>.stride)
  }

  deinit {
    onDeparture = nil
    clear()
    buckets.deallocate()
    hot_mutex_destroy(lock)
    lock.deallocate()
  }

  func setStaleTTL(_ seconds: UInt32) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    staleTTL = seconds
  }

  /// Sets the current network. Entries of other networks are ignored.
  func setNetwork(_ number: UInt32) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    network = number
  }

  /// The current number of entries, and octets including the table.
  var usage: (entries: Int, octets: Int) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return (count, octets + tableOctets(for: count))
  }

  /// The total number of insertions and evictions.
  var turnover: (insertions: UInt64, evictions: UInt64) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return (insertions, evictions)
  }

  /// The total number of insertions and deliberate removals.
  var changes: UInt64 {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return changeCount
  }

  /// Serves an entry into `output`, marks it as used, and fills `head`.
  ///
  /// - Parameters:
  ///   - servesStale: whether stale data is written too; otherwise the result only reports it.
  ///   - onlyForEverySubnet: whether to ignore entries that are not valid for every client subnet.
  @_noAllocation
  func find(
    _ key: CacheKey, now: Int64, servesStale: Bool, onlyForEverySubnet: Bool,
    into output: UnsafeMutablePointer<UInt8>, capacity: Int, _ head: inout ResponseHead
  ) -> CacheLookup {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key), !onlyForEverySubnet || entry.pointee.isForEverySubnet, countsHere(entry) else {
      return .miss
    }
    let isFresh = now < entry.pointee.expiresAt
    if !isFresh {
      guard now < CacheEntry.end(entry) else { return .miss }
      let isServed = now < entry.pointee.staleUntil
      guard isServed, servesStale else {
        return CacheLookup(isServed ? .stale : .expired, storedAt: entry.pointee.storedAt)
      }
    }
    // Prefetched while the body is copied: unlinking the entry writes to its neighbours.
    hot_prefetch(entry.pointee.newer)
    hot_prefetch(entry.pointee.older)
    defer { touch(entry) }
    entry.pointee.usedAt = CacheEntry.stamp(now)
    head.responseCode = UInt16(entry.pointee.responseCode)
    head.isAuthenticated = entry.pointee.isAuthenticated
    head.isAuthoritative = entry.pointee.isAuthoritative
    head.answers = entry.pointee.answers
    head.authorities = entry.pointee.authorities
    head.extendedError = isFresh ? entry.pointee.extendedError : CacheEntry.staleError(entry)
    head.bodyLength = Int(entry.pointee.bodyLength)
    var lookup = CacheLookup.hit
    lookup.isStale = !isFresh
    lookup.wantsRefresh = wantsRefresh(entry, isFresh: isFresh, now: now)
    guard Int(entry.pointee.bodyLength) <= capacity else {
      lookup.kind = .tooLong
      if isFresh {
        CacheEntry.serveBeginning(entry, now: now, into: output, room: capacity)
      } else {
        CacheEntry.serveStaleBeginning(entry, longestTTL: staleTTL, into: output, room: capacity)
      }
      return lookup
    }
    if isFresh {
      CacheEntry.serve(entry, now: now, into: output)
    } else {
      CacheEntry.serveStale(entry, longestTTL: staleTTL, into: output)
    }
    return lookup
  }

  /// Whether an entry is valid on the current network.
  @_noAllocation @inline(__always)
  private func countsHere(_ entry: EntryPointer) -> Bool {
    entry.pointee.isOfOneNetwork ? entry.pointee.epoch == network : true
  }

  /// Whether to trigger a refresh: once per entry after each change of network, and from time to time for stale data.
  @_noAllocation @inline(__always)
  private func wantsRefresh(_ entry: EntryPointer, isFresh: Bool, now: Int64) -> Bool {
    guard !entry.pointee.isOfOneNetwork else { return false }
    let isElsewhere = entry.pointee.isImmutable ? false : entry.pointee.epoch != epoch
    let isDue = isFresh ? false : now >= entry.pointee.refreshAt
    guard isElsewhere || isDue else { return false }
    entry.pointee.epoch = epoch
    if !isFresh { entry.pointee.refreshAt = now &+ CacheEntry.recheckInterval }
    return true
  }

  /// Inserts or replaces an entry, then evicts the shard's least recently used entries until the cache is within its bounds
  /// or no other entry is left.
  ///
  /// - Returns: false if the response would exceed the bounds even without any other entry.
  func insert(
    _ key: CacheKey, _ response: ComposedResponse, now: Int64, _ life: EntryLife, isReplacement: Bool = false
  ) -> Bool {
    let entrySize = CacheEntry.size(
      keyLength: key.length, ttlCount: response.ttlOffsets.count, bodyLength: response.body.count)
    let size = entrySize + CacheShard.overhead
    guard size <= budget.bounds.maxOctets else { return false }
    let entry = CacheEntry.allocate(key, response, storedAt: now, life)
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    entry.pointee.epoch = life.network ?? life.epoch ?? epoch
    entry.pointee.hits = life.hits
    // Evictions do not shrink the table, so they cannot help a response that does not fit in addition to it.
    guard size + tableOctets(for: count + 1) <= budget.bounds.maxOctets else {
      UnsafeMutableRawPointer(entry).deallocate()
      return false
    }
    if let previous = lookUp(key) {
      if previous.pointee.isInUse(again: now) { entry.pointee.flags = entry.pointee.flags.withInUse }
      if isReplacement {
        (entry.pointee.epoch, entry.pointee.hits) = (previous.pointee.epoch, previous.pointee.hits)
        // Its hits have not departed.
        previous.pointee.hits = 0
      }
      remove(previous)
    }
    link(entry, size)
    pushNewest(entry)
    changeCount &+= 1
    insertions &+= 1
    while budget.isExceeded, let victim = oldest, victim != entry { evict(victim) }
    return true
  }

  /// Adds an entry as the least recently used one. Neither replaces an entry with its key nor evicts another one.
  ///
  /// - Returns: unless it is `.stored`, the entry stays the caller's.
  func restore(_ entry: EntryPointer, _ key: CacheKey) -> CacheRestoration {
    let size = CacheEntry.size(entry) + CacheShard.overhead
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard lookUp(key) == nil else { return .present }
    guard budget.hasRoom(entries: 1, octets: size + tableOctets(for: count + 1) - tableOctets(for: count)) else {
      return .noRoom
    }
    if !entry.pointee.isOfOneNetwork { entry.pointee.epoch = epoch }
    link(entry, size)
    pushOldest(entry)
    return .stored
  }

  /// Links an entry into table and list. With the lock held.
  private func link(_ entry: EntryPointer, _ size: Int) {
    if count >= bucketCount { grow() }
    let bucket = Int(truncatingIfNeeded: entry.pointee.hash) & (bucketCount - 1)
    entry.pointee.chain = buckets[bucket]
    buckets[bucket] = entry
    count += 1
    octets += size
    budget.add(entries: 1, octets: size)
  }

  /// Evicts the least recently used entries until the cache is within its bounds or nothing is left.
  func makeRoom() {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    while budget.isExceeded, let victim = oldest { evict(victim) }
  }

  private func evict(_ victim: EntryPointer) {
    remove(victim)
    evictions &+= 1
  }

  /// Removes the entry of a key, fresh or stale.
  func remove(_ key: CacheKey) -> Bool {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key) else { return false }
    remove(entry)
    return true
  }

  /// A copy of an entry, fresh or optionally stale, with its original TTLs.
  func peek(_ key: CacheKey, now: Int64, orStale: Bool) -> CachedResponse? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key), countsHere(entry), now < (orStale ? CacheEntry.end(entry) : entry.pointee.expiresAt)
    else { return nil }
    let body = UnsafeBufferPointer(start: CacheEntry.body(entry), count: Int(entry.pointee.bodyLength))
    return CachedResponse(
      responseCode: ResponseCode(rawValue: UInt16(entry.pointee.responseCode)), answers: entry.pointee.answers,
      authorities: entry.pointee.authorities, isAuthenticated: entry.pointee.isAuthenticated,
      extendedError: ExtendedError(stored: entry.pointee.extendedError), body: Array(body),
      storedAt: entry.pointee.storedAt, expiresAt: entry.pointee.expiresAt, staleUntil: entry.pointee.staleUntil,
      isForEverySubnet: entry.pointee.isForEverySubnet, isInUse: entry.pointee.isInUse, source: entry.pointee.source)
  }

  /// Allows an entry to be served stale until `end`.
  func serveStale(_ key: CacheKey, until end: Int64) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key), entry.pointee.staleUntil < end else { return }
    entry.pointee.staleUntil = end
    entry.pointee.refreshAt = end
    // An attempt on this network has just failed, so the entry needs no refresh for its epoch.
    if !entry.pointee.isOfOneNetwork { entry.pointee.epoch = epoch }
  }

  /// The state of the entry whose key has that hash, for the refresh schedule.
  func state(hash: UInt64) -> EntryState? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return lookUp(hash: hash).flatMap { entry in
      guard countsHere(entry) else { return nil }
      return EntryState(
        storedAt: entry.pointee.storedAt, expiresAt: entry.pointee.expiresAt, hits: entry.pointee.hits,
        source: entry.pointee.source, heat: entry.pointee.heat, isImmutable: entry.pointee.isImmutable)
    }
  }

  /// A copy of the key with that hash; nil if it is not cached.
  func key(hash: UInt64) -> [UInt8]? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return lookUp(hash: hash).map { entry in
      Array(UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(entry.pointee.keyLength)))
    }
  }

  /// The entry whose key has that hash. With the lock held.
  func lookUp(hash: UInt64) -> EntryPointer? {
    var candidate = buckets[Int(truncatingIfNeeded: hash) & (bucketCount - 1)]
    while let entry = candidate, entry.pointee.hash != hash { candidate = entry.pointee.chain }
    return candidate
  }

  var currentEpoch: UInt32 {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return epoch
  }

  /// Makes every existing entry trigger a refresh on its next use.
  func beginEpoch() {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    epoch &+= 1
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
      // Key and body follow the fixed part: one prefetch for all.
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

  private func pushOldest(_ entry: EntryPointer) {
    entry.pointee.newer = oldest
    entry.pointee.older = nil
    if let oldest { oldest.pointee.older = entry } else { newest = entry }
    oldest = entry
  }

  /// Removes an entry on explicit request. With the lock held.
  func discard(_ entry: EntryPointer) {
    remove(entry)
    noteChange()
  }

  /// Counts a change to the contents. With the lock held.
  func noteChange() { changeCount &+= 1 }

  private func remove(_ entry: EntryPointer) {
    if entry.pointee.hits > 0, let onDeparture { onDeparture(DepartedEntry(entry)) }
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

  /// The octets of the table for that many entries: the current size, or double.
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
