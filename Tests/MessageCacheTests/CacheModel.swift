// CacheModel.swift -- a cache under test with its model: a dictionary and a list of uses.

import DNSWire
import MessageCache
import TestSupport

/// Applies each operation to both and compares the results.
struct CacheModel {
  private struct Entry {
    var octets: Int
    var mark: UInt8
    var expiresAt: Int64
  }

  var now: Int64 = 0
  private(set) var mistake: String?
  private(set) var hits = 0
  private(set) var misses = 0
  private(set) var evictions = 0
  private(set) var expiries = 0
  private let cache: MessageCache
  private let bounds: CacheBounds
  private let keys: [OwnedKey]
  private var entries: [Int: Entry] = [:]
  /// Numbers from the least recently used to the one used last.
  private var uses: [Int] = []
  private var mark: UInt8 = 0

  init(_ bounds: CacheBounds) {
    let cache = MessageCache(bounds)
    self.cache = cache
    self.bounds = bounds
    keys = (0..<150).map { OwnedKey(.numbered($0), in: cache) }
  }

  /// Mostly small; sometimes so large that all other entries must be evicted, or that the response does not fit at all.
  func randomSize(_ random: inout SeededGenerator) -> Int {
    random.oneIn(50)
      ? min(60_000, Int.random(in: bounds.maxOctets * 3 / 4...bounds.maxOctets * 5 / 4, using: &random))
      : Int.random(in: 2...400, using: &random)
  }

  mutating func find(_ number: Int) {
    guard let served = cache.serve(keys[number], now: now) else {
      misses += 1
      if let entry = entries[number] {
        if entry.expiresAt > now { mistake = "\(number) was not found" }
        expiries += 1
      }
      return
    }
    hits += 1
    guard let entry = entries[number], entry.expiresAt > now else { return mistake = "\(number) was found" }
    if served.lookup != .hit || !served.body.contains(entry.mark) || served.body.count < entry.octets {
      mistake = "\(number) has another body"
    }
    use(number)
  }

  mutating func peek(_ number: Int) {
    let isThere = cache.peek(keys[number].key, now: now) != nil
    if isThere != (entries[number].map { $0.expiresAt > now } ?? false) { mistake = "peek differs for \(number)" }
  }

  mutating func insert(_ number: Int, octets: Int, lifetime: UInt32) {
    mark = mark &+ 1 | 1
    let response = ComposedResponse.filled(keys[number].name, octets: octets, with: mark)
    guard cache.insert(keys[number].key, response, now: now, lifetime: lifetime) else {
      // A response that is not stored removes the entry with its key, and must not have evicted others.
      entries[number] = nil
      uses.removeAll { $0 == number }
      if lifetime > 0, octets < bounds.maxOctets / 2 { mistake = "\(number) was not kept" }
      check()
      return
    }
    if lifetime == 0 { mistake = "\(number) was kept" }
    entries[number] = Entry(octets: octets, mark: mark, expiresAt: now + Int64(lifetime) * second)
    use(number)
    evict()
  }

  mutating func remove(_ number: Int) {
    if cache.remove(keys[number].key) != (entries.removeValue(forKey: number) != nil) { mistake = "remove differs" }
    uses.removeAll { $0 == number }
    check()
  }

  mutating func clear() {
    cache.removeAll()
    entries.removeAll()
    uses.removeAll()
    check()
  }

  /// Compares every entry.
  mutating func compareAll() { for number in keys.indices { peek(number) } }

  private mutating func use(_ number: Int) {
    uses.removeAll { $0 == number }
    uses.append(number)
  }

  /// Removes as many of the oldest entries as the cache evicted; none of them may have fitted.
  private mutating func evict() {
    let usage = cache.usage
    var last: Entry?
    while entries.count > usage.entries, let oldest = uses.first {
      last = entries.removeValue(forKey: oldest)
      uses.removeFirst()
      evictions += 1
    }
    // An entry takes its body, its key and about 120 octets, always less than 200.
    if let last, entries.count < bounds.maxEntries, usage.octets + last.octets + 200 <= bounds.maxOctets {
      mistake = "an entry of \(last.octets) octets went although there was room: \(usage)"
    }
    check()
  }

  private mutating func check() {
    let usage = cache.usage
    if usage.entries != entries.count || usage.entries > bounds.maxEntries || usage.octets > bounds.maxOctets {
      mistake = "\(usage), model \(entries.count)"
    }
  }
}
