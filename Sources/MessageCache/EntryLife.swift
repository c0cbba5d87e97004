// EntryLife.swift -- how long an entry counts, and what else is remembered of it beside the response.

/// What goes into an entry beside its response.
public struct EntryLife: Hashable, Sendable {
  /// Seconds for which it is fresh.
  public var lifetime: UInt32
  /// Seconds after that for which it may be given as stale data (RFC 8767); 0 for never.
  public var staleFor: UInt32 = 0
  /// Whether it is served stale by itself, while a refresh is called for: otherwise only as `serveStale` allows.
  public var isServedStale = false
  /// Whether it never expires; such an entry calls for no refresh.
  public var isImmutable = false
  /// Who gave it: a number that means something to the caller.
  public var source: UInt8 = 0
  /// What the caller's schedule of refreshes remembers of it.
  public var heat: UInt32 = 0
  /// Whether it is known to be asked for in more seconds than one; the cache finds that out by itself as well.
  public var isInUse = false
  /// Hits that it begins with.
  public var hits: UInt32 = 0
  /// The epoch of the cache in which it was asked for; nil for the present one.
  public var epoch: UInt32?
  /// The network that it counts on alone: elsewhere `find` and `peek` do not see it. Nil where it counts everywhere. Such an
  /// entry calls for no refresh after `beginEpoch`.
  public var network: UInt32?

  /// Fresh for that many seconds, and of no use afterwards.
  public init(lifetime: UInt32) { self.lifetime = lifetime }

  func expiry(storedAt: Int64) -> Int64 { storedAt + Int64(lifetime) * 1_000_000_000 }
}

/// What a schedule of refreshes has to know of an entry.
public struct EntryState: Sendable {
  /// When it was stored, in nanoseconds of the boot-time clock.
  public var storedAt: Int64
  /// When it stops being fresh, in nanoseconds of the boot-time clock.
  public var expiresAt: Int64
  /// Hits since it was stored.
  public var hits: UInt32
  /// As it was inserted.
  public var source: UInt8
  /// As it was inserted.
  public var heat: UInt32
}
