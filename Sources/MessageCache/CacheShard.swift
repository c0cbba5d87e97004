// CacheShard.swift -- a part of the cache: a hash table with chains, a list from the newest use to the oldest, a lock.

import CHotPath
import DNSWire

/// One shard. Every method takes the shard's lock itself, and none is called with it held, unless it says so.
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
  /// The network that the machine is on. Under the lock.
  private var network: UInt32 = 0
  private var changeCount: UInt64 = 0
  /// Told of each entry that goes and has had hits; set before anybody uses the shard.
  var onDeparture: ((DepartedEntry) -> Void)?
  private var insertions: UInt64 = 0
  private var evictions: UInt64 = 0

  /// Octets that an allocator and the table add to a block, about.
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

  /// The longest TTL of stale data from now on, in seconds.
  func setStaleTTL(_ seconds: UInt32) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    staleTTL = seconds
  }

  /// Entries that count on another network alone are not seen from now on.
  func setNetwork(_ number: UInt32) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    network = number
  }

  /// Entries and octets at present, the table included.
  var usage: (entries: Int, octets: Int) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return (count, octets + tableOctets(for: count))
  }

  /// How often something was inserted, and how often an entry had to make room, so far.
  var turnover: (insertions: UInt64, evictions: UInt64) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return (insertions, evictions)
  }

  /// How often something was inserted or removed on purpose so far.
  var changes: UInt64 {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return changeCount
  }

  /// Serves an entry into `output`, marks it as used, and fills `head`.
  ///
  /// - Parameters:
  ///   - servesStale: whether an entry that has expired but is served stale is written too; otherwise it is only told of.
  ///   - onlyForEverySubnet: whether an entry counts only where it holds for every client subnet.
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
    // Its neighbours in the list are written at the end: they arrive while the body is copied.
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
      return lookup
    }
    if isFresh {
      CacheEntry.serve(entry, now: now, into: output)
    } else {
      CacheEntry.serveStale(entry, longestTTL: staleTTL, into: output)
    }
    return lookup
  }

  /// Whether an entry counts on the network that the machine is on.
  @_noAllocation @inline(__always)
  private func countsHere(_ entry: EntryPointer) -> Bool {
    entry.pointee.isOfOneNetwork ? entry.pointee.epoch == network : true
  }

  /// Once for each change of the network, and for stale data once in a while.
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

  /// Inserts or replaces an entry, then evicts the shard's least recently used ones until the cache is within its bounds
  /// or nothing else is left.
  ///
  /// - Returns: false where the response has no room, even with every other entry gone.
  func insert(_ key: CacheKey, _ response: ComposedResponse, now: Int64, _ life: EntryLife) -> Bool {
    let entrySize = CacheEntry.size(
      keyLength: key.length, ttlCount: response.ttlOffsets.count, bodyLength: response.body.count)
    let size = entrySize + CacheShard.overhead
    guard size <= budget.bounds.maxOctets else { return false }
    let entry = CacheEntry.allocate(key, response, storedAt: now, life)
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    entry.pointee.epoch = life.network ?? life.epoch ?? epoch
    entry.pointee.hits = life.hits
    // The table stays when entries go, so a response that has no room beside it cannot be helped by evictions.
    guard size + tableOctets(for: count + 1) <= budget.bounds.maxOctets else {
      UnsafeMutableRawPointer(entry).deallocate()
      return false
    }
    if let previous = lookUp(key) {
      if previous.pointee.isInUse(again: now) { entry.pointee.flags = entry.pointee.flags.withInUse }
      remove(previous)
    }
    link(entry, size)
    pushNewest(entry)
    changeCount &+= 1
    insertions &+= 1
    while budget.isExceeded, let victim = oldest, victim != entry { evict(victim) }
    return true
  }

  /// Adds an entry as the least recently used one. It takes nobody's place: neither its key's nor that of one that would
  /// have to go.
  ///
  /// - Returns: whether it is kept; otherwise the entry is still the caller's.
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
    return .kept
  }

  /// Puts an entry into the table.
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

  /// Removes the entry of that key, fresh or not.
  func remove(_ key: CacheKey) -> Bool {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key) else { return false }
    remove(entry)
    return true
  }

  /// A copy of what a fresh entry holds, or one that may be given as stale data; TTLs as they were stored.
  func peek(_ key: CacheKey, now: Int64, orStale: Bool) -> CachedResponse? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key), countsHere(entry),
      now < (orStale ? CacheEntry.end(entry) : entry.pointee.expiresAt)
    else { return nil }
    let body = UnsafeBufferPointer(start: CacheEntry.body(entry), count: Int(entry.pointee.bodyLength))
    return CachedResponse(
      responseCode: ResponseCode(rawValue: UInt16(entry.pointee.responseCode)), answers: entry.pointee.answers,
      authorities: entry.pointee.authorities, isAuthenticated: entry.pointee.isAuthenticated,
      extendedError: ExtendedError(kept: entry.pointee.extendedError), body: Array(body),
      storedAt: entry.pointee.storedAt, expiresAt: entry.pointee.expiresAt, staleUntil: entry.pointee.staleUntil,
      isForEverySubnet: entry.pointee.isForEverySubnet, isInUse: entry.pointee.isInUse, source: entry.pointee.source)
  }

  /// Lets an entry be served stale until then.
  func serveStale(_ key: CacheKey, until end: Int64) {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(key), entry.pointee.staleUntil < end else { return }
    entry.pointee.staleUntil = end
    entry.pointee.refreshAt = end
    // It has just been asked for in vain, on this network.
    if !entry.pointee.isOfOneNetwork { entry.pointee.epoch = epoch }
  }

  /// What a schedule has to know of the entry whose key has that hash.
  func state(hash: UInt64) -> EntryState? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return lookUp(hash: hash).flatMap { entry in
      guard countsHere(entry) else { return nil }
      return EntryState(
        storedAt: entry.pointee.storedAt, expiresAt: entry.pointee.expiresAt, hits: entry.pointee.hits,
        source: entry.pointee.source, heat: entry.pointee.heat)
    }
  }

  /// The octets of the key that has that hash.
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

  /// The number of the present epoch.
  var currentEpoch: UInt32 {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return epoch
  }

  /// From now on each entry that is there calls for a refresh the next time that it is used.
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

  private func pushOldest(_ entry: EntryPointer) {
    entry.pointee.newer = oldest
    entry.pointee.older = nil
    if let oldest { oldest.pointee.older = entry } else { newest = entry }
    oldest = entry
  }

  /// Takes an entry out that somebody wants to be gone. With the lock held.
  func discard(_ entry: EntryPointer) {
    remove(entry)
    noteChange()
  }

  /// Something is not as it was inserted any more. With the lock held.
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
