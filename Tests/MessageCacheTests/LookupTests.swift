// LookupTests.swift -- the parts of a key, the head of a hit, and bodies that do not fit.

import DNSWire
import MessageCache
import TestSupport
import Testing

@Suite struct `A look into the cache` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 1000))
  private let name = DomainName(text: "www.example.com")!

  @Test func `a look-up distinguishes type, DO, CD, route, network and subnet, and nothing else`() throws {
    var scopes: [(CacheScope, QueryClientSubnet)] = []
    let subnets = [
      QueryClientSubnet(), QueryClientSubnet(family: 1, sourceLength: 24, high: 0xC000_0200 << 32),
      QueryClientSubnet(family: 1, sourceLength: 24, high: 0xC000_0300 << 32),
      QueryClientSubnet(family: 1, sourceLength: 23, high: 0xC000_0200 << 32),
      QueryClientSubnet(family: 2, sourceLength: 24, high: 0xC000_0200 << 32),
      QueryClientSubnet(family: 2, sourceLength: 96, high: 1, low: 1 << 32),
      QueryClientSubnet(family: 2, sourceLength: 96, high: 1, low: 2 << 32),
    ]
    for type: UInt16 in [0, 1, 28, 256] {
      for bits in 0..<4 {
        for (route, network): (UInt16, UInt32) in [(0, 0), (1, 0), (256, 0), (0, 1), (0, 1 << 24)] {
          let scope = CacheScope(
            type: type, dnssecOK: bits & 1 != 0, checkingDisabled: bits & 2 != 0, route: route, network: network)
          scopes += subnets.map { (scope, $0) }
        }
      }
    }
    let keys = scopes.map { OwnedKey(name, in: cache, $0.0, subnet: $0.1) }
    for (number, key) in keys.enumerated() {
      var response = ComposedResponse(.noError)
      response.extendedError = ExtendedError(rawValue: UInt16(number))
      cache.insert(key.key, response, now: 0, lifetime: 10)
    }
    #expect(cache.usage.entries == scopes.count)
    for (number, scope) in scopes.enumerated() {
      let key = OwnedKey(DomainName(text: "WWW.eXample.COM")!, in: cache, scope.0, subnet: scope.1)
      #expect(cache.serve(key, now: 1)?.head.extendedError == UInt16(number))
    }
    #expect(cache.serve(OwnedKey(DomainName(text: "ww.wexample.com")!, in: cache), now: 1) == nil)
  }

  @Test func `a look-up finds the root, and the longest name with a subnet`() {
    let longest = DomainName(
      octets: Array(repeating: [63] + Array(repeating: 97, count: 63), count: 3).flatMap { $0 }
        + [61] + Array(repeating: 98, count: 61) + [0])!
    #expect(longest.octets.count == 255)
    for name in [DomainName.root, longest] {
      let subnet = QueryClientSubnet(family: 2, sourceLength: 128, high: .max, low: .max)
      let key = OwnedKey(name, in: cache, subnet: subnet)
      #expect(key.key.length <= CacheKey.longest)
      cache.insert(key.key, ComposedResponse(.nxDomain), now: 0, lifetime: 1)
      #expect(cache.serve(key, now: 0)?.head.responseCode == 3)
      #expect(cache.serve(OwnedKey(name, in: cache), now: 0) == nil)
    }
  }

  @Test func `a look-up fills the head from the response`() throws {
    let key = OwnedKey(name, in: cache)
    var response = try #require(
      ComposedResponse(
        .nxDomain, to: name, answers: [.a(name, 1), .a(name, 2)],
        authorities: [.txt(.root, octets: 3, filledWith: 1), .txt(.root, octets: 3, filledWith: 1), .a(name, 1)]))
    response.isAuthenticated = true
    response.isAuthoritative = true
    response.extendedError = .staleAnswer
    cache.insert(key.key, response, now: 0, lifetime: 10)
    let head = try #require(cache.serve(key, now: 1)).head
    #expect(head.responseCode == 3)
    #expect(head.isAuthenticated)
    #expect(head.isAuthoritative)
    #expect(head.extendedError == 3)
    #expect(head.answers == 2)
    #expect(head.authorities == 3)
    #expect(head.bodyLength == response.body.count)
    #expect(head.subnetScope == -1)
    let copy = try #require(cache.peek(key.key, now: 1))
    #expect(copy.responseCode == .nxDomain)
    #expect(copy.answers == 2)
    #expect(copy.authorities == 3)
    #expect(copy.body == response.body)
    #expect((copy.storedAt, copy.expiresAt) == (0, 10 * second))
    cache.insert(key.key, ComposedResponse(.noError), now: 0, lifetime: 10)
    let plain = try #require(cache.serve(key, now: 1)).head
    #expect(plain.extendedError == ResponseHead.noExtendedError)
    #expect(!plain.isAuthenticated && !plain.isAuthoritative)
  }

  @Test func `a look-up writes a body that just fits, and the beginning of a longer one`() throws {
    let key = OwnedKey(name, in: cache)
    for isForAll in [true, false] {
      var response = ComposedResponse.filled(name, octets: 1000, with: 7)
      response.isForEverySubnet = isForAll
      cache.insert(key.key, response, now: 0, lifetime: 10)
      let length = response.body.count
      for capacity in [0, 1, length - 1] {
        let served = try #require(cache.serve(key, now: second, capacity: capacity))
        #expect(served.lookup.kind == .tooLong)
        #expect(served.head.bodyLength == length)
        #expect(served.head.answers == 1)
        #expect(served.body.count == capacity)
        // Its TTL is aged.
        #expect(capacity < 10 || served.body[..<10].elementsEqual(response.body[..<9] + [response.body[9] - 1]))
        #expect(served.body.dropFirst(10) == response.body[..<capacity].dropFirst(10))
      }
      let served = try #require(cache.serve(key, now: 0, capacity: length))
      #expect(served.lookup.kind == .hit)
      #expect((cache.serve(key, now: 0, onlyForEverySubnet: true) != nil) == isForAll)
      #expect(served.body == response.body)
    }
  }

  @Test func `a look-up returns the largest body of a message`() throws {
    let answers = (0..<1).map { _ in ResourceRecord.txt(name, octets: 65_100, filledWith: 0x5A) }
    let response = try #require(ComposedResponse(.noError, to: name, answers: answers))
    let key = OwnedKey(name, in: cache)
    #expect(cache.insert(key.key, response, now: 0, lifetime: 300))
    let served = try #require(cache.serve(key, now: 100 * second))
    #expect(try served.records(of: name, type: 16).answers == [.txt(name, octets: 65_100, filledWith: 0x5A, ttl: 200)])
    let many = (0..<4000).map { ResourceRecord.a(name, UInt8($0 & 0xFF), ttl: 300) }
    cache.insert(key.key, try #require(ComposedResponse(.noError, to: name, answers: many)), now: 0, lifetime: 300)
    let all = try #require(cache.serve(key, now: 300 * second - 1)).records(of: name).answers
    #expect(all.count == 4000)
    #expect(all.allSatisfy { $0.ttl == 1 })
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `a look-up does not allocate, hit or miss`() throws {
    let hit = OwnedKey(name, in: cache)
    let miss = OwnedKey(DomainName(text: "absent.example")!, in: cache)
    let large = OwnedKey(DomainName(text: "large.example")!, in: cache)
    let records = (0..<5).map { ResourceRecord.a(name, UInt8($0)) }
    cache.insert(hit.key, try #require(ComposedResponse(.noError, to: name, answers: records)), now: 0, lifetime: 300)
    cache.insert(large.key, .filled(large.name, octets: 5000, with: 1), now: 0, lifetime: 300)
    let many = OwnedKey(DomainName(text: "many.example")!, in: cache)
    let addresses = (0..<100).map { ResourceRecord.a(many.name, $0) }
    cache.insert(
      many.key, try #require(ComposedResponse(.noError, to: many.name, answers: addresses)), now: 0, lifetime: 300)
    let output = UnsafeMutablePointer<UInt8>.allocate(capacity: 1000)
    defer { output.deallocate() }
    var hits = 0
    // No `for`: without optimisation its iterator allocates.
    let looks = {
      var round: Int64 = 0
      while round < 1000 {
        var head = ResponseHead()
        if cache.find(hit.key, now: round * 100_000_000, into: output, capacity: 1000, &head) == .hit { hits += 1 }
        if cache.find(miss.key, now: 0, into: output, capacity: 1000, &head) != .miss { hits -= 1000 }
        if cache.find(large.key, now: 0, into: output, capacity: 1000, &head).kind != .tooLong { hits -= 1000 }
        if cache.find(many.key, now: 5, into: output, capacity: 1000, &head).kind != .tooLong { hits -= 1000 }
        round += 1
      }
    }
    looks()
    #expect(hits == 1000)
    #expect(AllocationTrap.run(looks) == .clean)
    #expect(AllocationTrap.run { _ = ComposedResponse.filled(name, octets: 10, with: 1) } == .allocated)
  }

  @Test func `a look-up ignores entries of another network, fresh or stale`() {
    let key = OwnedKey(name, in: cache)
    var life = EntryLife(lifetime: 10)
    (life.network, life.staleFor, life.isServedStale) = (1, 3600, true)
    cache.setNetwork(1)
    cache.insert(key.key, ComposedResponse(.noError), now: 0, life)
    cache.beginEpoch()
    func isSeen(at second: Int64) -> [Bool] {
      let now = second * 1_000_000_000
      return [
        cache.serve(key, now: now, servesStale: true) != nil,
        cache.peek(key.key, now: now, orStale: true) != nil,
      ]
    }
    #expect(isSeen(at: 1) == [true, true])
    cache.setNetwork(2)
    #expect(isSeen(at: 1) == [false, false])
    #expect(isSeen(at: 11) == [false, false])
    cache.setNetwork(1)
    #expect(isSeen(at: 11) == [true, true])
    // From a copy as well.
    let other = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 1000), seed: cache.seed)
    cache.forEachRecord(now: 0) { other.restore($0, route: 0, now: 0) == .stored }
    #expect(other.usage.entries == 1)
    #expect(other.peek(key.key, now: 1) == nil)
    other.setNetwork(1)
    #expect(other.peek(key.key, now: 1) != nil)
  }
}
