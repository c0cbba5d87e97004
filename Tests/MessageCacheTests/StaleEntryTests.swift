// StaleEntryTests.swift -- expired entries: when and how they are served, and when they trigger a refresh.

import DNSWire
import MessageCache
import TestSupport
import Testing

@Suite struct `An entry that has expired` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100, staleTTL: 30))
  private let name = DomainName(text: "www.example.com")!
  private let key: OwnedKey

  init() { key = OwnedKey(name, in: cache) }

  /// Fresh for 10 s, stale for 100 s more.
  private func life(_ change: (inout EntryLife) -> Void = { _ in }) -> EntryLife {
    var life = EntryLife(lifetime: 10)
    life.staleFor = 100
    change(&life)
    return life
  }

  private func keep(_ life: EntryLife, _ code: ResponseCode = .noError, ttl: UInt32 = 300, now: Int64 = 0) throws {
    var response = try #require(
      ComposedResponse(code, to: name, answers: [.a(name, 1, ttl: ttl), .a(name, 2, ttl: 20)]))
    response.extendedError = .filtered
    #expect(cache.insert(key.key, response, now: now, life))
  }

  @Test func `an expired entry is not served by default, and is distinguished from a miss`() throws {
    try keep(life())
    #expect(cache.serve(key, now: 10 * second - 1)?.head.extendedError == 17)
    #expect(cache.serve(key, now: 10 * second, servesStale: true) == nil)
    #expect(cache.peek(key.key, now: 10 * second) == nil)
    #expect(cache.peek(key.key, now: 110 * second - 1, orStale: true)?.answers == 2)
    #expect(cache.peek(key.key, now: 110 * second, orStale: true) == nil)
  }

  @Test func `an expired entry is first reported, then written if nothing fresh was found`() throws {
    try keep(life { $0.isServedStale = true })
    #expect(cache.serve(key, now: 10 * second) == nil)
    let served = try #require(cache.serve(key, now: 10 * second, servesStale: true))
    #expect(served.head.extendedError == 3)
    #expect(try served.records(of: name).answers.map(\.ttl) == [30, 20])
    #expect(cache.serve(key, now: 110 * second - 1, servesStale: true) != nil)
    #expect(cache.serve(key, now: 110 * second, servesStale: true) == nil)
  }

  @Test func `an expired entry triggers a refresh once in half a minute`() throws {
    try keep(life { $0.isServedStale = true })
    var calls: [Int64] = []
    for time in 0..<110
    where cache.serve(key, now: Int64(time) * second, servesStale: true)?.lookup.wantsRefresh == true {
      calls.append(Int64(time))
    }
    #expect(calls == [10, 40, 70, 100])
  }

  @Test func `a stale entry is served without a refresh until the time of serveStale`() throws {
    try keep(life())
    cache.serveStale(key.key, until: 50 * second)
    cache.serveStale(key.key, until: 40 * second)
    for time in 10..<50 {
      let served = try #require(cache.serve(key, now: Int64(time) * second, servesStale: true))
      #expect(!served.lookup.wantsRefresh)
      #expect(served.head.extendedError == 3)
    }
    #expect(cache.serve(key, now: 50 * second, servesStale: true) == nil)
    cache.serveStale(key.key, until: 500 * second)
    #expect(cache.serve(key, now: 110 * second - 1, servesStale: true) != nil)
    #expect(cache.serve(key, now: 110 * second, servesStale: true) == nil)
  }

  @Test func `a stale NXDOMAIN has its own extended error`() throws {
    try keep(life { $0.isServedStale = true }, .nxDomain)
    #expect(cache.serve(key, now: 10 * second, servesStale: true)?.head.extendedError == 19)
  }

  @Test func `an immutable entry never expires, has no extended error and triggers no refresh`() throws {
    try keep(
      life {
        $0.isServedStale = true
        $0.isImmutable = true
      })
    for time in [10, 110, 1 << 30] as [Int64] {
      let served = try #require(cache.serve(key, now: time * second, servesStale: true))
      #expect(served.head.extendedError == 17)
      #expect(!served.lookup.wantsRefresh)
      #expect(Set(try served.records(of: name).answers.map(\.ttl)) == [30, 20])
    }
    cache.beginEpoch()
    #expect(cache.serve(key, now: 5 * second)?.lookup.wantsRefresh == false)
  }

  @Test func `a stale entry that does not fit triggers a refresh too`() throws {
    try keep(life { $0.isServedStale = true })
    let served = try #require(cache.serve(key, now: 10 * second, capacity: 5, servesStale: true))
    #expect(served.lookup.kind == .tooLong)
    #expect(served.lookup.wantsRefresh)
    // The beginning that fits has the TTLs of stale data: two records of 16 octets, TTLs at offset 6.
    let beginning = try #require(cache.serve(key, now: 11 * second, capacity: 31, servesStale: true))
    #expect(beginning.lookup.isStale && !beginning.lookup.wantsRefresh)
    #expect(beginning.body[6..<10].elementsEqual([0, 0, 0, 30]))
    #expect(beginning.body[22..<26].elementsEqual([0, 0, 0, 20]))
  }

  @Test func `the addresses of a stale entry keep rotating`() throws {
    try keep(life { $0.isServedStale = true })
    let firsts = try (8..<14).map { time in
      try #require(cache.serve(key, now: time * second, servesStale: true)).records(of: name).answers[0].rdata.last
    }
    #expect(firsts == [1, 2, 1, 2, 1, 2])
  }

  @Test func `a response that cannot be stored removes the stale entry`() throws {
    try keep(life { $0.isServedStale = true })
    #expect(!cache.insert(key.key, ComposedResponse(.noError), now: 20 * second, lifetime: 0))
    #expect(cache.peek(key.key, now: 20 * second, orStale: true) == nil)
    let small = MessageCache(CacheBounds(maxOctets: 10_000, maxEntries: 100))
    let key = OwnedKey(name, in: small)
    #expect(small.insert(key.key, .filled(name, octets: 10, with: 1), now: 0, life()))
    #expect(!small.insert(key.key, .filled(name, octets: 20_000, with: 1), now: 20 * second, life()))
    #expect(small.peek(key.key, now: 20 * second, orStale: true) == nil)
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `serving stale data does not allocate`() throws {
    try keep(life { $0.isServedStale = true })
    let output = UnsafeMutablePointer<UInt8>.allocate(capacity: 1000)
    defer { output.deallocate() }
    let (cache, key) = (cache, key)
    var served = 0
    var calls = 0
    let looks = {
      var time: Int64 = 10
      while time < 110 {
        var head = ResponseHead()
        let told = cache.find(key.key, now: time * second, into: output, capacity: 1000, &head)
        let found = cache.find(key.key, now: time * second, servesStale: true, into: output, capacity: 1000, &head)
        if told.kind == .stale, found.kind == .hit { served += 1 }
        if found.wantsRefresh { calls += 1 }
        time += 1
      }
    }
    looks()
    #expect((served, calls) == (100, 4))
    #expect(AllocationTrap.run(looks) == .clean)
  }
}

@Suite struct `What an entry remembers` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
  private let name = DomainName(text: "www.example.com")!

  @Test func `an entry has its number of hits and the values given on insertion`() throws {
    let key = OwnedKey(name, in: cache, .plain(28))
    #expect(cache.state(hash: key.key.hash) == nil)
    var life = EntryLife(lifetime: 60)
    life.source = 7
    life.heat = 3
    let response = try #require(ComposedResponse(.noError, to: name, answers: [.aaaa(name, 1)]))
    cache.insert(key.key, response, now: 5, life)
    for hits: UInt32 in 0..<10 {
      let state = try #require(cache.state(hash: key.key.hash))
      #expect(state.hits == hits)
      #expect((state.storedAt, state.expiresAt, state.source, state.heat) == (5, 5 + 60 * second, 7, 3))
      #expect(cache.key(hash: key.key.hash)?.starts(with: name.octets) == true)
      #expect(cache.serve(key, now: 6) != nil)
    }
    // Neither a peek nor a response that does not fit is a hit.
    _ = cache.peek(key.key, now: 6)
    _ = cache.serve(key, now: 6, capacity: 3)
    #expect(cache.state(hash: key.key.hash)?.hits == 10)
    cache.insert(key.key, response, now: 7, life)
    #expect(cache.state(hash: key.key.hash)?.hits == 0)
  }

  @Test func `an entry is found by its hash among many`() throws {
    let keys = (0..<100).map { OwnedKey(.numbered($0), in: cache) }
    for (number, key) in keys.enumerated() {
      var life = EntryLife(lifetime: 60)
      life.heat = UInt32(number)
      cache.insert(key.key, ComposedResponse(.nxDomain), now: 0, life)
    }
    for (number, key) in keys.enumerated() { #expect(cache.state(hash: key.key.hash)?.heat == UInt32(number)) }
    cache.remove(keys[50].key)
    #expect(cache.state(hash: keys[50].key.hash) == nil)
  }

  @Test func `an entry triggers one refresh after each change of network, until it is replaced`() throws {
    let keys = (0..<3).map { OwnedKey(.numbered($0), in: cache) }
    for key in keys { cache.insert(key.key, ComposedResponse(.nxDomain), now: 0, lifetime: 60) }
    func wants(_ number: Int) -> Bool? { cache.serve(keys[number], now: 1)?.lookup.wantsRefresh }
    #expect(wants(0) == false)
    cache.beginEpoch()
    cache.insert(keys[2].key, ComposedResponse(.nxDomain), now: 0, lifetime: 60)
    #expect([wants(0), wants(0), wants(2)] == [true, false, false])
    cache.beginEpoch()
    cache.beginEpoch()
    #expect([wants(0), wants(0), wants(1), wants(1), wants(2)] == [true, false, true, false, true])
  }

  @Test func `a look-up for an answer valid for every subnet does not touch other entries`() throws {
    let key = OwnedKey(name, in: cache)
    for isForAll in [false, true] {
      var response = ComposedResponse(.nxDomain)
      response.isForEverySubnet = isForAll
      cache.insert(key.key, response, now: 0, lifetime: 60)
      cache.beginEpoch()
      #expect((cache.serve(key, now: 1, onlyForEverySubnet: true) != nil) == isForAll)
      #expect(cache.serve(key, now: 1)?.lookup.wantsRefresh == !isForAll)
      #expect(cache.state(hash: key.key.hash)?.hits == (isForAll ? 2 : 1))
    }
  }
}
