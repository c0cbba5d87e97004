// CacheEntry.swift -- one cached response: one block with a fixed part, then TTL offsets, key and body.

import CHotPath
import DNSWire

/// The fixed part of an entry. Blocks are allocated on insertion and freed on removal, under the shard's lock.
struct CacheEntry {
  var chain: UnsafeMutablePointer<CacheEntry>?
  var newer: UnsafeMutablePointer<CacheEntry>?
  var older: UnsafeMutablePointer<CacheEntry>?
  var hash: UInt64
  var storedAt: Int64
  var expiresAt: Int64
  /// Until when `find` serves the expired entry without asking the resolver first.
  var staleUntil: Int64
  /// The time from which serving it stale triggers a refresh.
  var refreshAt: Int64
  /// Seconds after its expiry during which it may be served as stale data; `.max` for no limit.
  var staleFor: UInt32
  /// Hits since it was stored. Also selects the rotation of addresses.
  var hits: UInt32 = 0
  /// The epoch in which the entry was stored or last refreshed; for an entry of one network, that network's number.
  var epoch: UInt32
  var heat: UInt32
  /// The time of the last use; see `stamp`.
  var usedAt: Int32 = 0
  var keyLength: UInt16
  var ttlCount: UInt16
  var bodyLength: UInt16
  var answers: UInt16
  var authorities: UInt16
  var extendedError: UInt16
  var rotationStart: UInt16
  var rotationCount: UInt16
  var rotationSize: UInt8
  var responseCode: UInt8
  var flags: EntryFlags
  var source: UInt8

  var isAuthenticated: Bool { @_noAllocation @inline(__always) get { flags.has(EntryFlags.authenticated) } }
  var isAuthoritative: Bool { @_noAllocation @inline(__always) get { flags.has(EntryFlags.authoritative) } }
  var isForEverySubnet: Bool { @_noAllocation @inline(__always) get { flags.has(EntryFlags.forEverySubnet) } }
  var isImmutable: Bool { @_noAllocation @inline(__always) get { flags.has(EntryFlags.immutable) } }
  var isOfOneNetwork: Bool { @_noAllocation @inline(__always) get { flags.has(EntryFlags.ofOneNetwork) } }

  /// Whether it was used again at least a second after the first use: it replaced an older entry, or had a later hit.
  var isInUse: Bool { flags.has(EntryFlags.inUse) || hits > 0 && usedAt > CacheEntry.stamp(storedAt) + 1 }

  /// Whether an entry that replaces it at `now` is in use: then the name is queried in more than one second.
  func isInUse(again now: Int64) -> Bool {
    answers > 0 && responseCode == 0 && (isInUse || now &- storedAt >= 1_000_000_000)
  }
}

/// The Boolean properties of an entry in one octet, because there may be a hundred thousand entries.
struct EntryFlags {
  private let bits: UInt8

  static var authenticated: UInt8 { @_noAllocation @inline(__always) get { 1 } }
  static var authoritative: UInt8 { @_noAllocation @inline(__always) get { 2 } }
  static var forEverySubnet: UInt8 { @_noAllocation @inline(__always) get { 4 } }
  static var immutable: UInt8 { @_noAllocation @inline(__always) get { 8 } }
  static var ofOneNetwork: UInt8 { @_noAllocation @inline(__always) get { 16 } }
  static var inUse: UInt8 { @_noAllocation @inline(__always) get { 32 } }

  init(
    isAuthenticated: Bool, isAuthoritative: Bool, isForEverySubnet: Bool, isImmutable: Bool, isOfOneNetwork: Bool,
    isInUse: Bool
  ) {
    bits =
      (isAuthenticated ? EntryFlags.authenticated : 0) | (isAuthoritative ? EntryFlags.authoritative : 0)
      | (isForEverySubnet ? EntryFlags.forEverySubnet : 0) | (isImmutable ? EntryFlags.immutable : 0)
      | (isOfOneNetwork ? EntryFlags.ofOneNetwork : 0) | (isInUse ? EntryFlags.inUse : 0)
  }

  private init(bits: UInt8) { self.bits = bits }

  var withoutImmutable: EntryFlags { EntryFlags(bits: bits & ~EntryFlags.immutable) }

  var withInUse: EntryFlags { EntryFlags(bits: bits | EntryFlags.inUse) }

  @_noAllocation @inline(__always)
  func has(_ flag: UInt8) -> Bool { bits & flag != 0 }
}

typealias EntryPointer = UnsafeMutablePointer<CacheEntry>

extension CacheEntry {
  @_noAllocation @inline(__always)
  static func ttlOffsets(_ entry: EntryPointer) -> UnsafeMutablePointer<UInt16> {
    UnsafeMutableRawPointer(entry + 1).assumingMemoryBound(to: UInt16.self)
  }

  @_noAllocation @inline(__always)
  static func key(_ entry: EntryPointer) -> UnsafeMutablePointer<UInt8> {
    UnsafeMutableRawPointer(ttlOffsets(entry) + Int(entry.pointee.ttlCount)).assumingMemoryBound(to: UInt8.self)
  }

  @_noAllocation @inline(__always)
  static func body(_ entry: EntryPointer) -> UnsafeMutablePointer<UInt8> {
    key(entry) + Int(entry.pointee.keyLength)
  }

  /// The size of a block in octets.
  static func size(keyLength: Int, ttlCount: Int, bodyLength: Int) -> Int {
    MemoryLayout<CacheEntry>.stride + 2 * ttlCount + keyLength + bodyLength
  }

  static func size(_ entry: EntryPointer) -> Int {
    size(
      keyLength: Int(entry.pointee.keyLength), ttlCount: Int(entry.pointee.ttlCount),
      bodyLength: Int(entry.pointee.bodyLength))
  }

  /// Allocates a block for a response whose first use is now; the caller links it and later frees it.
  static func allocate(
    _ key: CacheKey, _ response: ComposedResponse, storedAt: Int64, _ life: EntryLife
  ) -> EntryPointer {
    response.body.withUnsafeBufferPointer { body in
      let record = CacheRecord(response, body, of: key, storedAt: storedAt, life)
      let entry = record.allocate(key, ttlCount: response.ttlOffsets.count)
      let offsets = ttlOffsets(entry)
      for (index, offset) in response.ttlOffsets.enumerated() { offsets[index] = offset }
      return entry
    }
  }

  /// A time of use in units of 2^30 ns (1.07 s), precise enough to order entries by use after a restart.
  @_noAllocation @inline(__always)
  static func stamp(_ now: Int64) -> Int32 { Int32(truncatingIfNeeded: now >> 30) }

  /// The time after which the entry cannot be served any more, not even as stale data.
  @_noAllocation @inline(__always)
  static func end(_ entry: EntryPointer) -> Int64 {
    let span = entry.pointee.staleFor
    return span == .max ? .max : entry.pointee.expiresAt &+ Int64(span) &* 1_000_000_000
  }

  /// The shortest time between two attempts to refresh stale data (RFC 8767 section 5), in nanoseconds.
  @inlinable static var recheckInterval: Int64 { @_noAllocation get { 30_000_000_000 } }

  /// The extended error of stale data: RFC 8914 sections 4.4 and 4.20.
  @_noAllocation @inline(__always)
  static func staleError(_ entry: EntryPointer) -> UInt16 {
    if entry.pointee.isImmutable { return entry.pointee.extendedError }
    return UInt16(entry.pointee.responseCode) == ResponseCode.nxDomain.rawValue
      ? ExtendedError.staleNXDomain.rawValue : ExtendedError.staleAnswer.rawValue
  }

  /// Copies the body to `output`. Address records rotate by one with each hit; TTLs are aged by whole seconds.
  @_noAllocation
  static func serve(_ entry: EntryPointer, now: Int64, into output: UnsafeMutablePointer<UInt8>) {
    copyBody(entry, into: output)
    age(entry, by: (now &- entry.pointee.storedAt) / 1_000_000_000, ttlCount: Int(entry.pointee.ttlCount), output)
  }

  /// As `serve`, for an expired entry: TTLs are the original ones, but at most `longestTTL` seconds.
  @_noAllocation
  static func serveStale(_ entry: EntryPointer, longestTTL: UInt32, into output: UnsafeMutablePointer<UInt8>) {
    copyBody(entry, into: output)
    capTTLs(entry, to: longestTTL, ttlCount: Int(entry.pointee.ttlCount), output)
  }

  /// As `serve`, for a body that exceeds `room` octets: the octets that fit.
  ///
  /// Not a hit, so that addresses do not rotate: most clients repeat the query over TCP.
  @_noAllocation @inline(never)
  static func serveBeginning(
    _ entry: EntryPointer, now: Int64, into output: UnsafeMutablePointer<UInt8>, room: Int
  ) {
    let elapsed = (now &- entry.pointee.storedAt) / 1_000_000_000
    age(entry, by: elapsed, ttlCount: copyBeginning(entry, into: output, room), output)
  }

  /// As `serveBeginning`, for an expired entry.
  @_noAllocation @inline(never)
  static func serveStaleBeginning(
    _ entry: EntryPointer, longestTTL: UInt32, into output: UnsafeMutablePointer<UInt8>, room: Int
  ) {
    capTTLs(entry, to: longestTTL, ttlCount: copyBeginning(entry, into: output, room), output)
  }

  @_noAllocation @inline(__always)
  private static func copyBody(_ entry: EntryPointer, into output: UnsafeMutablePointer<UInt8>) {
    let source = body(entry)
    let length = Int(entry.pointee.bodyLength)
    let count = Int(entry.pointee.rotationCount)
    if count > 1 {
      let size = Int(entry.pointee.rotationSize)
      let start = Int(entry.pointee.rotationStart)
      let first = Int(entry.pointee.hits) % count * size
      let run = count * size
      hot_copy(output, source, start)
      hot_copy(output + start, source + start + first, run - first)
      hot_copy(output + start + (run - first), source + start, first)
      hot_copy(output + start + run, source + start + run, length - start - run)
    } else {
      hot_copy(output, source, length)
    }
    entry.pointee.hits &+= 1
  }

  /// Copies the first `room` octets of the body, rotated as the next hit will be; returns the number of TTLs in them.
  @_noAllocation
  private static func copyBeginning(_ entry: EntryPointer, into output: UnsafeMutablePointer<UInt8>, _ room: Int) -> Int
  {
    let source = body(entry)
    let start = Int(entry.pointee.rotationStart)
    let (count, size) = (Int(entry.pointee.rotationCount), Int(entry.pointee.rotationSize))
    let first = count > 1 ? Int(entry.pointee.hits) % count * size : 0
    let run = count > 1 ? count * size : 0
    var written = 0
    copyPart(source, start, to: output, &written, room)
    copyPart(source + start + first, run - first, to: output, &written, room)
    copyPart(source + start, first, to: output, &written, room)
    copyPart(source + start + run, Int(entry.pointee.bodyLength) - start - run, to: output, &written, room)
    let offsets = ttlOffsets(entry)
    var ttls = 0
    while ttls < Int(entry.pointee.ttlCount), Int(offsets[ttls]) + 4 <= written { ttls &+= 1 }
    return ttls
  }

  @_noAllocation
  private static func copyPart(
    _ source: UnsafeMutablePointer<UInt8>, _ length: Int, to output: UnsafeMutablePointer<UInt8>, _ written: inout Int,
    _ room: Int
  ) {
    let count = length < room - written ? length : room - written
    guard count > 0 else { return }
    hot_copy(output + written, source, count)
    written += count
  }

  @_noAllocation @inline(__always)
  private static func capTTLs(
    _ entry: EntryPointer, to longestTTL: UInt32, ttlCount: Int, _ output: UnsafeMutablePointer<UInt8>
  ) {
    let offsets = ttlOffsets(entry)
    var index = 0
    while index < ttlCount {
      let place = UnsafeMutableRawPointer(output + Int(offsets[index]))
      let ttl = UInt32(bigEndian: place.loadUnaligned(as: UInt32.self))
      if ttl > longestTTL { place.storeBytes(of: longestTTL.bigEndian, as: UInt32.self) }
      index &+= 1
    }
  }

  @_noAllocation @inline(__always)
  private static func age(
    _ entry: EntryPointer, by elapsed: Int64, ttlCount: Int, _ output: UnsafeMutablePointer<UInt8>
  ) {
    guard elapsed > 0 else { return }
    let seconds = elapsed > 0x7FFF_FFFF ? 0x7FFF_FFFF : UInt32(elapsed)
    let offsets = ttlOffsets(entry)
    var index = 0
    while index < ttlCount {
      let place = UnsafeMutableRawPointer(output + Int(offsets[index]))
      let ttl = UInt32(bigEndian: place.loadUnaligned(as: UInt32.self))
      place.storeBytes(of: (ttl > seconds ? ttl &- seconds : 0).bigEndian, as: UInt32.self)
      index &+= 1
    }
  }
}
