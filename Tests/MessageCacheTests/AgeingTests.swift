// AgeingTests.swift -- TTLs only count down, all of an entry by the same time.

import DNSWire
import MessageCache
import TestSupport
import Testing

@Suite struct `The TTLs of a cached response` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
  private let name = DomainName(text: "www.example.com")!

  @Test func `TTLs count down by whole seconds, each from its own value`() throws {
    let key = OwnedKey(name, in: cache)
    let target = DomainName(text: "web.example.net")!
    let soa = ResourceRecord(owner: .root, type: .soa, ttl: 77, rdata: [0, 0] + Array(repeating: 9, count: 20))
    let response = try #require(
      ComposedResponse(
        .noError, to: name, answers: [.cname(name, target, ttl: 600), .a(target, 1, ttl: 60), .a(target, 2, ttl: 61)],
        authorities: [soa]))
    cache.insert(key.key, response, now: 1_500, lifetime: 60)
    for (elapsed, age) in [(0, 0), (second - 1, 0), (second, 1), (30 * second + 5, 30), (60 * second - 1, 59)] {
      let served = try #require(cache.serve(key, now: 1_500 + Int64(elapsed)))
      let records = try served.records(of: name)
      #expect(records.answers.map { Int($0.ttl) }.sorted() == [60 - age, 61 - age, 600 - age])
      #expect(records.authorities.map { Int($0.ttl) } == [77 - age])
    }
  }

  @Test func `TTLs stop at zero, and do not grow when the clock goes back`() throws {
    let key = OwnedKey(name, in: cache)
    let response = try #require(
      ComposedResponse(
        .noError, to: name, answers: [.a(name, 1, ttl: 0), .txt(name, octets: 4, filledWith: 1, ttl: 5)]))
    cache.insert(key.key, response, now: 100 * second, lifetime: .max)
    #expect(try ttls(key, at: 90 * second) == [0, 5])
    #expect(try ttls(key, at: 104 * second) == [0, 1])
    #expect(try ttls(key, at: 105 * second) == [0, 0])
    #expect(try ttls(key, at: (1 << 32) * second) == [0, 0])
  }

  @Test func `TTLs never grow: TTL(t2) is at most TTL(t1) - (t2 - t1)`() throws {
    var random = SeededGenerator(seed: testSeed)
    for number in 0..<300 {
      let name = DomainName.numbered(number)
      let key = OwnedKey(name, in: cache)
      let count = Int.random(in: 1...8, using: &random)
      let records = (0..<count).map { index in
        ResourceRecord.a(
          name, UInt8(index), ttl: random.oneIn(4) ? UInt32(Int32.max) : .random(in: 0...500, using: &random))
      }
      var now = Int64.random(in: 0...(1 << 50), using: &random)
      cache.insert(
        key.key, try #require(ComposedResponse(.noError, to: name, answers: records)), now: now, lifetime: .max)
      var before = Dictionary(uniqueKeysWithValues: records.map { ($0.rdata, Int64($0.ttl)) })
      for _ in 0..<20 {
        let step = Int64.random(in: 0...(random.oneIn(5) ? 200 : 5) * second, using: &random)
        now += step
        let answers = try #require(cache.serve(key, now: now)).records(of: name).answers
        #expect(answers.count == count)
        for record in answers {
          let previous = try #require(before[record.rdata])
          // The age is in whole seconds since the response was stored, so a step counts with what it completes.
          #expect(Int64(record.ttl) <= max(0, previous - step / second))
          before[record.rdata] = Int64(record.ttl)
        }
      }
    }
  }

  private func ttls(_ key: OwnedKey, at now: Int64) throws -> [UInt32] {
    try #require(cache.serve(key, now: now)).records(of: name).answers.map(\.ttl)
  }
}
