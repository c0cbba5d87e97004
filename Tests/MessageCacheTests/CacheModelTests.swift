// CacheModelTests.swift -- the cache against a dictionary with a list of uses, and its bounds.

import DNSWire
import MessageCache
import TestSupport
import Testing

@Suite struct `A cache of one shard` {
  @Test(arguments: [CacheBounds(maxOctets: 20_000, maxEntries: 1000), CacheBounds(maxOctets: 1 << 20, maxEntries: 60)])
  func `a cache of one shard behaves like a dictionary with a list of uses`(bounds: CacheBounds) {
    var random = SeededGenerator(seed: testSeed)
    var model = CacheModel(bounds)
    for step in 0..<25_000 {
      model.now += Int64.random(in: 0...second, using: &random)
      let number = Int.random(in: 0..<150, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<10: model.find(number)
      case 10..<18:
        model.insert(number, octets: model.randomSize(&random), lifetime: UInt32.random(in: 0...100, using: &random))
      case 18: model.remove(number)
      default: model.peek(number)
      }
      if step % 250 == 0 { model.compareAll() }
      if random.oneIn(10_000) { model.clear() }
      if let mistake = model.mistake {
        Issue.record("step \(step): \(mistake)")
        return
      }
    }
    #expect(model.hits > 1_500)
    #expect(model.misses > 2_000)
    #expect(model.evictions > 1_000)
    #expect(model.expiries > 500)
  }

  @Test func `the least recently used entry is evicted first, and a peek is no use`() throws {
    let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 3))
    let keys = (0..<4).map { OwnedKey(.numbered($0), in: cache) }
    for key in keys[..<3] { cache.insert(key.key, .filled(key.name, octets: 10, with: 1), now: 0, lifetime: 10) }
    #expect(cache.serve(keys[0], now: 0) != nil)
    #expect(cache.peek(keys[1].key, now: 0) != nil)
    cache.insert(keys[3].key, .filled(keys[3].name, octets: 10, with: 1), now: 0, lifetime: 10)
    #expect(keys.map { cache.peek($0.key, now: 0) != nil } == [true, false, true, true])
  }

  @Test func `an entry lives until the nanosecond before its lifetime is over`() {
    let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 10))
    let key = OwnedKey(.numbered(1), in: cache)
    let response = ComposedResponse.filled(key.name, octets: 10, with: 1)
    #expect(cache.insert(key.key, response, now: 5, lifetime: 7))
    #expect(cache.serve(key, now: 5 + 7 * second - 1) != nil)
    #expect(cache.serve(key, now: 5 + 7 * second) == nil)
    #expect(cache.peek(key.key, now: 5 + 7 * second) == nil)
    #expect(!cache.insert(key.key, response, now: 5, lifetime: 0))
    #expect(cache.insert(key.key, response, now: 5, lifetime: .max))
    #expect(cache.serve(key, now: 5 + Int64(UInt32.max) * second - 1) != nil)
  }

  @Test func `a newer response replaces the older one completely`() throws {
    let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 10))
    let key = OwnedKey(.numbered(1), in: cache)
    for size in [10, 5000, 1, 60_000, 300] {
      cache.insert(key.key, .filled(key.name, octets: size, with: UInt8(size & 0x7F)), now: 0, lifetime: 10)
      let served = try #require(cache.serve(key, now: 1))
      #expect(
        try served.records(of: key.name).answers == [
          .txt(key.name, octets: size, filledWith: UInt8(size & 0x7F), ttl: 300)
        ])
      #expect(cache.usage.entries == 1)
    }
    cache.insert(key.key, ComposedResponse(.nxDomain), now: 0, lifetime: 10)
    #expect(cache.serve(key, now: 1)?.head.responseCode == 3)
    #expect(cache.serve(key, now: 1)?.head.answers == 0)
  }

  @Test func `neither the table nor a large response exceeds the bounds of the cache`() {
    let cache = MessageCache(CacheBounds(maxOctets: 40_000, maxEntries: 1000))
    for number in 0..<300 {
      let key = OwnedKey(.numbered(number), in: cache)
      cache.insert(key.key, ComposedResponse(.nxDomain), now: 0, lifetime: 10)
      #expect(cache.usage.octets <= 40_000)
    }
    let key = OwnedKey(.numbered(1000), in: cache)
    for size in stride(from: 34_000, through: 41_000, by: 7) {
      cache.remove(key.key)
      let isOnKeepList = cache.insert(key.key, .filled(key.name, octets: size, with: 1), now: 0, lifetime: 10)
      guard cache.usage.octets <= 40_000, isOnKeepList == (cache.peek(key.key, now: 1) != nil) else {
        Issue.record("\(size) octets: \(cache.usage)")
        return
      }
    }
  }

  @Test(arguments: [(octets: 64 << 10, response: 8_000), (octets: 256 << 10, response: 60_000)])
  func `a full cache of few octets and many entries stores a long response`(
    size: (octets: Int, response: Int)
  ) throws {
    let cache = MessageCache(CacheBounds(maxOctets: size.octets, maxEntries: 100_000))
    for number in 0..<5_000 {
      let key = OwnedKey(.numbered(number), in: cache)
      let isOnKeepList = cache.insert(key.key, ComposedResponse(.nxDomain), now: 0, lifetime: 10)
      try #require(isOnKeepList, "entry \(number)")
    }
    let key = OwnedKey(.numbered(5_000), in: cache)
    let isOnKeepList = cache.insert(key.key, .filled(key.name, octets: size.response, with: 1), now: 0, lifetime: 10)
    #expect(isOnKeepList)
    #expect(cache.usage.octets <= size.octets)
    #expect(cache.usage.entries > 100)
  }

  @Test func `removal removes an entry, and clearing removes all`() {
    let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
    let keys = (0..<50).map { OwnedKey(.numbered($0), in: cache) }
    let empty = cache.usage.octets
    for key in keys { cache.insert(key.key, .filled(key.name, octets: 10, with: 1), now: 0, lifetime: 10) }
    #expect(cache.remove(keys[7].key))
    #expect(!cache.remove(keys[7].key))
    #expect(cache.serve(keys[7], now: 0) == nil)
    #expect(cache.usage.entries == 49)
    cache.removeAll()
    #expect(cache.usage.entries == 0)
    #expect(cache.usage.octets <= empty * 4)
    #expect(keys.allSatisfy { cache.serve($0, now: 0) == nil })
  }
}

@Suite struct `A cache of many shards` {
  @Test func `a cache of many shards finds its entries, and nothing after clearing`() {
    let cache = MessageCache(CacheBounds(maxOctets: 8 << 20, maxEntries: 70_000))
    let keys = (0..<20_000).map { OwnedKey(.numbered($0), in: cache) }
    for key in keys { cache.insert(key.key, ComposedResponse(.nxDomain), now: 0, lifetime: 10) }
    #expect(keys.allSatisfy { cache.peek($0.key, now: 0) != nil })
    #expect(cache.usage.entries == 20_000)
    cache.removeAll()
    #expect(cache.usage.entries == 0)
    #expect(keys.allSatisfy { cache.peek($0.key, now: 0) == nil })
  }

  @Test(
    arguments: [CacheBounds(maxOctets: 8 << 20, maxEntries: 9000), CacheBounds(maxOctets: 600_000, maxEntries: 70_000)])
  func `a cache of many shards stays within its bounds and keeps the latest responses`(bounds: CacheBounds) {
    let cache = MessageCache(bounds)
    for number in 0..<12_000 {
      let key = OwnedKey(.numbered(number), in: cache)
      let isOnKeepList = cache.insert(key.key, .filled(key.name, octets: 20, with: 1), now: 0, lifetime: 10)
      let usage = cache.usage
      guard isOnKeepList, cache.peek(key.key, now: 0) != nil, usage.entries <= bounds.maxEntries,
        usage.octets <= bounds.maxOctets
      else {
        Issue.record("entry \(number): \(usage)")
        return
      }
    }
    let usage = cache.usage
    #expect(usage.entries > bounds.maxEntries * 9 / 10 || usage.octets > bounds.maxOctets * 9 / 10)
  }
}
