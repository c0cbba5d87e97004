// CacheMeanings.swift -- maps numbers in saved cache entries to those of this run: they are valid for one run only.

import Ciphers
import MessageCache

/// What the numbers in cache entries currently stand for.
///
/// Two texts are equal exactly if the same entry is valid for both. The file holds only their digests.
public struct CacheMeanings: Sendable {
  /// A text per route, by the route's number, with everything that an answer over that route depends on.
  public var routes: [String]
  /// A text per source, by the number in `EntryLife.source`.
  public var sources: [UInt8: String]

  /// The terms of each route's entries, by the route's number; nil to use the terms in the file.
  public var terms: [EntryTerms?]

  /// Without terms, entries use those in the file.
  public init(routes: [String], sources: [UInt8: String], terms: [EntryTerms?] = []) {
    self.routes = routes
    self.sources = sources
    self.terms = terms
  }

  func terms(of route: UInt16) -> EntryTerms? { terms.indices.contains(Int(route)) ? terms[Int(route)] : nil }
}

/// The first half of a text's SHA-256.
struct Fingerprint: Hashable {
  var high: UInt64
  var low: UInt64

  static let octets = 16
}

extension Fingerprint {
  init(_ text: String) {
    let digest = Digest.sha256(Array(text.utf8))
    high = digest[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = digest[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// Maps the route and source numbers of a file to the current ones.
struct NumberMap {
  private var routes: [UInt16?]
  private var sources: [UInt8?]

  init(savedRoutes: [Fingerprint], savedSources: [UInt8: Fingerprint], now meanings: CacheMeanings) {
    var numbers: [Fingerprint: [UInt16]] = [:]
    for (number, text) in meanings.routes.enumerated() {
      numbers[Fingerprint(text), default: []].append(UInt16(clamping: number))
    }
    // Routes with equal texts have separate entries; they map in order, the first to the first.
    var seen: [Fingerprint: Int] = [:]
    routes = savedRoutes.map { saved in
      let place = seen[saved, default: 0]
      seen[saved] = place + 1
      guard let candidates = numbers[saved], place < candidates.count else { return nil }
      return candidates[place]
    }
    var names: [Fingerprint: UInt8] = [:]
    for (number, text) in meanings.sources.sorted(by: { $0.key > $1.key }) { names[Fingerprint(text)] = number }
    sources = Array(repeating: nil, count: 256)
    for (number, saved) in savedSources { sources[Int(number)] = names[saved] }
  }

  /// Returns the current number of a saved route; nil if the route no longer exists.
  func route(_ saved: UInt16) -> UInt16? { Int(saved) < routes.count ? routes[Int(saved)] : nil }

  /// Returns the current number of a saved source; nil if the source no longer exists.
  func source(_ saved: UInt8) -> UInt8? { sources[Int(saved)] }
}

extension EntryLife {
  /// Adjusts the life of an entry from an earlier run. An immutable entry never expires while the daemon runs; after a
  /// restart it stays immutable only if it is still fresh, and otherwise expires like any other.
  mutating func goOn(_ terms: EntryTerms?, isFresh: Bool) {
    isImmutable = isImmutable && isFresh && terms?.isImmutable ?? true
    let servesStaleAtOnce = terms.map { $0.isServedStale && !$0.isImmutable } ?? true
    isServedStale = isServedStale && (isImmutable || servesStaleAtOnce)
    if let terms { staleFor = min(staleFor, terms.staleFor) }
  }
}
