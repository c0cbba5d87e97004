// ConcurrencyTests.swift -- threads that insert, find and remove the same entries never see a partial one.

import DNSWire
import Glibc
import MessageCache
import TestSupport
import Testing

@Suite struct `A cache that threads share` {
  @Test(arguments: [
    CacheBounds(maxOctets: 30_000, maxEntries: 50), CacheBounds(maxOctets: 1 << 20, maxEntries: 20_000),
  ])
  func `a cache shared by threads serves consistent bodies and keeps its bounds`(bounds: CacheBounds) {
    let cache = MessageCache(bounds)
    let keys = (0..<80).map { OwnedKey(.numbered($0), in: cache) }
    let seed = testSeed
    let workers = (0..<2).map { number in
      Worker { Worker.hammer(cache, keys, SeededGenerator(seed: seed &+ UInt64(number)), steps: 15_000) }
    }
    let results = workers.map { $0.join() }
    #expect(results.map(\.torn) == [0, 0])
    #expect(results.allSatisfy { $0.hits > 1000 })
    let usage = cache.usage
    #expect(usage.octets <= bounds.maxOctets)
    #expect(usage.entries <= bounds.maxEntries)
    for key in keys { cache.remove(key.key) }
    #expect(cache.usage.entries == 0)
  }
}

/// A POSIX thread with a result.
private final class Worker: @unchecked Sendable {
  private let body: @Sendable () -> (hits: Int, torn: Int)
  private var result = (hits: 0, torn: 0)
  private var thread = pthread_t()

  init(_ body: @escaping @Sendable () -> (hits: Int, torn: Int)) {
    self.body = body
    pthread_create(
      &thread, nil,
      { context in
        let worker = Unmanaged<Worker>.fromOpaque(context!).takeRetainedValue()
        worker.result = worker.body()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
  }

  func join() -> (hits: Int, torn: Int) {
    pthread_join(thread, nil)
    return result
  }

  /// Bodies are filled with one value throughout, so that a mixture of two shows.
  static func hammer(
    _ cache: MessageCache, _ keys: [OwnedKey], _ generator: SeededGenerator, steps: Int
  ) -> (hits: Int, torn: Int) {
    var random = generator
    var (hits, torn) = (0, 0)
    for step in 0..<steps {
      let key = keys[Int.random(in: 0..<keys.count, using: &random)]
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<6:
        guard let served = cache.serve(key, now: Int64(step), capacity: 1000), served.lookup == .hit else { continue }
        hits += 1
        if Set(served.body[13...]).count > 1 { torn += 1 }
      case 6..<9:
        let octets = Int.random(in: 10...250, using: &random)
        let mark = UInt8.random(in: 0...255, using: &random)
        cache.insert(key.key, .filled(key.name, octets: octets, with: mark), now: Int64(step), lifetime: 100)
      default:
        if random.oneIn(3) { cache.remove(key.key) } else { _ = cache.peek(key.key, now: Int64(step)) }
      }
    }
    return (hits, torn)
  }
}
