// CacheDemotion.swift -- moves an address that was reported as bad to the end of its answer.
//
// The entry is changed in place: the addresses before it keep rotating, and the hit path needs no special case. The next
// answer replaces the entry and so ends the demotion.

import CHotPath
import DNSWire
import Glibc

extension MessageCache {
  /// Moves an address behind all others of its answer, until the entry is replaced. Any thread.
  ///
  /// - Parameters:
  ///   - address: RDATA of A or AAAA.
  ///   - hash: the hash of the entry's key.
  /// - Returns: whether the order changed.
  @discardableResult
  public func demote(_ address: [UInt8], hash: UInt64) -> Bool { shard(hash).demote(address, hash: hash) }
}

extension CacheShard {
  fileprivate func demote(_ address: [UInt8], hash: UInt64) -> Bool {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    guard let entry = lookUp(hash: hash), CacheEntry.demote(address, in: entry) else { return false }
    // The saved copy of the cache is out of date.
    noteChange()
    return true
  }
}

extension CacheEntry {
  fileprivate static func demote(_ address: [UInt8], in entry: EntryPointer) -> Bool {
    guard let run = addresses(in: entry, octets: address.count), run.count > 1 else { return false }
    // Addresses after the rotating ones were demoted before. If nothing rotates, the last one may have been.
    let rotates = entry.pointee.rotationSize > 0
    let front = rotates ? Int(entry.pointee.rotationCount) : run.count - 1
    for index in 0..<min(front, run.count) {
      let record = run.start + index * run.size
      guard memcmp(record + run.size - address.count, address, address.count) == 0 else { continue }
      withUnsafeTemporaryAllocation(byteCount: run.size, alignment: 1) { moved in
        guard let base = moved.baseAddress else { return }
        memcpy(base, record, run.size)
        memmove(record, record + run.size, (run.count - 1 - index) * run.size)
        memcpy(run.start + (run.count - 1) * run.size, base, run.size)
      }
      if rotates { entry.pointee.rotationCount -= 1 }
      return true
    }
    return false
  }

  /// The last run of address records whose owner is just a pointer: they have equal length, and no pointer leads to them.
  private static func addresses(
    in entry: EntryPointer, octets length: Int
  ) -> (start: UnsafeMutablePointer<UInt8>, size: Int, count: Int)? {
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
    return found.map { (body + $0.start, 12 + length, $0.count) }
  }
}
