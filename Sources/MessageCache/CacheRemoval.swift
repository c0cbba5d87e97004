// CacheRemoval.swift -- takes entries out by their names, or all of them, while the listeners go on using the rest.
//
// The names cannot be looked up, so the tables are walked through, in steps that hold one lock for as long as a few dozen
// entries take.

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

  /// Whether an entry says something about one of them.
  public func contains(_ record: CacheRecord) -> Bool { contains(key: record.key) }

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
  private let names: CacheSelection
  private var walk: CacheWalk

  /// Removes nothing yet.
  public init(of names: CacheSelection, from cache: MessageCache) {
    self.names = names
    walk = CacheWalk(through: cache)
  }

  /// Whether everything has been looked at.
  public var isDone: Bool { walk.isDone }

  /// Makes some steps.
  ///
  /// - Parameter most: how many steps; one takes 5 to 30 µs.
  public mutating func advance(steps most: Int) {
    walk.advance(steps: most) { shard, walk in
      shard.visit(&walk) { entry in
        let key = UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(entry.pointee.keyLength))
        guard names.contains(key: key) else { return }
        shard.discard(entry)
        count += 1
      }
    }
  }
}
