// CacheStatistics.swift -- size and turnover of a cache.

/// Size and turnover of a cache.
public struct CacheStatistics: Sendable, Equatable {
  /// The current number of entries, including stale ones.
  public var entries = 0
  /// The current octets, including tables.
  public var octets = 0
  /// The limit of entries.
  public var maxEntries = 0
  /// The limit of octets.
  public var maxOctets = 0
  /// Responses inserted so far, including replacements but not restored entries.
  public var insertions: UInt64 = 0
  /// Entries evicted so far.
  public var evictions: UInt64 = 0

  public init() {}
}
