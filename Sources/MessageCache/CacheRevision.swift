// CacheRevision.swift -- goes through what is kept when it is to be kept on other terms, while the listeners go on.
//
// Like a removal it takes steps that hold one lock for as long as a few dozen entries take.

import CHotPath

/// On which terms the entries of a route are kept. An entry never gains by them, it only loses.
public struct EntryTerms: Hashable, Sendable {
  /// The longest that an entry with records may be fresh, in seconds.
  public var longest: UInt32
  /// The same for one without.
  public var longestNegative: UInt32
  /// Seconds after its expiry for which an entry may be given.
  public var staleFor: UInt32
  /// Whether it may be served stale by itself.
  public var isServedStale: Bool
  /// Whether it may be without an end.
  public var isImmutable: Bool
  /// The source that answers in another one's place: its entries end with their lifetimes, whatever the terms are.
  public var substitute: UInt8?

  /// All terms.
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

  /// The terms for entries of that source.
  public func terms(of source: UInt8) -> EntryTerms {
    guard source == substitute else { return self }
    var terms = self
    (terms.staleFor, terms.isServedStale, terms.isImmutable) = (0, false, false)
    return terms
  }
}

/// What counts from now on.
public struct RevisedTerms: Sendable {
  /// By the route's number; entries of a route that has none go.
  public var routes: [EntryTerms?]
  /// Sources that nobody knows any more: their entries are nobody's.
  public var lostSources: Set<UInt8>

  /// Both.
  public init(routes: [EntryTerms?], lostSources: Set<UInt8>) {
    self.routes = routes
    self.lostSources = lostSources
  }
}

/// A revision under way. One thread at a time.
///
/// Each entry that was there at the beginning has been looked at in the end. One that is inserted in between may be left
/// out: it has to be within the terms by itself.
public struct CacheRevision {
  /// How many entries have gone so far.
  public private(set) var removed = 0
  private let cache: MessageCache
  private let terms: RevisedTerms
  private var isLost = [Bool](repeating: false, count: 256)
  private var walks: [TableWalk]
  private var next = 0

  /// Revises nothing yet.
  public init(of cache: MessageCache, _ terms: RevisedTerms) {
    self.cache = cache
    self.terms = terms
    for source in terms.lostSources { isLost[Int(source)] = true }
    walks = Array(repeating: TableWalk(), count: cache.shardCount)
  }

  /// Whether everything has been looked at.
  public var isDone: Bool { walks.allSatisfy(\.isAtEnd) }

  /// Makes some steps, each in another shard than the one before, so that who waits for a lock gets it in between.
  ///
  /// - Parameter most: how many steps; one takes 5 to 30 µs.
  public mutating func advance(steps most: Int) {
    for _ in 0..<most {
      guard let index = walks.indices.map({ (next + $0) % walks.count }).first(where: { !walks[$0].isAtEnd }) else {
        return
      }
      removed += cache.shards[index].takeUnretainedValue().revise(terms.routes, isLost, &walks[index])
      next = (index + 1) % walks.count
    }
  }
}

extension CacheShard {
  /// Buckets that are looked at while the lock is held.
  private static let bucketsPerRevision = 32

  /// Revises the entries of the next buckets; returns how many went.
  fileprivate func revise(_ routes: [EntryTerms?], _ isLost: [Bool], _ walk: inout TableWalk) -> Int {
    hot_mutex_lock(lock)
    defer { hot_mutex_unlock(lock) }
    var count = 0
    for _ in 0..<CacheShard.bucketsPerRevision where !walk.isAtEnd {
      var next = buckets[walk.bucket]
      while let entry = next {
        next = entry.pointee.chain
        let key = UnsafeBufferPointer(start: CacheEntry.key(entry), count: Int(entry.pointee.keyLength))
        let route = CacheRecord.nameLength(key).map { Int(key[$0 + 3]) << 8 | Int(key[$0 + 4]) }
        guard let route, route < routes.count, let terms = routes[route] else {
          discard(entry)
          count += 1
          continue
        }
        if isLost[Int(entry.pointee.source)] { entry.pointee.source = 0 }
        CacheEntry.submit(entry, to: terms.terms(of: entry.pointee.source))
      }
      walk.advance(bucketCount: bucketCount)
    }
    return count
  }
}

extension CacheEntry {
  /// Takes from an entry what the terms do not allow.
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
