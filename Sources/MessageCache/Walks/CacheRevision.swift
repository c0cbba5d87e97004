// CacheRevision.swift -- applies the rules of a new configuration to existing entries while the listeners keep running.
//
// Like a removal it works in steps that hold one lock for the time that a few dozen entries take.

import CHotPath

/// The terms for entries of a route. They only ever shorten the life of an entry.
public struct EntryTerms: Hashable, Sendable {
  /// The longest lifetime of an entry with records, in seconds.
  public var longest: UInt32
  /// The longest lifetime of an entry without records, in seconds.
  public var longestNegative: UInt32
  /// Seconds after its expiry during which an entry may be served.
  public var staleFor: UInt32
  /// Whether an expired entry may be served at once, before a fresh answer arrives.
  public var isServedStale: Bool
  /// Whether an entry may be immutable.
  public var isImmutable: Bool
  /// The source that substitutes another one (fallback): its entries are never immutable or stale.
  public var substitute: UInt8?

  public init(
    longest: UInt32, longestNegative: UInt32, staleFor: UInt32, isServedStale: Bool, isImmutable: Bool,
    substitute: UInt8? = nil
  ) {
    self.longest = longest
    self.longestNegative = longestNegative
    self.staleFor = staleFor
    self.isServedStale = isServedStale
    self.isImmutable = isImmutable
    self.substitute = substitute
  }

  public func terms(of source: UInt8) -> EntryTerms {
    guard source == substitute else { return self }
    var terms = self
    (terms.staleFor, terms.isServedStale, terms.isImmutable) = (0, false, false)
    return terms
  }
}

/// The terms of a new configuration.
public struct RevisedTerms: Sendable {
  /// The terms by route number; entries of a route without terms are removed.
  public var routes: [EntryTerms?]
  /// Sources that no longer exist; their entries continue without a source.
  public var lostSources: Set<UInt8>

  public init(routes: [EntryTerms?], lostSources: Set<UInt8>) {
    self.routes = routes
    self.lostSources = lostSources
  }
}

/// A revision in progress. One thread at a time.
///
/// At the end, all entries that existed at the beginning are revised. Entries inserted meanwhile may be skipped, so their
/// creator must apply the new terms itself.
public struct CacheRevision {
  /// The number of removed entries so far.
  public private(set) var removed = 0
  private let terms: RevisedTerms
  private var isLost = [Bool](repeating: false, count: 256)
  private var walk: CacheWalk

  /// Does nothing before `advance`.
  public init(of cache: MessageCache, _ terms: RevisedTerms) {
    self.terms = terms
    for source in terms.lostSources { isLost[Int(source)] = true }
    walk = CacheWalk(through: cache)
  }

  /// Whether the walk is complete.
  public var isDone: Bool { walk.isDone }

  /// Advances the walk.
  ///
  /// - Parameter most: the number of steps, of 5 to 30 µs each.
  public mutating func advance(steps most: Int = MessageCache.stepsInTurn) {
    walk.advance(steps: most) { shard, walk in
      shard.visit(&walk) { entry in
        guard let terms = terms.routes.terms(of: entry) else {
          shard.discard(entry)
          removed += 1
          return
        }
        if isLost[Int(entry.pointee.source)] { entry.pointee.source = 0 }
        CacheEntry.submit(entry, to: terms.terms(of: entry.pointee.source))
      }
    }
  }
}

extension [EntryTerms?] {
  /// The terms of an entry's route; nil if the route no longer exists, or the key is malformed.
  fileprivate func terms(of entry: EntryPointer) -> EntryTerms? {
    let key = UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(entry.pointee.keyLength))
    guard let route = CacheRecord.nameLength(key).map({ Int(key[$0 + 3]) << 8 | Int(key[$0 + 4]) }), route < count
    else { return nil }
    return self[route]
  }
}

extension CacheEntry {
  fileprivate static func submit(_ entry: EntryPointer, to terms: EntryTerms) {
    let longest = entry.pointee.answers > 0 ? terms.longest : terms.longestNegative
    let end = entry.pointee.storedAt + Int64(longest) * 1_000_000_000
    if end < entry.pointee.expiresAt { entry.pointee.expiresAt = end }
    if !terms.isServedStale, entry.pointee.staleUntil == .max { entry.pointee.staleUntil = .min }
    if entry.pointee.isImmutable, !terms.isImmutable {
      entry.pointee.flags = entry.pointee.flags.withoutImmutable
      entry.pointee.refreshAt = .min
    }
    if !entry.pointee.isImmutable, entry.pointee.staleFor > terms.staleFor { entry.pointee.staleFor = terms.staleFor }
  }
}
