// CacheImage.swift -- checks a cache file in memory as a whole, then reads it entry by entry.
//
// The checksum detects damage, not malice: the code checks every length nevertheless.

import Ciphers
import MessageCache

/// Why a cache file is unusable.
public enum CacheDamage: Error, Hashable, CustomStringConvertible {
  /// It is too short.
  case cut
  /// It is not a cache file.
  case foreign
  /// Its version is unknown.
  case version(UInt32)
  /// Its checksum does not match.
  case checksum
  /// Its lengths are inconsistent, or it is larger than `CacheFormat.longest`.
  case lengths

  /// The reason, as a clause that follows the file's name.
  public var description: String {
    switch self {
    case .cut: "it is cut off"
    case .foreign: "it is not a cache file"
    case .version(let version): "its version is \(version), this program knows \(CacheFormat.version)"
    case .checksum: "its checksum does not fit: it is damaged or cut off"
    case .lengths: "its parts do not fit each other"
    }
  }
}

/// How many entries of a file were stored, and why others were not.
public struct CacheCounts: Hashable, Sendable {
  /// Entries that were stored in the cache.
  public var loaded = 0
  /// Entries that are too old, whose key the cache already has, or whose route or source no longer exists.
  public var dropped = 0
  /// Entries that the cache had no room for.
  public var withoutRoom = 0
  /// Entries with fields that the daemon never writes.
  public var unsound = 0
}

/// An entry that was loaded from a file and is still fresh.
public struct LoadedEntry: Sendable {
  /// The hash of its key in the cache.
  public var hash: UInt64
  /// When the answer arrived, in nanoseconds of the boot-time clock.
  public var storedAt: Int64
  /// Its lifetime and flags, with the current number of its source.
  public var life: EntryLife
  /// Whether it is NXDOMAIN, which covers every type of the name.
  public var isNXDOMAIN: Bool
}

/// A cache file whose checksum and lengths are valid.
public struct CacheImage {
  private let octets: [UInt8]
  private let written: Int64
  private let routes: [Fingerprint]
  private let sources: [UInt8: Fingerprint]
  /// The offsets of the entries, most recently used first.
  private let entriesByUse: [Entry]

  private struct Entry {
    var usedAt: Int64
    var offset: Int
  }

  public var entries: Int { entriesByUse.count }

  /// Checks the checksum and all lengths; `restore` checks the fields of the entries.
  ///
  /// - Complexity: O(*n* log *n*) in the entries, O(*n*) in the octets.
  public init(_ octets: [UInt8]) throws(CacheDamage) {
    try CacheImage.checkBeginning(octets)
    guard octets.count >= CacheFormat.shortest else { throw .cut }
    let checksum = octets.count - CacheFormat.checksumLength
    guard CacheImage.checksum(of: octets[..<checksum]).elementsEqual(octets[checksum...]) else { throw .checksum }
    let entriesEnd = checksum - CacheFormat.countLength
    var reader = ImageReader(octets, from: CacheFormat.magic.count + 4, to: entriesEnd)
    written = try reader.take(Int64.self)
    routes = try reader.takeFingerprints(Int(reader.take(UInt16.self)))
    sources = try reader.takeSources()
    var entriesByUse: [Entry] = []
    let count = ImageReader.number(octets, entriesEnd, UInt64.self)
    guard count <= (entriesEnd - reader.offset) / RecordLayout.length else { throw .lengths }
    entriesByUse.reserveCapacity(Int(count))
    while reader.offset < entriesEnd {
      let start = reader.offset
      try reader.skip(RecordLayout.length)
      let key = ImageReader.number(octets, start + RecordLayout.keyLength, UInt16.self)
      let body = ImageReader.number(octets, start + RecordLayout.bodyLength, UInt16.self)
      try reader.skip(Int(key) + Int(body))
      entriesByUse.append(
        Entry(usedAt: ImageReader.number(octets, start + RecordLayout.usedAt, Int64.self), offset: start))
    }
    guard entriesByUse.count == count else { throw .lengths }
    entriesByUse.sort { $0.usedAt > $1.usedAt }
    self.entriesByUse = entriesByUse
    self.octets = octets
  }

  /// Checks the magic number and the version. `octets` may be just the beginning of a file.
  static func checkBeginning(_ octets: [UInt8]) throws(CacheDamage) {
    guard octets.starts(with: CacheFormat.magic.prefix(octets.count)) else { throw .foreign }
    guard octets.count >= CacheFormat.magic.count + 4 else { throw .cut }
    let version = ImageReader.number(octets, CacheFormat.magic.count, UInt32.self)
    guard version == CacheFormat.version else { throw .version(version) }
  }

  /// Computes the checksum of the octets that precede it in the file.
  public static func checksum(of octets: ArraySlice<UInt8>) -> [UInt8] {
    var digests: [UInt8] = []
    var rest = octets
    while !rest.isEmpty {
      digests += Digest.sha256(Array(rest.prefix(CacheFormat.pieceLength)))
      rest = rest.dropFirst(CacheFormat.pieceLength)
    }
    return Digest.sha256(digests)
  }

  /// Stores the entries in a cache, most recently used first; none replaces an entry that is there.
  ///
  /// - Parameters:
  ///   - time: the current time. If its wall time is before the time of writing, the age of the entries is unknown:
  ///     they count as expired, and may be served as stale data.
  ///   - isWanted: polled now and then; false stops the load.
  ///   - whenFresh: receives each stored entry that is still fresh.
  public func restore(
    into cache: MessageCache, _ meanings: CacheMeanings, at time: CacheTime, while isWanted: () -> Bool = { true },
    whenFresh: (LoadedEntry) -> Void = { _ in }
  ) -> CacheCounts {
    let map = NumberMap(savedRoutes: routes, savedSources: sources, now: meanings)
    var counts = CacheCounts()
    octets.withUnsafeBytes { octets in
      for (number, entry) in entriesByUse.enumerated() {
        if number % CacheImage.entriesBetweenLooks == 0, !isWanted() { break }
        switch restore(octets, entry.offset, into: cache, map, meanings, time, whenFresh) {
        case .stored: counts.loaded += 1
        case .present, .past: counts.dropped += 1
        case .noRoom: counts.withoutRoom += 1
        case .unsound: counts.unsound += 1
        }
      }
    }
    return counts
  }

  private static let entriesBetweenLooks = 256

  private func restore(
    _ octets: UnsafeRawBufferPointer, _ start: Int, into cache: MessageCache, _ map: NumberMap,
    _ meanings: CacheMeanings, _ time: CacheTime, _ whenFresh: (LoadedEntry) -> Void
  ) -> CacheRestoration {
    typealias Layout = RecordLayout
    func number<Number: FixedWidthInteger>(_ offset: Int) -> Number {
      Number(littleEndian: octets.loadUnaligned(fromByteOffset: start + offset, as: Number.self))
    }
    let keyStart = start + Layout.length
    let (keyLength, bodyLength): (UInt16, UInt16) = (number(Layout.keyLength), number(Layout.bodyLength))
    let bodyStart = keyStart + Int(keyLength)
    let flags: UInt8 = number(Layout.flags)
    var life = EntryLife(lifetime: number(Layout.lifetime))
    life.staleFor = number(Layout.staleFor)
    life.isServedStale = flags & Layout.servedStale != 0
    life.isImmutable = flags & Layout.immutable != 0
    life.isInUse = flags & Layout.inUse != 0
    life.heat = number(Layout.heat)
    guard let age = age(storedAt: number(Layout.storedAt), life, time) else { return .past }
    var record = CacheRecord(
      key: UnsafeRawBufferPointer(rebasing: octets[keyStart..<bodyStart]).assumingMemoryBound(to: UInt8.self),
      body: UnsafeRawBufferPointer(rebasing: octets[bodyStart..<bodyStart + Int(bodyLength)])
        .assumingMemoryBound(to: UInt8.self),
      storedAt: time.boot - age, usedAt: time.boot - idleTime(usedAt: number(Layout.usedAt), time), life: life,
      answers: number(Layout.answers), authorities: number(Layout.authorities),
      responseCode: number(Layout.responseCode))
    guard let saved = record.route else { return .unsound }
    guard let route = map.route(saved), let source = map.source(number(Layout.source)) else { return .past }
    // An answer from a provider's substitute holds for one network, and the network may have changed since.
    guard meanings.terms(of: route)?.substitute != source else { return .past }
    record.life.source = source
    record.life.goOn(meanings.terms(of: route)?.terms(of: source), isFresh: age < Int64(life.lifetime) * 1_000_000_000)
    record.hits = number(Layout.hits)
    record.extendedError = number(Layout.extendedError)
    record.rotationStart = number(Layout.rotationStart)
    record.rotationCount = number(Layout.rotationCount)
    record.rotationSize = number(Layout.rotationSize)
    record.isAuthenticated = flags & Layout.authenticated != 0
    record.isAuthoritative = flags & Layout.authoritative != 0
    record.isForEverySubnet = flags & Layout.forEverySubnet != 0
    return cache.restore(record, route: route, now: time.boot) { hash in
      guard time.boot - record.storedAt < Int64(record.life.lifetime) * 1_000_000_000 else { return }
      whenFresh(LoadedEntry(hash: hash, storedAt: record.storedAt, life: record.life, isNXDOMAIN: record.isNXDOMAIN))
    }
  }

  /// Returns the age of an entry in nanoseconds, as far as it can be known; nil if the number makes no sense.
  private func age(storedAt: Int64, _ life: EntryLife, _ time: CacheTime) -> Int64? {
    let isClockBehind = time.wall < written
    let (age, isTooMuch) = (isClockBehind ? written : time.wall).subtractingReportingOverflow(storedAt)
    guard !isTooMuch, age < CacheImage.longestAge else { return nil }
    return max(age, isClockBehind ? Int64(life.lifetime) * 1_000_000_000 : 0)
  }

  /// Returns roughly how long an entry has been unused, in nanoseconds. It only ranks entries for eviction.
  private func idleTime(usedAt: Int64, _ time: CacheTime) -> Int64 {
    let (idle, isTooMuch) = max(time.wall, written).subtractingReportingOverflow(usedAt)
    return isTooMuch ? CacheImage.longestAge : min(max(idle, 0), CacheImage.longestAge)
  }

  /// 73 years: the most that the cache's own record of uses can hold.
  private static let longestAge: Int64 = 1 << 61
}
