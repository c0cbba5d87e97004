// CacheArrangement.swift -- changes the order of the addresses in a cached answer.
//
// The entry is changed in place: the first addresses keep rotating, and the hit path needs no special case. TTLs stay.

import CHotPath
import DNSWire
import Glibc

/// The addresses of a cached answer.
public struct AddressRun: Equatable, Sendable {
  /// RDATA of A or AAAA, in the order of the answer.
  public var addresses: [[UInt8]]
  /// How many of them, from the first, take turns at the front; nil if the order is fixed.
  public var rotating: Int?

  public init(addresses: [[UInt8]], rotating: Int?) {
    self.addresses = addresses
    self.rotating = rotating
  }
}

extension MessageCache {
  /// The addresses of an entry; nil if it has none of that family that can be told apart. Any thread.
  ///
  /// - Parameters:
  ///   - octets: 4 for A, 16 for AAAA.
  ///   - hash: the hash of the entry's key.
  public func addressRun(octets: Int, hash: UInt64) -> AddressRun? {
    shard(hash).addressRun(octets: octets, hash: hash)
  }

  /// Puts the addresses of an entry in order. Any thread.
  ///
  /// - Parameters:
  ///   - order: RDATA of A or AAAA. Addresses that are not in it come last, in their order.
  ///   - rotating: how many addresses, from the first, take turns at the front.
  ///   - hash: the hash of the entry's key.
  /// - Returns: whether anything changed.
  @discardableResult
  public func arrange(_ order: [[UInt8]], rotating: Int, hash: UInt64) -> Bool {
    shard(hash).arrange(order, rotating: rotating, hash: hash)
  }
}

extension MessageCache {
  /// A copy of an entry; nil if it is not cached. Any thread.
  public func copy(hash: UInt64) -> EntryCopy? { shard(hash).copy(hash: hash) }

  /// Replaces the records of an entry: it stays as old as it was, keeps its hits, and expires when it would have. Any
  /// thread.
  ///
  /// - Parameters:
  ///   - copy: the entry.
  ///   - response: the records, with the TTLs that the entry had when it was stored.
  /// - Returns: whether it was stored.
  @discardableResult
  public func replace(_ copy: EntryCopy, with response: ComposedResponse) -> Bool {
    copy.key.withUnsafeBufferPointer { octets in
      guard let start = octets.baseAddress else { return false }
      let key = CacheKey(octets: start, length: octets.count, hash: copy.hash)
      var life = copy.life
      life.hits = copy.hits
      return insert(key, response, now: copy.storedAt, life, isReplacement: true)
    }
  }
}

extension CacheShard {
  fileprivate func copy(hash: UInt64) -> EntryCopy? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    return lookUp(hash: hash).map { EntryCopy(CacheRecord($0), hash: hash) }
  }

  fileprivate func addressRun(octets: Int, hash: UInt64) -> AddressRun? {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(hash: hash), let run = CacheEntry.addresses(in: entry, octets: octets) else { return nil }
    let rotates = entry.pointee.rotationSize > 0
    return AddressRun(addresses: run.list(octets), rotating: rotates ? Int(entry.pointee.rotationCount) : nil)
  }

  fileprivate func arrange(_ order: [[UInt8]], rotating: Int, hash: UInt64) -> Bool {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let octets = order.first?.count, let entry = lookUp(hash: hash),
      let run = CacheEntry.addresses(in: entry, octets: octets), run.count > 1,
      CacheEntry.arrange(order, rotating: rotating, run, in: entry)
    else { return false }
    // The saved copy of the cache is out of date.
    noteChange()
    return true
  }
}

extension CacheEntry {
  fileprivate struct Run {
    var start: UnsafeMutablePointer<UInt8>
    var size: Int
    var count: Int

    /// The RDATA of each record.
    func list(_ octets: Int) -> [[UInt8]] {
      (0..<count).map { Array(UnsafeBufferPointer(start: start + ($0 + 1) * size - octets, count: octets)) }
    }
  }

  fileprivate static func arrange(_ order: [[UInt8]], rotating: Int, _ run: Run, in entry: EntryPointer) -> Bool {
    let octets = order[0].count
    let present = run.list(octets)
    var rank: [[UInt8]: Int] = [:]
    for (index, address) in order.enumerated() { rank[address] = index }
    func isBefore(_ left: Int, _ right: Int) -> Bool {
      (rank[present[left]] ?? .max, left) < (rank[present[right]] ?? .max, right)
    }
    let indices = present.indices.sorted(by: isBefore)
    let rotates = entry.pointee.rotationSize > 0
    let count = rotates ? UInt16(clamping: min(max(0, rotating), run.count)) : 0
    guard indices != Array(present.indices) || count != entry.pointee.rotationCount else { return false }
    withUnsafeTemporaryAllocation(byteCount: run.size * run.count, alignment: 1) { copy in
      guard let base = copy.baseAddress else { return }
      memcpy(base, run.start, run.size * run.count)
      for (place, index) in indices.enumerated() {
        memcpy(run.start + place * run.size, base + index * run.size, run.size)
      }
    }
    entry.pointee.rotationCount = count
    return true
  }

  /// The last run of address records whose owner is just a pointer: they have equal length, and no pointer leads to them.
  fileprivate static func addresses(in entry: EntryPointer, octets length: Int) -> Run? {
    let (body, offsets) = (body(entry), ttlOffsets(entry))
    let type = (length == 4 ? RecordType.a : .aaaa).rawValue
    var found: (start: Int, count: Int)?
    var start = 0
    for index in 0..<Int(entry.pointee.answers) {
      let ttl = Int(offsets[index])
      let dataLength = Int(body[ttl + 4]) << 8 | Int(body[ttl + 5])
      if ttl - start == 6, body[start] & 0xC0 == 0xC0, UInt16(body[start + 2]) << 8 | UInt16(body[start + 3]) == type,
        dataLength == length
      {
        let isNext =
          found.map { run in
            run.start + run.count * (12 + length) == start && memcmp(body + run.start, body + start, 2) == 0
          } ?? false
        found = isNext ? found.map { ($0.start, $0.count + 1) } : (start, 1)
      }
      start = ttl + 6 + dataLength
    }
    return found.map { Run(start: body + $0.start, size: 12 + length, count: $0.count) }
  }
}
