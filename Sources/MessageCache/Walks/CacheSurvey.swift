// CacheSurvey.swift -- visits every entry in steps, without changing any.

import CHotPath
import DNSWire

/// A read-only walk through the cache. One thread at a time.
public struct CacheSurvey {
  private var walk: CacheWalk

  /// Does nothing before `advance`.
  public init(of cache: MessageCache) { walk = CacheWalk(through: cache) }

  /// Whether the walk is complete.
  public var isDone: Bool { walk.isDone }

  /// Advances the walk. An entry that exists the whole time is visited once, fresh or not.
  ///
  /// - Parameters:
  ///   - most: the number of steps, of a few dozen entries each.
  ///   - look: gets a record that is valid during the call, and the hash of its key. Called with a lock held: it must be brief
  ///     and must not use the cache.
  public mutating func advance(steps most: Int = MessageCache.stepsInTurn, _ look: (CacheRecord, UInt64) -> Void) {
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
  /// The time of storage in nanoseconds of the boot-time clock.
  public var storedAt: Int64
  /// The approximate time of the last use, by the same clock.
  public var usedAt: Int64
  /// Lifetime, source and other properties that are set on insertion.
  public var life: EntryLife
  /// Hits since it was stored.
  public var hits: UInt32
  /// ANCOUNT.
  public var answers: UInt16
  /// NSCOUNT.
  public var authorities: UInt16
  /// RCODE.
  public var responseCode: ResponseCode
  /// AD.
  public var isAuthenticated: Bool
  /// The Extended DNS Error that goes with it; nil for none.
  public var extendedError: ExtendedError?
  /// Whether it is valid for every client subnet.
  public var isForEverySubnet: Bool

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
    isAuthenticated = record.isAuthenticated
    extendedError =
      record.extendedError == ResponseHead.noExtendedError ? nil : ExtendedError(rawValue: record.extendedError)
    isForEverySubnet = record.isForEverySubnet
  }

  /// The end of its lifetime in nanoseconds of the boot-time clock.
  public var expiresAt: Int64 { life.expiry(storedAt: storedAt) }

  /// The last time at which it may be served as stale data, in nanoseconds of the boot-time clock; `.max` for no limit.
  public var usefulUntil: Int64 { life.usefulUntil(storedAt: storedAt) }
}

extension CacheKey {
  /// The part of a key with QNAME in lower case and QTYPE, or `everyType`; nil if the octets are not a key.
  public static func nameAndType(of key: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
    CacheRecord.nameLength(key).map { UnsafeBufferPointer(rebasing: key[..<($0 + 2)]) }
  }
}

public struct KeyParts: Hashable, Sendable {
  /// QNAME in lower case.
  public var name: DomainName
  /// Type, flags, route and network.
  public var scope: CacheScope
  /// The client subnet; family 0 for none.
  public var subnet: QueryClientSubnet

  /// Takes a key apart; nil if the octets are not a key.
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
