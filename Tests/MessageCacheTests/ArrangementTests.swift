// ArrangementTests.swift -- the order of addresses changes in place: a bad one goes last, the others rotate, nothing else moves.

import DNSWire
import MessageCache
import Testing

@Suite struct `A bad address` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
  private let name = DomainName(text: "www.example.com")!

  private func insert(_ answers: [ResourceRecord], authorities: [ResourceRecord] = []) throws -> OwnedKey {
    let key = OwnedKey(name, in: cache)
    var life = EntryLife(lifetime: 60)
    life.staleFor = 1000
    life.isServedStale = true
    cache.insert(
      key.key, try #require(ComposedResponse(.noError, to: name, answers: answers, authorities: authorities)), now: 0,
      life)
    return key
  }

  @Test func `an entry with other records keeps its hits and its epoch, and none of them has departed`() throws {
    var departures = 0
    cache.reportDepartures { _ in departures += 1 }
    let key = try insert([.init(owner: name, type: .a, ttl: 60, rdata: [192, 0, 2, 1])])
    for _ in 0..<3 { _ = try served(key) }
    cache.beginEpoch()
    let copy = try #require(cache.copy(hash: key.key.hash))
    let other = ResourceRecord(owner: name, type: .a, ttl: 60, rdata: [192, 0, 2, 2])
    let response = try #require(ComposedResponse(.noError, to: name, answers: [other], authorities: []))
    #expect(cache.replace(copy, with: response))
    #expect(cache.state(hash: key.key.hash)?.hits == 3 && departures == 0)
    // It is of before the change of network still.
    #expect(cache.serve(key, now: 1)?.lookup.wantsRefresh == true)
    #expect(try lastOctets(key) == [2])
  }

  private func served(_ key: OwnedKey, now: Int64 = 0) throws -> [ResourceRecord] {
    try #require(cache.serve(key, now: now, servesStale: true)).records(of: name).answers
  }

  private func lastOctets(_ key: OwnedKey, now: Int64 = 0) throws -> [UInt8] {
    try served(key, now: now).compactMap(\.rdata.last)
  }

  /// Puts an address behind all others.
  private func bad(_ address: [UInt8], hash: UInt64) -> Bool {
    guard let run = cache.addressRun(octets: address.count, hash: hash), run.addresses.count > 1,
      let index = run.addresses.firstIndex(of: address),
      index < run.rotating ?? run.addresses.count - 1
    else { return false }
    var order = run.addresses
    order.append(order.remove(at: index))
    return cache.arrange(order, rotating: (run.rotating ?? 1) - 1, hash: hash)
  }

  private func bad(_ number: UInt8, _ key: OwnedKey) -> Bool { bad([192, 0, 2, number], hash: key.key.hash) }

  @Test(arguments: [1, 2, 3, 4] as [UInt8])
  func `a bad address stays last while the others rotate, fresh and stale`(number: UInt8) throws {
    let key = try insert((1...4).map { .a(name, $0) })
    _ = try served(key)
    #expect(bad(number, key))
    for now in [0, second, 100 * second] {
      var firsts: Set<UInt8> = []
      for _ in 0..<6 {
        let order = try lastOctets(key, now: now)
        #expect(order.last == number && Set(order) == [1, 2, 3, 4])
        firsts.insert(order[0])
      }
      #expect(firsts == Set(1...4).subtracting([number]))
    }
    #expect(!bad(number, key), "it is there already")
  }

  @Test func `a bad address precedes those reported later, until all are bad`() throws {
    let key = try insert((1...3).map { .a(name, $0) })
    #expect(bad(1, key))
    #expect(bad(3, key))
    for _ in 0..<4 { #expect(try lastOctets(key) == [2, 1, 3]) }
    #expect(bad(2, key))
    for _ in 0..<4 { #expect(try lastOctets(key) == [1, 3, 2]) }
    #expect(!bad(1, key) && !bad(2, key))
  }

  @Test func `the next answer ends a demotion, and a demotion counts as a change to save`() throws {
    let key = try insert((1...2).map { .a(name, $0) })
    let before = cache.changes
    #expect(bad(1, key))
    #expect(cache.changes > before)
    _ = try insert((1...2).map { .a(name, $0) })
    #expect(Set(try (0..<4).map { _ in try lastOctets(key)[0] }) == [1, 2])
  }

  @Test func `a bad address moves only within its own name's addresses`() throws {
    let target = DomainName(text: "web.example.net")!
    let alias = ResourceRecord.cname(name, target, ttl: 7)
    let signature = ResourceRecord(
      owner: target, type: RecordType(65_280), ttl: 300, rdata: Array(repeating: 8, count: 40))
    let soa = ResourceRecord(owner: .root, type: .soa, ttl: 77, rdata: [0, 0] + Array(repeating: 9, count: 20))
    // With a signature after the addresses, nothing rotates.
    let addresses = (1...3).map { ResourceRecord.a(target, $0) }
    let key = try insert([alias] + addresses + [signature], authorities: [soa])
    #expect(bad(1, key))
    let records = try #require(cache.serve(key, now: 0)).records(of: name)
    #expect(records.answers == [alias, addresses[1], addresses[2], addresses[0], signature])
    #expect(records.authorities == [soa])
    #expect(!bad(1, key))
  }

  @Test func `a single address, or one of another answer, is not demoted`() throws {
    let key = try insert([.a(name, 1)])
    #expect(!bad(1, key) && !bad(2, key))
    #expect(!bad([192, 0, 2, 1], hash: key.key.hash &+ 1))
    let text = try insert([.txt(name, octets: 20, filledWith: 1)])
    #expect(!bad(1, text))
    let other = DomainName(text: "mail.example.com")!
    let mixed = try insert([.a(other, 1), .a(name, 1), .a(name, 2)])
    #expect(bad(1, mixed))
    #expect(try served(mixed) == [.a(other, 1), .a(name, 2), .a(name, 1)])
  }

  @Test func `a bad IPv6 address goes last, too`() throws {
    let key = try insert((1...3).map { .aaaa(name, $0) })
    #expect(bad([0x20, 1, 0xD, 0xB8] + Array(repeating: 0, count: 11) + [2], hash: key.key.hash))
    for _ in 0..<4 { #expect(try lastOctets(key).last == 2) }
  }

  @Test func `a bad address is last after a restart, too`() throws {
    let key = try insert((1...3).map { .a(name, $0) })
    #expect(bad(2, key))
    let other = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
    cache.forEachRecord(now: 0) { record in
      #expect(other.restore(record, route: 0, now: 0) == .stored)
      return true
    }
    let copy = OwnedKey(name, in: other)
    for _ in 0..<4 {
      let answers = try #require(other.serve(copy, now: 0)).records(of: name).answers
      #expect(answers.last?.rdata.last == 2)
    }
  }
}
