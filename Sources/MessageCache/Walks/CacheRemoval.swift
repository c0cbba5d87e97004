// CacheRemoval.swift -- removes entries by name, or all of them, while the listeners keep using the cache.
//
// Entries cannot be looked up by name alone, so the tables are walked, in steps that hold one lock for the time that a
// few dozen entries take.

import DNSWire

extension NameSelection {
  /// Whether the entry of a key concerns a selected name. NXDOMAIN for a name also concerns all names below (RFC 8020).
  ///
  /// - Complexity: O(labels)
  public func contains(key: [UInt8]) -> Bool { key.withUnsafeBufferPointer { contains(key: $0) } }

  /// Whether an entry concerns a selected name.
  public func contains(_ record: CacheRecord) -> Bool { contains(key: record.key) }

  func contains(key: UnsafeBufferPointer<UInt8>) -> Bool {
    guard !isEverything else { return true }
    guard let length = CacheRecord.nameLength(key) else { return false }
    let isNXDOMAIN = UInt16(key[length]) << 8 | UInt16(key[length + 1]) == CacheKey.everyType
    return contains(name: UnsafeBufferPointer(rebasing: key[..<length]), isNXDOMAIN: isNXDOMAIN)
  }
}

/// A removal in progress. One thread at a time.
///
/// At the end, all selected entries that existed at the beginning are gone. Entries inserted meanwhile may remain.
public struct CacheRemoval {
  /// The number of removed entries so far.
  public private(set) var count = 0
  private let names: NameSelection
  private let end: Int64
  private var walk: CacheWalk

  /// Does nothing before `advance`.
  ///
  /// - Parameter end: only entries that were stored before are removed, in nanoseconds of the boot-time clock.
  public init(of names: NameSelection, from cache: MessageCache, storedBefore end: Int64 = .max) {
    self.names = names
    self.end = end
    walk = CacheWalk(through: cache)
  }

  /// Whether the walk is complete.
  public var isDone: Bool { walk.isDone }

  /// Advances the walk.
  ///
  /// - Parameter most: the number of steps, of 5 to 30 µs each.
  public mutating func advance(steps most: Int = MessageCache.stepsInTurn) {
    walk.advance(steps: most) { shard, walk in
      shard.visit(&walk) { entry in
        let key = UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(entry.pointee.keyLength))
        guard names.contains(key: key), entry.pointee.storedAt < end else { return }
        shard.discard(entry)
        count += 1
      }
    }
  }
}
