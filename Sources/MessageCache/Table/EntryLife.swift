// EntryLife.swift -- lifetime, source and other properties of an entry apart from its response.

/// The properties of an entry apart from its response.
public struct EntryLife: Hashable, Sendable {
  /// The lifetime in seconds.
  public var lifetime: UInt32
  /// Seconds after the lifetime during which it may be served as stale data (RFC 8767); 0 for never.
  public var staleFor: UInt32 = 0
  /// Whether it is served stale at once while it is refreshed; otherwise only after `serveStale`.
  public var isServedStale = false
  /// Whether it never expires. Such an entry triggers no refresh.
  public var isImmutable = false
  /// The source of the answer, a number that the caller defines.
  public var source: UInt8 = 0
  /// The state of the caller's refresh schedule.
  public var heat: UInt32 = 0
  /// Whether it is known to be queried in more than one second. The cache also detects this.
  public var isInUse = false
  /// The initial number of hits.
  public var hits: UInt32 = 0
  /// The epoch of the cache in which the question was sent; nil for the current one.
  public var epoch: UInt32?
  /// The only network on which it is valid: on others, `find` and `peek` ignore it, and `beginEpoch` triggers no refresh of
  /// it. Nil for an entry that is valid on all networks.
  public var network: UInt32?

  /// Without a stale period.
  public init(lifetime: UInt32) { self.lifetime = lifetime }

  /// When it stops being fresh, in nanoseconds of the boot-time clock.
  public func expiry(storedAt: Int64) -> Int64 { storedAt + Int64(lifetime) * 1_000_000_000 }

  /// Until when it may be served as stale data, in nanoseconds of the boot-time clock; `.max` for no limit.
  public func usefulUntil(storedAt: Int64) -> Int64 {
    isImmutable || staleFor == .max ? .max : expiry(storedAt: storedAt) + Int64(staleFor) * 1_000_000_000
  }
}

/// The state of an entry for the refresh schedule.
public struct EntryState: Sendable {
  /// The time of storage in nanoseconds of the boot-time clock.
  public var storedAt: Int64
  /// The end of its lifetime in nanoseconds of the boot-time clock.
  public var expiresAt: Int64
  /// Hits since it was stored.
  public var hits: UInt32
  /// The value given on insertion.
  public var source: UInt8
  /// The value given on insertion.
  public var heat: UInt32
  /// Whether it is served after the end of its lifetime as if it were fresh.
  public var isImmutable: Bool
}
