// CacheRemoval.swift -- takes entries out by their names, or all of them, while the listeners go on using the rest.
//
// The names cannot be looked up, so the tables are walked through, in steps that hold one lock for as long as a few dozen
// entries take.

import DNSWire

/// Which names a person means.
///
/// A look costs the same however many they are: each entry of the cache is looked at, and each remembered failure.
public struct CacheSelection: Sendable {
  /// Names in wire form and lower case.
  private struct Names: Sendable {
    private var names: Set<[UInt8]> = []
    /// Of the same, so that most looks need no copy of a name.
    private var hashes: Set<UInt64> = []

    mutating func insert(_ name: ArraySlice<UInt8>) {
      names.insert(Array(name))
      hashes.insert(name.withUnsafeBufferPointer { Names.hash($0) })
    }

    func contains(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
      hashes.contains(Names.hash(UnsafeBufferPointer(rebasing: name))) && names.contains(Array(name))
    }

    /// FNV-1a: the names are a person's own.
    private static func hash(_ octets: UnsafeBufferPointer<UInt8>) -> UInt64 {
      octets.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
  }

  /// Nil for every name there is.
  private let names: Names?
  /// What is above them.
  private let ancestors: Names
  private let includesBelow: Bool

  /// Every name.
  public static let everything = CacheSelection(names: nil, ancestors: Names(), includesBelow: true)

  private init(names: Names?, ancestors: Names, includesBelow: Bool) {
    self.names = names
    self.ancestors = ancestors
    self.includesBelow = includesBelow
  }

  /// Those names, and with `andBelow` also whatever is below them.
  public init(_ names: [DomainName], andBelow: Bool) {
    var (these, ancestors) = (Names(), Names())
    for name in names {
      let octets = name.lowercased.octets
      these.insert(octets[...])
      var start = 0
      while start < octets.count, octets[start] != 0 {
        start += Int(octets[start]) + 1
        if start < octets.count { ancestors.insert(octets[start...]) }
      }
    }
    self.init(names: these, ancestors: ancestors, includesBelow: andBelow)
  }

  /// Whether a name is one of them, in any case.
  ///
  /// - Complexity: O(labels)
  public func contains(_ name: DomainName) -> Bool {
    name.lowercased.octets.withUnsafeBufferPointer { contains(name: $0, isDenial: false) }
  }

  /// Whether an entry of that key says something about one of them. The denial of a name, for every type, does so about
  /// whatever is below (RFC 8020).
  ///
  /// - Complexity: O(labels)
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
    if names.contains(name[...]) || isDenial && ancestors.contains(name[...]) { return true }
    guard includesBelow else { return false }
    var start = 0
    while start < name.count, name[start] != 0 {
      start += Int(name[start]) + 1
      if start < name.count, names.contains(name[start...]) { return true }
    }
    return false
  }
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
