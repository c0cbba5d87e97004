// CacheRemoval.swift -- takes entries out by their names, or all of them, while the listeners go on using the rest.
//
// The names cannot be looked up: a key has a type, a route, a network and a subnet too. So the tables are walked through,
// in steps that hold one lock for as long as a few dozen entries take.

import CLock
import DNSWire
import Glibc

/// Which names a person means.
public struct CacheSelection: Sendable {
  /// In wire form and lower case; nil for every name there is.
  private let names: [[UInt8]]?
  private let includesBelow: Bool

  /// Every name.
  public static let everything = CacheSelection(names: nil, includesBelow: true)

  private init(names: [[UInt8]]?, includesBelow: Bool) {
    self.names = names
    self.includesBelow = includesBelow
  }

  /// Those names, and with `andBelow` also whatever is below them.
  public init(_ names: [DomainName], andBelow: Bool) {
    self.init(names: names.map(\.lowercased.octets), includesBelow: andBelow)
  }

  /// Whether a name is one of them, in any case.
  ///
  /// - Complexity: O(n) in the number of names.
  public func contains(_ name: DomainName) -> Bool {
    name.lowercased.octets.withUnsafeBufferPointer { contains(name: $0, isDenial: false) }
  }

  /// Whether an entry of that key says something about one of them. The denial of a name, for every type, does so about
  /// whatever is below (RFC 8020).
  ///
  /// - Complexity: O(n) in the number of names.
  public func contains(key: [UInt8]) -> Bool { key.withUnsafeBufferPointer { contains(key: $0) } }

  func contains(key: UnsafeBufferPointer<UInt8>) -> Bool {
    guard names != nil else { return true }
    guard let length = CacheRecord.nameLength(key) else { return false }
    let isDenial = UInt16(key[length]) << 8 | UInt16(key[length + 1]) == CacheKey.everyType
    return contains(name: UnsafeBufferPointer(rebasing: key[..<length]), isDenial: isDenial)
  }

  private func contains(name: UnsafeBufferPointer<UInt8>, isDenial: Bool) -> Bool {
    guard let names else { return true }
    for wanted in names {
      let isMeant = wanted.withUnsafeBufferPointer { wanted in
        if name.count == wanted.count { return name.elementsEqual(wanted) }
        return name.count > wanted.count
          ? includesBelow && isBelow(name, wanted) : isDenial && isBelow(wanted, name)
      }
      if isMeant { return true }
    }
    return false
  }
}

/// Whether the longer one of two names is below the other.
private func isBelow(_ name: UnsafeBufferPointer<UInt8>, _ ancestor: UnsafeBufferPointer<UInt8>) -> Bool {
  guard let octets = name.baseAddress, let tail = ancestor.baseAddress else { return false }
  let extra = name.count - ancestor.count
  guard memcmp(octets + extra, tail, ancestor.count) == 0 else { return false }
  var position = 0
  while position < extra { position += Int(octets[position]) + 1 }
  return position == extra
}

/// A removal under way. One thread at a time.
///
/// Each entry that was there at the beginning and is meant is gone at the end, whatever happens meanwhile. One that is
/// inserted in between may stay: it is new.
public struct CacheRemoval {
  /// How many entries have gone so far.
  public private(set) var count = 0
  private let cache: MessageCache
  private let names: CacheSelection
  private var walks: [TableWalk]
  private var next = 0

  /// Removes nothing yet.
  public init(of names: CacheSelection, from cache: MessageCache) {
    self.cache = cache
    self.names = names
    walks = Array(repeating: TableWalk(), count: cache.shardCount)
  }

  /// Whether everything has been looked at.
  public var isDone: Bool { walks.allSatisfy(\.isAtEnd) }

  /// Makes some steps, each in another shard than the one before, so that who waits for a lock gets it in between.
  ///
  /// - Parameter most: how many steps; one takes 5 to 30 µs.
  public mutating func advance(steps most: Int) {
    for _ in 0..<most {
      guard let index = nextShard() else { return }
      count += cache.shards[index].takeUnretainedValue().discard(names, &walks[index])
      next = (index + 1) % walks.count
    }
  }

  private func nextShard() -> Int? {
    walks.indices.map { (next + $0) % walks.count }.first { !walks[$0].isAtEnd }
  }
}

extension CacheShard {
  /// Buckets that are looked at while the lock is held.
  private static let bucketsPerRemoval = 32

  /// Removes what is meant from the next buckets; returns how many entries that were.
  fileprivate func discard(_ names: CacheSelection, _ walk: inout TableWalk) -> Int {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    var count = 0
    for _ in 0..<CacheShard.bucketsPerRemoval where !walk.isAtEnd {
      var next = buckets[walk.bucket]
      while let entry = next {
        next = entry.pointee.chain
        let key = UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(entry.pointee.keyLength))
        guard names.contains(key: key) else { continue }
        discard(entry)
        count += 1
      }
      walk.advance(bucketCount: bucketCount)
    }
    return count
  }
}
