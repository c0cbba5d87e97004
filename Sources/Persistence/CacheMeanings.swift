// CacheMeanings.swift -- numbers in cache entries mean something in one run of the program only: what they stand for.

import Ciphers
import MessageCache

/// What the numbers in the entries of a cache stand for at present.
///
/// Two texts are equal where the same entry may be given for both. They are not kept in the file, only digests are.
public struct CacheMeanings: Sendable {
  /// Each route by its number: everything that an answer depends on when it takes that route.
  public var routes: [String]
  /// Each number that `EntryLife.source` may have, and who that is.
  public var sources: [UInt8: String]

  /// On which terms entries of each route are kept, by its number; where there are none, on those of the file.
  public var terms: [EntryTerms?]

  /// All meanings.
  public init(routes: [String], sources: [UInt8: String], terms: [EntryTerms?] = []) {
    self.routes = routes
    self.sources = sources
    self.terms = terms
  }

  func terms(of route: UInt16) -> EntryTerms? { terms.indices.contains(Int(route)) ? terms[Int(route)] : nil }
}

/// What is kept of a text.
struct Fingerprint: Hashable {
  var high: UInt64
  var low: UInt64

  static let octets = 16

  init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  init(_ text: String) {
    let digest = Digest.sha256(Array(text.utf8))
    high = digest[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = digest[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// Which number of today stands for what a number of the file stood for.
struct NumberMap {
  private var routes: [UInt16?]
  private var sources: [UInt8?]

  init(savedRoutes: [Fingerprint], savedSources: [UInt8: Fingerprint], now meanings: CacheMeanings) {
    var numbers: [Fingerprint: [UInt16]] = [:]
    for (number, text) in meanings.routes.enumerated() {
      numbers[Fingerprint(text), default: []].append(UInt16(clamping: number))
    }
    // Routes that are alike nevertheless have entries of their own: the first stays the first.
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

  /// Today's number of a route; nil where there is no such route any more.
  func route(_ saved: UInt16) -> UInt16? { Int(saved) < routes.count ? routes[Int(saved)] : nil }

  /// Today's number of a source; nil where it is nobody's any more.
  func source(_ saved: UInt8) -> UInt8? { sources[Int(saved)] }
}

extension EntryLife {
  /// The life of an entry that an earlier run of the program has begun. What never expires does so while a program runs: in
  /// the next one it is fresh for as long as it would have been, and then like any other.
  mutating func goOn(_ terms: EntryTerms?, isFresh: Bool) {
    isImmutable = isImmutable && isFresh && terms?.isImmutable ?? true
    let servesStaleAtOnce = terms.map { $0.isServedStale && !$0.isImmutable } ?? true
    isServedStale = isServedStale && (isImmutable || servesStaleAtOnce)
    if let terms { staleFor = min(staleFor, terms.staleFor) }
  }
}
