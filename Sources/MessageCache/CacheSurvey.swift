// CacheSurvey.swift -- looks at every entry, in steps, and changes none.

import CHotPath
import DNSWire

/// A look at everything that is kept. One thread at a time.
public struct CacheSurvey {
  private var walk: CacheWalk

  /// Nothing has been looked at yet.
  public init(of cache: MessageCache) { walk = CacheWalk(through: cache) }

  /// Whether everything has been looked at.
  public var isDone: Bool { walk.isDone }

  /// Makes some steps; each entry that is there the whole time comes once, fresh or not.
  ///
  /// - Parameters:
  ///   - most: how many steps; one looks at a few dozen entries.
  ///   - look: gets a record that is valid during the call, and the hash of its key. A lock is held: it must be brief,
  ///     and must not use the cache.
  public mutating func advance(steps most: Int, _ look: (CacheRecord, UInt64) -> Void) {
    walk.advance(steps: most) { shard, walk in
      shard.visit(&walk) { look(CacheRecord($0), $0.pointee.hash) }
    }
  }
}

/// A copy of an entry, with its own octets.
public struct EntryCopy: Sendable {
  /// The octets of the key.
  public var key: [UInt8]
  /// The hash of the key.
  public var hash: UInt64
  /// Answer and authority sections, TTLs as stored.
  public var body: [UInt8]
  /// When it was stored, in nanoseconds of the boot-time clock.
  public var storedAt: Int64
  /// When it was last used, about, by the same clock.
  public var usedAt: Int64
  /// How long it counts, and who gave it.
  public var life: EntryLife
  /// Hits since it was stored.
  public var hits: UInt32
  /// ANCOUNT.
  public var answers: UInt16
  /// NSCOUNT.
  public var authorities: UInt16
  /// RCODE.
  public var responseCode: ResponseCode

  /// Copies a record.
  public init(_ record: CacheRecord, hash: UInt64) {
    key = Array(record.key)
    self.hash = hash
    body = Array(record.body)
    storedAt = record.storedAt
    usedAt = record.usedAt
    life = record.life
    hits = record.hits
    answers = record.answers
    authorities = record.authorities
    responseCode = ResponseCode(rawValue: UInt16(record.responseCode))
  }

  /// When it stops being fresh, in nanoseconds of the boot-time clock.
  public var expiresAt: Int64 { life.expiry(storedAt: storedAt) }

  /// Until when it may be given as stale data, in nanoseconds of the boot-time clock; `.max` for good.
  public var usefulUntil: Int64 {
    life.isImmutable || life.staleFor == .max ? .max : expiresAt + Int64(life.staleFor) * 1_000_000_000
  }
}

extension CacheKey {
  /// The octets of a key that are QNAME in lower case and QTYPE, or `everyType`; nil where the octets are no key.
  public static func nameAndType(of key: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
    CacheRecord.nameLength(key).map { UnsafeBufferPointer(rebasing: key[..<($0 + 2)]) }
  }
}

/// Everything that a key says.
public struct KeyParts: Hashable, Sendable {
  /// QNAME in lower case.
  public var name: DomainName
  /// Type, flags, route and network.
  public var scope: CacheScope
  /// The client's subnet; family 0 for none.
  public var subnet: QueryClientSubnet

  /// The parts of a key's octets; nil where they are none.
  public init?(_ key: [UInt8]) {
    guard let length = key.withUnsafeBufferPointer({ CacheRecord.nameLength($0) }) else { return nil }
    let end = length + CacheKey.fixedLength
    guard let (name, scope) = CacheScope.parts(of: Array(key[..<end])) else { return nil }
    self.name = name
    self.scope = scope
    subnet = QueryClientSubnet()
    guard key.count > end else { return }
    func number(at start: Int) -> UInt64 { key[start..<(start + 8)].reduce(0) { $0 << 8 | UInt64($1) } }
    subnet = QueryClientSubnet(
      family: UInt16(key[end]), sourceLength: key[end + 1], high: number(at: end + 2), low: number(at: end + 10))
  }
}
