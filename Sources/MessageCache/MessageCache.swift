// MessageCache.swift -- the cache of composed responses: shared by all threads, bounded by octets and by entries.
//
// Shards reduce contention between threads. Within a shard the least recently used entry is evicted first.

import CHotPath
import DNSWire

/// The result of a look-up.
public struct CacheLookup: Equatable, Sendable {
  /// The kind of result.
  public enum Kind: UInt8, Sendable {
    /// No usable entry.
    case miss
    /// An expired entry that must not be served now. Stale entries stored before it must not be served either.
    case expired
    /// An expired entry that may be served stale if no fresh entry answers the query; nothing was written.
    case stale
    /// The body was written.
    case hit
    /// The body exceeds the room: the beginning that fits was written, for a truncated response.
    case tooLong
  }

  /// The kind of result.
  public var kind: Kind
  /// Whether serving it should trigger a refresh.
  public var wantsRefresh = false
  /// Whether the served entry has expired.
  public var isStale = false
  /// When an expired entry was stored, in nanoseconds of the boot-time clock: among several, the newest is served.
  public var storedAt: Int64

  @_noAllocation @inlinable
  init(_ kind: Kind, storedAt: Int64 = .min) {
    self.kind = kind
    self.storedAt = storedAt
  }

  /// Whether there is an answer, possibly one that exceeds the room.
  @inlinable public var isAnswer: Bool {
    @_noAllocation get {
      switch kind {
      case .hit, .tooLong: true
      case .miss, .expired, .stale: false
      }
    }
  }

  @inlinable public static var miss: CacheLookup { @_noAllocation get { CacheLookup(.miss) } }
  /// A fresh hit.
  @inlinable public static var hit: CacheLookup { @_noAllocation get { CacheLookup(.hit) } }
}

/// A copy of an entry.
public struct CachedResponse: Sendable {
  /// RCODE.
  public var responseCode: ResponseCode
  /// ANCOUNT.
  public var answers: UInt16
  /// NSCOUNT.
  public var authorities: UInt16
  /// Whether a validating upstream set AD.
  public var isAuthenticated: Bool
  /// The Extended DNS Error to send with it.
  public var extendedError: ExtendedError?
  /// Answer and authority sections, TTLs as stored.
  public var body: [UInt8]
  /// The time of storage in nanoseconds of the boot-time clock.
  public var storedAt: Int64
  /// The end of its lifetime in nanoseconds of the boot-time clock.
  public var expiresAt: Int64
  /// Until when `find` serves it stale, in nanoseconds of the boot-time clock.
  public var staleUntil: Int64
  /// Whether it is valid for every client subnet, not only for queries without one.
  public var isForEverySubnet: Bool
  /// Whether it was queried in more than one second.
  public var isInUse: Bool
  /// The source given on insertion.
  public var source: UInt8
}

public struct CacheBounds: Sendable {
  /// Octets of all blocks and tables together.
  public var maxOctets: Int
  /// Entries of all shards together.
  public var maxEntries: Int
  /// The longest TTL of stale data, in seconds.
  public var staleTTL: UInt32

  public init(maxOctets: Int, maxEntries: Int, staleTTL: UInt32 = 30) {
    self.maxOctets = maxOctets
    self.maxEntries = maxEntries
    self.staleTTL = staleTTL
  }
}

/// The cache of composed responses. Any thread, unless a member says otherwise.
public final class MessageCache: @unchecked Sendable {
  /// The random seed of all hashes, which therefore differ from run to run.
  public let seed: UInt64
  let shards: UnsafeMutablePointer<Unmanaged<CacheShard>>
  let shardCount: Int
  private let budget: CacheBudget

  /// A smaller cache has one shard and evicts in exact order of use. A response evicts only within its own shard, which
  /// must therefore hold several of the largest responses.
  private static let entriesPerShard = 4096
  private static let octetsPerShard = 256 << 10
  private static let mostShards = 16

  /// - Parameter seed: a fixed seed makes hashes predictable and is only for simulations.
  public init(_ bounds: CacheBounds, seed: UInt64 = .random(in: .min ... .max)) {
    var count = 1
    while count < MessageCache.mostShards, bounds.maxEntries / (count * 2) >= MessageCache.entriesPerShard,
      bounds.maxOctets / (count * 2) >= MessageCache.octetsPerShard
    {
      count *= 2
    }
    self.seed = seed | 1
    shardCount = count
    shards = .allocate(capacity: count)
    budget = CacheBudget(bounds)
    for index in 0..<count {
      let shard = CacheShard(budget)
      (shards + index).initialize(to: Unmanaged.passRetained(shard))
    }
  }

  deinit {
    for index in 0..<shardCount { shards[index].release() }
    shards.deallocate()
  }

  /// Serves an entry: writes its body, aged and rotated, into `output` and fills `head`.
  ///
  /// - Parameters:
  ///   - now: nanoseconds of the boot-time clock.
  ///   - servesStale: whether stale data is written too. First look up all fresh entries that could answer the query.
  ///   - onlyForEverySubnet: whether to ignore entries that are not valid for every client subnet.
  ///   - capacity: the room at `output`, in octets.
  /// - Complexity: O(length of key and body).
  @_noAllocation
  public func find(
    _ key: CacheKey, now: Int64, servesStale: Bool = false, onlyForEverySubnet: Bool = false,
    into output: UnsafeMutablePointer<UInt8>, capacity: Int, _ head: inout ResponseHead
  ) -> CacheLookup {
    shards[shardIndex(key.hash)]._withUnsafeGuaranteedRef {
      $0.find(
        key, now: now, servesStale: servesStale, onlyForEverySubnet: onlyForEverySubnet, into: output,
        capacity: capacity, &head)
    }
  }

  /// Stores a response for `lifetime` seconds, without a stale period.
  ///
  /// - Returns: false if it is not stored: the lifetime is 0, or the response is too large.
  @discardableResult
  public func insert(_ key: CacheKey, _ response: ComposedResponse, now: Int64, lifetime: UInt32) -> Bool {
    insert(key, response, now: now, EntryLife(lifetime: lifetime))
  }

  /// Stores a response, replaces an entry with the same key, and evicts the least recently used entries.
  ///
  /// - Returns: false if it is not stored: the lifetime is 0, or the response is too large. An old entry is removed anyway.
  @discardableResult
  public func insert(_ key: CacheKey, _ response: ComposedResponse, now: Int64, _ life: EntryLife) -> Bool {
    insert(key, response, now: now, life, isReplacement: false)
  }

  /// - Parameter isReplacement: whether it goes on with hits and epoch of the entry with the same key.
  func insert(
    _ key: CacheKey, _ response: ComposedResponse, now: Int64, _ life: EntryLife, isReplacement: Bool
  ) -> Bool {
    guard life.lifetime > 0,
      shard(key.hash).insert(key, response, now: now, life, isReplacement: isReplacement)
    else {
      remove(key)
      return false
    }
    // The shard has no other entry left to evict, so continue with the other shards.
    var other = shardIndex(key.hash)
    for _ in 1..<shardCount where budget.isExceeded {
      other = (other + 1) & (shardCount - 1)
      shards[other].takeUnretainedValue().makeRoom()
    }
    guard budget.isExceeded else { return true }
    remove(key)
    return false
  }

  /// A copy of a fresh entry, which is not marked as used.
  ///
  /// - Parameter orStale: whether an expired entry within its stale period is accepted too.
  public func peek(_ key: CacheKey, now: Int64, orStale: Bool = false) -> CachedResponse? {
    shard(key.hash).peek(key, now: now, orStale: orStale)
  }

  /// Allows `find` to serve an entry stale until `end`; for use after a failed attempt to refresh it.
  public func serveStale(_ key: CacheKey, until end: Int64) { shard(key.hash).serveStale(key, until: end) }

  /// The state of the entry whose key has that hash; nil if it is not cached.
  public func state(hash: UInt64) -> EntryState? { shard(hash).state(hash: hash) }

  /// The octets of the key with that hash; nil if there is no such entry.
  public func key(hash: UInt64) -> [UInt8]? { shard(hash).key(hash: hash) }

  /// Reports each entry that is replaced or removed after hits. Call it before any other thread uses the cache.
  ///
  /// - Parameter departed: called on the inserting or removing thread, with a lock held: it must be brief and must not use
  ///   the cache.
  public func reportDepartures(to departed: @escaping (DepartedEntry) -> Void) {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().onDeparture = departed }
  }

  /// A keyed hash of any octets, such as a part of a key. It differs from run to run.
  public func hash(of octets: UnsafeBufferPointer<UInt8>) -> UInt64 {
    octets.baseAddress.map { hash($0, octets.count) } ?? seed
  }

  /// Sets the longest TTL of stale data, in seconds.
  public func setStaleTTL(_ seconds: UInt32) {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().setStaleTTL(seconds) }
  }

  /// Sets the number of the current network; see `EntryLife.network`.
  public func setNetwork(_ number: UInt32) {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().setNetwork(number) }
  }

  /// Makes every existing entry trigger a refresh on its next use; call it after a change of network.
  public func beginEpoch() {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().beginEpoch() }
  }

  /// The number of calls of `beginEpoch`. An answer belongs to the epoch in which its question was sent.
  public var epoch: UInt32 { shards[0].takeUnretainedValue().currentEpoch }

  /// Removes an entry; returns false if there was none.
  @discardableResult
  public func remove(_ key: CacheKey) -> Bool { shard(key.hash).remove(key) }

  public func removeAll() {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().clear() }
  }

  /// The number of insertions and of deliberate removals and changes: comparing two values shows whether the contents
  /// changed.
  public var changes: UInt64 { (0..<shardCount).reduce(0) { $0 &+ shards[$1].takeUnretainedValue().changes } }

  /// The current number of entries and octets.
  public var usage: (entries: Int, octets: Int) {
    (0..<shardCount).map { shards[$0].takeUnretainedValue().usage }
      .reduce((0, 0)) { ($0.0 + $1.entries, $0.1 + $1.octets) }
  }

  /// Size, limits and turnover.
  public var statistics: CacheStatistics {
    var statistics = CacheStatistics()
    (statistics.entries, statistics.octets) = usage
    statistics.maxEntries = budget.bounds.maxEntries
    statistics.maxOctets = budget.bounds.maxOctets
    for index in 0..<shardCount {
      let turnover = shards[index].takeUnretainedValue().turnover
      statistics.insertions &+= turnover.insertions
      statistics.evictions &+= turnover.evictions
    }
    return statistics
  }

  func shard(_ hash: UInt64) -> CacheShard { shards[shardIndex(hash)].takeUnretainedValue() }

  /// The upper bits choose the shard, the lower ones the bucket.
  @_noAllocation @inline(__always)
  private func shardIndex(_ hash: UInt64) -> Int {
    Int(truncatingIfNeeded: hash >> 32) & (shardCount &- 1)
  }
}

/// An entry that is being removed.
public struct DepartedEntry {
  /// The octets of its key, valid during the callback.
  public var key: UnsafeBufferPointer<UInt8>
  /// The hash of the key.
  public var hash: UInt64
  /// Hits since it was stored.
  public var hits: UInt32

  init(_ entry: EntryPointer) {
    key = UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(entry.pointee.keyLength))
    hash = entry.pointee.hash
    hits = entry.pointee.hits
  }
}

extension ExtendedError {
  /// The code stored in an entry; nil for none.
  init?(stored code: UInt16) {
    guard code != ResponseHead.noExtendedError else { return nil }
    self.init(rawValue: code)
  }
}
