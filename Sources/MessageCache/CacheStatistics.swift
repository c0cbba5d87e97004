// CacheStatistics.swift -- how full a cache is, and how busy, in numbers.

/// Numbers about a cache.
public struct CacheStatistics: Sendable, Equatable {
  /// Entries at present, those that have expired and are kept as stale data among them.
  public var entries = 0
  /// Octets at present, tables included.
  public var octets = 0
  /// Entries that there may be.
  public var maxEntries = 0
  /// Octets that there may be.
  public var maxOctets = 0
  /// Responses that were kept so far, each replacement among them, and what a file has brought not.
  public var insertions: UInt64 = 0
  /// Entries that had to make room so far.
  public var evictions: UInt64 = 0

  /// An empty cache without bounds.
  public init() {}
}
