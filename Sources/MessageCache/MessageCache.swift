// MessageCache.swift -- composed responses, shared by every thread, bounded by octets and by entries.
//
// Shards keep threads out of each other's way; within a shard the least recently used entry goes first.

import CLock
import DNSWire

/// What a look into the cache found.
public enum CacheLookup: UInt8, Sendable {
  /// Nothing fresh.
  case miss
  /// The body was written and holds for every client subnet.
  case hit
  /// The body was written and holds only for queries that send no client subnet upstream.
  case hitForNoSubnet
  /// Fresh, but longer than the room; `head` is filled and nothing was written.
  case tooLong
  /// As `tooLong`, for queries that send no client subnet upstream.
  case tooLongForNoSubnet
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
}

/// The bounds of a cache.
public struct CacheBounds: Sendable {
  /// Octets of all blocks and tables together.
  public var maxOctets: Int
  /// Entries.
  public var maxEntries: Int

  /// Both bounds.
  public init(maxOctets: Int, maxEntries: Int) {
    self.maxOctets = maxOctets
    self.maxEntries = maxEntries
  }
}

/// The cache.
public final class MessageCache: @unchecked Sendable {
  let seed: UInt64
  private let shards: UnsafeMutablePointer<Unmanaged<CacheShard>>
  private let shardCount: Int
  private let budget: CacheBudget

  /// Below so many entries, or octets, one shard serves all, and the order of eviction is exact. A response evicts within
  /// its own shard only, so the shard must hold several of the largest.
  private static let entriesPerShard = 4096
  private static let octetsPerShard = 256 << 10
  private static let mostShards = 16

  /// An empty cache.
  public init(_ bounds: CacheBounds) {
    var count = 1
    while count < MessageCache.mostShards, bounds.maxEntries / (count * 2) >= MessageCache.entriesPerShard,
      bounds.maxOctets / (count * 2) >= MessageCache.octetsPerShard
    {
      count *= 2
    }
    seed = UInt64.random(in: .min ... .max) | 1
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

  /// Serves a fresh entry: writes its body, aged and rotated, into `output` and fills `head`.
  ///
  /// - Parameters:
  ///   - now: nanoseconds of the boot-time clock.
  ///   - capacity: the room at `output`, in octets.
  /// - Complexity: O(length of key and body).
  @_noAllocation
  public func find(
    _ key: CacheKey, now: Int64, into output: UnsafeMutablePointer<UInt8>, capacity: Int, _ head: inout ResponseHead
  ) -> CacheLookup {
    shards[shardIndex(key)]._withUnsafeGuaranteedRef {
      $0.find(key, now: now, into: output, capacity: capacity, &head)
    }
  }

  /// Keeps a response for `lifetime` seconds; the least recently used entries make room.
  ///
  /// - Returns: false where it is not kept: no lifetime, or no room.
  @discardableResult
  public func insert(_ key: CacheKey, _ response: ComposedResponse, now: Int64, lifetime: UInt32) -> Bool {
    guard lifetime > 0 else { return false }
    let expiry = now + Int64(lifetime) * 1_000_000_000
    guard shard(key).insert(key, response, now: now, expiresAt: expiry) else { return false }
    // A shard that had little gave all of that: the others have the rest.
    var other = shardIndex(key)
    for _ in 1..<shardCount where budget.isExceeded {
      other = (other + 1) & (shardCount - 1)
      shards[other].takeUnretainedValue().makeRoom()
    }
    guard budget.isExceeded else { return true }
    remove(key)
    return false
  }

  /// A copy of a fresh entry, without marking it as used.
  public func peek(_ key: CacheKey, now: Int64) -> CachedResponse? { shard(key).peek(key, now: now) }

  /// Removes an entry; false where there was none.
  @discardableResult
  public func remove(_ key: CacheKey) -> Bool { shard(key).remove(key) }

  /// Removes everything.
  public func removeAll() {
    for index in 0..<shardCount { shards[index].takeUnretainedValue().clear() }
  }

  /// How much is kept.
  public var usage: (entries: Int, octets: Int) {
    (0..<shardCount).map { shards[$0].takeUnretainedValue().usage }
      .reduce((0, 0)) { ($0.0 + $1.entries, $0.1 + $1.octets) }
  }

  private func shard(_ key: CacheKey) -> CacheShard { shards[shardIndex(key)].takeUnretainedValue() }

  /// The upper bits choose the shard, the lower ones the bucket.
  @_noAllocation @inline(__always)
  private func shardIndex(_ key: CacheKey) -> Int {
    Int(truncatingIfNeeded: key.hash >> 32) & (shardCount &- 1)
  }
}

extension ExtendedError {
  /// The code in an entry; nil for none.
  init?(kept code: UInt16) {
    guard code != ResponseHead.noExtendedError else { return nil }
    self.init(rawValue: code)
  }
}
