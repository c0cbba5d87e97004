// SharedBoundsTests.swift -- the bounds of a cache apply to all shards together; no shard has a fixed part.

import DNSWire
import TestSupport
import Testing

@testable import MessageCache

@Suite struct `Shards with one budget` {
  /// Two shards and their common budget.
  private static func shards(_ bounds: CacheBounds) -> (budget: CacheBudget, pair: [CacheShard]) {
    let budget = CacheBudget(bounds)
    return (budget, [CacheShard(budget), CacheShard(budget)])
  }

  /// Only for keys.
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 10))

  private func insert(_ number: Int, into shard: CacheShard, octets: Int = 20) -> Bool {
    let key = OwnedKey(.numbered(number), in: cache)
    return shard.insert(key.key, .filled(key.name, octets: octets, with: 1), now: 0, EntryLife(lifetime: 1))
  }

  @Test func `one shard may use what the other does not`() {
    let (_, pair) = Self.shards(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
    for number in 0..<100 { #expect(insert(number, into: pair[0])) }
    #expect(pair.map(\.usage.entries) == [100, 0])
    // One more evicts an entry.
    #expect(insert(100, into: pair[0]))
    #expect(pair.map(\.usage.entries) == [100, 0])
  }

  @Test func `one shard may use what the other frees`() {
    let (budget, pair) = Self.shards(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
    for number in 0..<100 { #expect(insert(number, into: pair[0])) }
    pair[0].clear()
    for number in 0..<100 { #expect(insert(number, into: pair[1])) }
    #expect(pair.map(\.usage.entries) == [0, 100])
    #expect(!budget.isExceeded)
  }

  @Test func `the shards' common count is exact for random changes`() {
    var random = SeededGenerator(seed: testSeed)
    let cache = MessageCache(CacheBounds(maxOctets: 50_000, maxEntries: 70_000))
    for step in 0..<5000 {
      let key = OwnedKey(.numbered(Int.random(in: 0..<400, using: &random)), in: cache)
      if random.oneIn(5) {
        cache.remove(key.key)
      } else {
        let octets = Int.random(in: 1...1000, using: &random)
        cache.insert(key.key, .filled(key.name, octets: octets, with: 1), now: 0, lifetime: 10)
      }
      guard cache.usage.octets <= 50_000 else {
        Issue.record("step \(step): \(cache.usage)")
        return
      }
    }
    // Octets counted twice would be missing now.
    #expect(cache.usage.octets > 45_000)
  }

  @Test(arguments: [64 << 10, 600_000, 4 << 20])
  func `the shards keep the latest responses, however long they are`(octets: Int) {
    let cache = MessageCache(CacheBounds(maxOctets: octets, maxEntries: 100_000))
    var random = SeededGenerator(seed: testSeed)
    for number in 0..<2000 {
      let key = OwnedKey(.numbered(number), in: cache)
      let size = random.oneIn(2) ? 40_000 : 100
      let isOnKeepList = cache.insert(key.key, .filled(key.name, octets: size, with: 1), now: 0, lifetime: 10)
      guard isOnKeepList, cache.usage.octets <= octets else {
        Issue.record("entry \(number) of \(size) octets: \(cache.usage)")
        return
      }
    }
  }
}
