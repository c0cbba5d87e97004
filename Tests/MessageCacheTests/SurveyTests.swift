// SurveyTests.swift -- a survey visits each entry once; keys are taken apart; removals are reported.

import DNSWire
import MessageCache
import Testing

@Suite struct `A survey` {
  private let cache = MessageCache(CacheBounds(maxOctets: 64 << 20, maxEntries: 200_000))

  private func insert(_ text: String, _ scope: CacheScope = .plain(1), subnet: QueryClientSubnet = QueryClientSubnet())
  {
    let key = OwnedKey(DomainName(text: text)!, in: cache, scope, subnet: subnet)
    cache.insert(key.key, .filled(key.name, octets: 40, with: 1), now: 0, lifetime: 60)
  }

  private func survey(_ each: (CacheRecord, UInt64) -> Void) {
    var survey = CacheSurvey(of: cache)
    while !survey.isDone { survey.advance(steps: 3, each) }
  }

  @Test func `a survey visits each of ten thousand entries once while the table grows`() {
    for number in 0..<10_000 { insert("n\(number).example.com") }
    var seen: [UInt64: Int] = [:]
    var survey = CacheSurvey(of: cache)
    var more = 0
    while !survey.isDone {
      survey.advance(steps: 8) { record, hash in
        if record.key[1] == UInt8(ascii: "n") { seen[hash, default: 0] += 1 }
      }
      for _ in 0..<200 {
        insert("m\(more).example.com")
        more += 1
      }
    }
    #expect(more > 5_000)
    #expect(seen.count == 10_000 && seen.values.allSatisfy { $0 == 1 })
  }

  @Test func `a key is taken apart into its parts`() throws {
    let scopes = [
      CacheScope.plain(28), .plain(CacheKey.everyType),
      CacheScope(type: 65, dnssecOK: true, checkingDisabled: true, route: 0x1234, network: 0xDEAD_BEEF),
    ]
    let subnets = [
      QueryClientSubnet(), QueryClientSubnet(family: 1, sourceLength: 24, high: 0xC000_0200_0000_0000),
      QueryClientSubnet(family: 2, sourceLength: 56, high: 0x2001_0DB8_0102_0300, low: 7),
    ]
    for scope in scopes { for subnet in subnets { insert("www.Example.com", scope, subnet: subnet) } }
    var found: Set<KeyParts> = []
    survey { record, hash in
      let copy = EntryCopy(record, hash: hash)
      if let parts = KeyParts(copy.key) { found.insert(parts) }
      let octets = CacheKey.nameAndType(of: record.key).map(Array.init)
      #expect(octets?.starts(with: DomainName(text: "www.example.com")!.octets) == true && octets?.count == 19)
    }
    #expect(found.count == 9)
    #expect(Set(found.map(\.scope)) == Set(scopes) && Set(found.map(\.subnet)) == Set(subnets))
    #expect(found.allSatisfy { $0.name.text == "www.example.com." })
    for broken in [[], [0], [5, 1, 2], Array(repeating: UInt8(0), count: 11)] as [[UInt8]] {
      #expect(KeyParts(broken) == nil)
    }
  }

  @Test func `a copy of an entry has its lifetime`() {
    var life = EntryLife(lifetime: 60)
    life.staleFor = 100
    let key = OwnedKey(DomainName(text: "a.example")!, in: cache)
    cache.insert(key.key, .filled(key.name, octets: 40, with: 1), now: 5 * second, life)
    life.isImmutable = true
    let other = OwnedKey(DomainName(text: "b.example")!, in: cache)
    cache.insert(other.key, .filled(other.name, octets: 40, with: 1), now: 5 * second, life)
    var copies: [EntryCopy] = []
    survey { copies.append(EntryCopy($0, hash: $1)) }
    let first = copies.first { $0.hash == key.key.hash }
    #expect(first?.expiresAt == 65 * second && first?.usefulUntil == 165 * second)
    #expect(copies.first { $0.hash == other.key.hash }?.usefulUntil == .max)
  }
}

@Suite struct `Entries that go` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 3))
  private final class Departed: @unchecked Sendable {
    var hits: [UInt64: [UInt32]] = [:]
  }

  @Test func `removed entries are reported with their hits, and those without hits are not`() {
    let departed = Departed()
    cache.reportDepartures { departed.hits[$0.hash, default: []].append($0.hits) }
    let keys = (0..<5).map { OwnedKey(.numbered($0), in: cache) }
    func insert(_ number: Int) {
      cache.insert(keys[number].key, .filled(keys[number].name, octets: 40, with: 1), now: 0, lifetime: 60)
    }
    for number in 0..<3 {
      insert(number)
      for _ in 0..<(number * 10) { _ = cache.serve(keys[number], now: 0) }
    }
    // Replaced, evicted (the first has had no hits), removed by its name.
    insert(1)
    #expect(departed.hits == [keys[1].key.hash: [10]])
    _ = cache.serve(keys[1], now: 0)
    insert(3)
    insert(4)
    #expect(departed.hits[keys[2].key.hash] == [20] && departed.hits[keys[0].key.hash] == nil)
    var removal = CacheRemoval(of: .everything, from: cache)
    removal.advance(steps: 1000)
    #expect(departed.hits[keys[1].key.hash] == [10, 1])
    #expect(departed.hits.count == 2)
  }
}
