// CacheRecord.swift -- an entry outside of the cache: to be saved, or read from a file to be restored.

import CHotPath
import DNSWire

/// The contents of an entry. Key and body are views; their octets belong to the creator of the record.
public struct CacheRecord {
  /// The octets of the key.
  public var key: UnsafeBufferPointer<UInt8>
  /// Answer and authority sections, TTLs as stored.
  public var body: UnsafeBufferPointer<UInt8>
  /// The time of storage in nanoseconds of the boot-time clock; negative if that was before the machine booted.
  public var storedAt: Int64
  /// The approximate time of the last use, by the same clock.
  public var usedAt: Int64
  /// Lifetime, source and other properties that are set on insertion.
  public var life: EntryLife
  /// Hits since it was stored.
  public var hits: UInt32 = 0
  /// ANCOUNT.
  public var answers: UInt16
  /// NSCOUNT.
  public var authorities: UInt16
  /// INFO-CODE of an Extended DNS Error, or `ResponseHead.noExtendedError`.
  public var extendedError: UInt16 = ResponseHead.noExtendedError
  /// The offset of the rotating address records in the body.
  public var rotationStart: UInt16 = 0
  /// The number of these records.
  public var rotationCount: UInt16 = 0
  /// The octets of each.
  public var rotationSize: UInt8 = 0
  /// RCODE, 0…15.
  public var responseCode: UInt8
  /// Whether a validating upstream set AD.
  public var isAuthenticated = false
  /// Whether the answer comes from a local zone of the daemon.
  public var isAuthoritative = false
  /// Whether it is valid for every client subnet.
  public var isForEverySubnet = true

  /// The other properties have the values of a plain answer without hits.
  public init(
    key: UnsafeBufferPointer<UInt8>, body: UnsafeBufferPointer<UInt8>, storedAt: Int64, usedAt: Int64, life: EntryLife,
    answers: UInt16, authorities: UInt16, responseCode: UInt8
  ) {
    self.key = key
    self.body = body
    self.storedAt = storedAt
    self.usedAt = usedAt
    self.life = life
    self.answers = answers
    self.authorities = authorities
    self.responseCode = responseCode
  }

  /// The number of the route in the key; nil if the octets are not a key.
  public var route: UInt16? { CacheRecord.nameLength(key).map { UInt16(key[$0 + 3]) << 8 | UInt16(key[$0 + 4]) } }

  /// QTYPE in the key, or `CacheKey.everyType`; nil if the octets are not a key.
  public var type: UInt16? { CacheRecord.nameLength(key).map { UInt16(key[$0]) << 8 | UInt16(key[$0 + 1]) } }

  /// Whether it is NXDOMAIN, which is valid for every type; false if the octets are not a key.
  public var isNXDOMAIN: Bool { type == CacheKey.everyType }

  /// Whether it is AAAA without addresses because of the daemon's own judgement (RFC 8914 section 4.18), which another
  /// start may not share.
  public var isWithheldIPv6: Bool {
    extendedError == ExtendedError.filtered.rawValue && type == RecordType.aaaa.rawValue
  }

  /// The length of the name in a key; nil if the octets are not a key.
  static func nameLength(_ key: UnsafeBufferPointer<UInt8>) -> Int? {
    guard key.count <= CacheKey.longest else { return nil }
    var end = 0
    while end < key.count, key[end] != 0 {
      guard key[end] < 64 else { return nil }
      end += Int(key[end]) + 1
    }
    end += 1
    guard end <= DomainName.longest else { return nil }
    return CacheKey.tailLengths.contains(key.count - end) ? end : nil
  }
}

extension CacheKey {
  /// The possible lengths after the name: the fixed part without or with a client subnet.
  fileprivate static let tailLengths = [fixedLength, fixedLength + 18]
}

extension DomainName {
  /// Octets of the longest name (RFC 1035 section 3.1).
  fileprivate static let longest = 255
}

extension CacheRecord {
  /// Creates a record of a fresh response.
  ///
  /// - Parameter body: a view of the response's body.
  init(
    _ response: ComposedResponse, _ body: UnsafeBufferPointer<UInt8>, of key: CacheKey, storedAt: Int64,
    _ life: EntryLife
  ) {
    self.init(
      key: UnsafeBufferPointer(start: key.octets, count: key.length), body: body, storedAt: storedAt,
      usedAt: storedAt, life: life, answers: response.answers, authorities: response.authorities,
      responseCode: UInt8(truncatingIfNeeded: response.responseCode.rawValue))
    extendedError = response.extendedError?.rawValue ?? ResponseHead.noExtendedError
    rotationStart = response.rotation.start
    rotationCount = response.rotation.count
    rotationSize = response.rotation.size
    isAuthenticated = response.isAuthenticated
    isAuthoritative = response.isAuthoritative
    isForEverySubnet = response.isForEverySubnet
  }

  /// Creates a record of an entry, or of a copy of one, that must outlive it.
  init(_ entry: EntryPointer) {
    let fields = entry.pointee
    var life = EntryLife(lifetime: UInt32(clamping: (fields.expiresAt - fields.storedAt) / 1_000_000_000))
    life.staleFor = fields.staleFor
    life.isServedStale = fields.staleUntil == .max
    life.isImmutable = fields.isImmutable
    life.source = fields.source
    life.heat = fields.heat
    if fields.isOfOneNetwork { life.network = fields.epoch }
    life.isInUse = fields.isInUse
    self.init(
      key: UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(fields.keyLength)),
      body: UnsafeBufferPointer(start: CacheEntry.body(entry), count: Int(fields.bodyLength)),
      storedAt: fields.storedAt, usedAt: Int64(fields.usedAt) << 30, life: life, answers: fields.answers,
      authorities: fields.authorities, responseCode: fields.responseCode)
    hits = fields.hits
    extendedError = fields.extendedError
    rotationStart = fields.rotationStart
    rotationCount = fields.rotationCount
    rotationSize = fields.rotationSize
    isAuthenticated = fields.isAuthenticated
    isAuthoritative = fields.isAuthoritative
    isForEverySubnet = fields.isForEverySubnet
  }

  /// A block for the record, which the caller links or frees. Nil if the parts are inconsistent: the record may come from
  /// a damaged file, and the hot path does not check blocks.
  ///
  /// - Complexity: O(length of the body): the TTLs are located again.
  func makeEntry(_ key: CacheKey, nameLength: Int) -> EntryPointer? {
    let count = Int(answers) + Int(authorities)
    let before = QueryReader.headerLength + nameLength + 4
    let rotationEnd = Int(rotationStart) + Int(rotationSize) * Int(rotationCount)
    guard before + body.count + ResponseWriter.overhead <= Int(UInt16.max), responseCode <= 15,
      count * CacheRecord.shortestRecord <= body.count, rotationEnd <= body.count
    else { return nil }
    let entry = allocate(key, ttlCount: count)
    guard findTTLs(count, CacheEntry.ttlOffsets(entry)) else {
      UnsafeMutableRawPointer(entry).deallocate()
      return nil
    }
    return entry
  }

  /// A block without the offsets of the TTLs, and without the epoch, which is the shard's.
  func allocate(_ key: CacheKey, ttlCount: Int) -> EntryPointer {
    let size = CacheEntry.size(keyLength: key.length, ttlCount: ttlCount, bodyLength: body.count)
    let block = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: MemoryLayout<CacheEntry>.alignment)
    let entry = block.bindMemory(to: CacheEntry.self, capacity: 1)
    entry.initialize(
      to: CacheEntry(
        hash: key.hash, storedAt: storedAt, expiresAt: life.expiry(storedAt: storedAt),
        staleUntil: life.isServedStale ? .max : .min, refreshAt: life.isImmutable ? .max : .min,
        staleFor: life.isImmutable ? .max : life.staleFor, hits: hits, epoch: life.network ?? 0, heat: life.heat,
        usedAt: CacheEntry.stamp(usedAt), keyLength: UInt16(key.length), ttlCount: UInt16(ttlCount),
        bodyLength: UInt16(body.count), answers: answers, authorities: authorities, extendedError: extendedError,
        rotationStart: rotationStart, rotationCount: rotationCount, rotationSize: rotationSize,
        responseCode: responseCode,
        flags: EntryFlags(
          isAuthenticated: isAuthenticated, isAuthoritative: isAuthoritative, isForEverySubnet: isForEverySubnet,
          isImmutable: life.isImmutable, isOfOneNetwork: life.network != nil, isInUse: life.isInUse),
        source: life.source))
    hot_copy(CacheEntry.key(entry), key.octets, key.length)
    if let base = body.baseAddress { hot_copy(CacheEntry.body(entry), base, body.count) }
    return entry
  }

  /// The owner takes at least one octet; type, class, TTL and RDLENGTH take ten.
  private static let shortestRecord = 11

  /// Walks the records of the body; false unless their number equals the counts.
  private func findTTLs(_ count: Int, _ offsets: UnsafeMutablePointer<UInt16>) -> Bool {
    var end = 0
    for index in 0..<count {
      while true {
        guard end < body.count else { return false }
        let length = body[end]
        if length & 0xC0 == 0xC0 {
          end += 2
          break
        }
        guard length < 64 else { return false }
        end += Int(length) + 1
        if length == 0 { break }
      }
      guard end + 10 <= body.count else { return false }
      offsets[index] = UInt16(end + 4)
      end += 10 + (Int(body[end + 8]) << 8 | Int(body[end + 9]))
    }
    return end == body.count
  }
}
