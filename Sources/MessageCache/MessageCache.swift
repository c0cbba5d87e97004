// MessageCache.swift -- composed responses, shared by every thread, bounded by octets and by entries.
//
// Shards keep threads out of each other's way; within a shard the least recently used entry goes first.

import CHotPath
import DNSWire

/// What a look into the cache found.
public struct CacheLookup: Equatable, Sendable {
  /// How far it came.
  public enum Kind: UInt8, Sendable {
    /// Nothing that is of any use.
    case miss
    /// Something that has expired; it is not served, but what is older has had its day.
    case expired
    /// Something that has expired and is served stale, if nothing fresh answers the query; nothing was written.
    case stale
    /// The body was written.
    case hit
    /// It is longer than the room; `head` is filled and nothing was written.
    case tooLong
  }

  /// How far it came.
  public var kind: Kind
  /// Whether it is served as it is, and ought to be fetched anew.
  public var wantsRefresh = false
  /// Whether what is served has expired.
  public var isStale = false
  /// When what has expired was stored, in nanoseconds of the boot-time clock: the newest of it counts.
  public var storedAt: Int64

  @_noAllocation @inlinable
  init(_ kind: Kind, storedAt: Int64 = .min) {
    self.kind = kind
    self.storedAt = storedAt
  }

  /// Whether there is an answer, be it too long for the room.
  @inlinable public var isAnswer: Bool {
    @_noAllocation get {
      switch kind {
      case .hit, .tooLong: true
      case .miss, .expired, .stale: false
      }
    }
  }

  /// Nothing.
  @inlinable public static var miss: CacheLookup { @_noAllocation get { CacheLookup(.miss) } }
  /// A body.
  @inlinable public static var hit: CacheLookup { @_noAllocation get { CacheLookup(.hit) } }
}

/// A copy of what an entry holds.
public struct CachedResponse: Sendable {
  /// RCODE.
  public var responseCode: ResponseCode
  /// ANCOUNT.
  public var answers: UInt16
  /// NSCOUNT.
  public var authorities: UInt16
  /// Whether a validating upstream vouches for it.
  public var isAuthenticated: Bool
  /// The Extended DNS Error that goes with it.
  public var extendedError: ExtendedError?
  /// Answer and authority sections, TTLs as stored.
  public var body: [UInt8]
  /// When it was stored, in nanoseconds of the boot-time clock.
  public var storedAt: Int64
  /// When it stops being fresh, in nanoseconds of the boot-time clock.
  public var expiresAt: Int64
  /// Until when `find` serves it although it has expired, in nanoseconds of the boot-time clock.
  public var staleUntil: Int64
  /// Whether it holds for every client subnet, and not only for queries that send none upstream.
  public var isForEverySubnet: Bool
  /// Whether it was asked for in more seconds than one.
  public var isInUse: Bool
  /// Who gave it, as it was inserted.
  public var source: UInt8
}

/// The bounds of a cache.
public struct CacheBounds: Sendable {
  /// Octets of all blocks and tables together.
  public var maxOctets: Int
  /// Entries.
  public var maxEntries: Int
  /// The longest TTL of stale data, in seconds.
  public var staleTTL: UInt32

  /// All bounds.
  public init(maxOctets: Int, maxEntries: Int, staleTTL: UInt32 = 30) {
    self.maxOctets = maxOctets
    self.maxEntries = maxEntries
    self.staleTTL = staleTTL
  }
}

/// The cache.
public final class MessageCache: @unchecked Sendable {
  /// Drawn at start; for whatever shall differ from run to run.
  public let seed: UInt64
  let shards: UnsafeMutablePointer<Unmanaged<CacheShard>>
  let shardCount: Int
  private let budget: CacheBudget

  /// Below so many entries, or octets, one shard serves all, and the order of eviction is exact. A response evicts within
  /// its own shard only, so the shard must hold several of the largest.
  private static let entriesPerShard = 4096
  private static let octetsPerShard = 256 << 10
  private static let mostShards = 16

  /// An empty cache.
  ///
  /// - Parameter seed: the same one gives the same hashes, which only a simulation may want.
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
  ///   - servesStale: whether stale data is written too; first look for everything fresh that answers a query.
  ///   - onlyForEverySubnet: whether an entry counts only where it holds for every client subnet.
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

  /// Keeps a response for `lifetime` seconds, and no longer.
  ///
  /// - Returns: false where it is not kept: no lifetime, or no room.
  @discardableResult
  public func insert(_ key: CacheKey, _ response: ComposedResponse, now: Int64, lifetime: UInt32) -> Bool {
    insert(key, response, now: now, EntryLife(lifetime: lifetime))
  }

  /// Keeps a response in the place of what was there; the least recently used entries make room.
  ///
  /// - Returns: false where it is not kept: no lifetime, or no room. What was there is gone all the same.
  @discardableResult
  public func insert(_ key: CacheKey, _ response: ComposedResponse, now: Int64, _ life: EntryLife) -> Bool {
    guard life.lifetime > 0, shard(key.hash).insert(key, response, now: now, life) else {
      remove(key)
      return false
    }
    // A shard that had little gave all of that: the others have the rest.
    var other = shardIndex(key.hash)
    for _ in 1..<shardCount where budget.isExceeded {
      other = (other + 1) & (shardCount - 1)
      shards[other].takeUnretainedValue().makeRoom()
    }
    guard budget.isExceeded else { return true }
    remove(key)
    return false
  }

  /// A copy of a fresh entry, without marking it as used.
  ///
  /// - Parameter orStale: whether one that has expired will do, as long as it may be given as stale data.
  public func peek(_ key: CacheKey, now: Int64, orStale: Bool = false) -> CachedResponse? {
    shard(key.hash).peek(key, now: now, orStale: orStale)
  }

  /// Lets `find` serve an entry stale until that time: nobody knows better at present.
  public func serveStale(_ key: CacheKey, until end: Int64) { shard(key.hash).serveStale(key, until: end) }

  /// What a schedule of refreshes has to know of an entry, by the hash of its key; nil where there is none.
  public func state(hash: UInt64) -> EntryState? { shard(hash).state(hash: hash) }

  /// The octets of the key that has that hash; nil where there is no such entry.
  public func key(hash: UInt64) -> [UInt8]? { shard(hash).key(hash: hash) }

  /// Tells of each entry that is replaced or removed after it has had hits. Before any other thread uses the cache.
  ///
  /// - Parameter departed: called by whoever inserts or removes, with a lock held: it must be brief, and must not use the
  ///   cache.
  public func tellDepartures(to departed: @escaping (DepartedEntry) -> Void) {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().onDeparture = departed }
  }

  /// A keyed hash of any octets, such as a part of a key: it differs from run to run.
  public func hash(of octets: UnsafeBufferPointer<UInt8>) -> UInt64 {
    octets.baseAddress.map { hash($0, octets.count) } ?? seed
  }

  /// The longest TTL of stale data from now on, in seconds.
  public func setStaleTTL(_ seconds: UInt32) {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().setStaleTTL(seconds) }
  }

  /// The machine is on the network of that number: `EntryLife.network`.
  public func setNetwork(_ number: UInt32) {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().setNetwork(number) }
  }

  /// Each entry that is there now calls for a refresh the next time that it is used: the network is another one.
  public func beginEpoch() {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().beginEpoch() }
  }

  /// How often `beginEpoch` was called: what is asked for now belongs to this epoch, whenever it comes.
  public var epoch: UInt32 { shards[0].takeUnretainedValue().currentEpoch }

  /// Removes an entry; false where there was none.
  @discardableResult
  public func remove(_ key: CacheKey) -> Bool { shard(key.hash).remove(key) }

  /// Removes everything.
  public func removeAll() {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().clear() }
  }

  /// How often a response was inserted, or an entry removed or altered on purpose: what it was once tells whether there
  /// is something new. Any thread.
  public var changes: UInt64 {
    (0..<shardCount).reduce(0) { $0 &+ shards[$1].takeUnretainedValue().changes }
  }

  /// How much is kept.
  public var usage: (entries: Int, octets: Int) {
    (0..<shardCount).map { shards[$0].takeUnretainedValue().usage }
      .reduce((0, 0)) { ($0.0 + $1.entries, $0.1 + $1.octets) }
  }

  /// How much is kept, may be kept, has come and has had to make room. Any thread.
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

/// An entry that goes.
public struct DepartedEntry {
  /// The octets of its key, which are valid for a moment.
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
  /// The code in an entry; nil for none.
  init?(kept code: UInt16) {
    guard code != ResponseHead.noExtendedError else { return nil }
    self.init(rawValue: code)
  }
}
