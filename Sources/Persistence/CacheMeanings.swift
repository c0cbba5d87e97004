// CacheMeanings.swift -- numbers in cache entries mean something in one run of the program only: what they stand for.

import Ciphers
import MessageCache

/// What may be done with entries of a route that have expired: a file may come from a time of other rules.
public struct EntryRules: Sendable, Hashable {
  /// Seconds after its expiry for which an entry may be given; 0 for never.
  public var staleFor: UInt32
  /// Whether stale data may be given before a fresh answer has been tried.
  public var servesStaleAtOnce: Bool
  /// Whether entries with data never expire.
  public var isImmutable: Bool

  /// Those rules.
  public init(staleFor: UInt32, servesStaleAtOnce: Bool, isImmutable: Bool) {
    self.staleFor = staleFor
    self.servesStaleAtOnce = servesStaleAtOnce
    self.isImmutable = isImmutable
  }

  /// Whatever the entry itself says.
  public static let any = EntryRules(staleFor: .max, servesStaleAtOnce: true, isImmutable: true)

  /// A life that began in an earlier run of the program, as these rules and its own have it. What never expires does so
  /// while a program runs: in the next one it is fresh for as long as it would have been, and then like any other.
  func limit(_ life: inout EntryLife, isFresh: Bool) {
    life.isImmutable = life.isImmutable && isImmutable && isFresh
    life.isServedStale = life.isServedStale && (servesStaleAtOnce || life.isImmutable)
    life.staleFor = min(life.staleFor, staleFor)
  }
}

/// What the numbers in the entries of a cache stand for at present.
///
/// Two texts are equal where the same entry may be given for both. They are not kept in the file, only digests are.
public struct CacheMeanings: Sendable {
  /// Each route by its number: everything that an answer depends on when it takes that route.
  public var routes: [String]
  /// Each number that `EntryLife.source` may have, and who that is.
  public var sources: [UInt8: String]

  /// What holds for entries of each route, by its number; `.any` for those that are not there.
  public var rules: [EntryRules]

  /// All meanings.
  public init(routes: [String], sources: [UInt8: String], rules: [EntryRules] = []) {
    self.routes = routes
    self.sources = sources
    self.rules = rules
  }

  func rules(of route: UInt16) -> EntryRules { rules.indices.contains(Int(route)) ? rules[Int(route)] : .any }
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
