// RevisionTests.swift -- new terms apply to existing entries while other threads use them.

import DNSWire
import MessageCache
import Testing

private func name(_ text: String) -> DomainName { DomainName(text: text)! }

@Suite struct `A revision` {
  private let cache = MessageCache(CacheBounds(maxOctets: 64 << 20, maxEntries: 200_000))
  private let terms = EntryTerms(
    longest: 3600, longestNegative: 3600, staleFor: 86_400, isServedStale: true, isImmutable: true)

  @discardableResult
  private func insert(_ text: String, route: UInt16 = 0, _ change: (inout EntryLife) -> Void = { _ in }) -> OwnedKey {
    let scope = CacheScope(type: 1, dnssecOK: false, checkingDisabled: false, route: route, network: 0)
    let key = OwnedKey(name(text), in: cache, scope)
    var life = EntryLife(lifetime: 100)
    change(&life)
    cache.insert(key.key, .filled(key.name, octets: 40, with: 1), now: 0, life)
    return key
  }

  private func revise(_ routes: [EntryTerms?], lostSources: Set<UInt8> = []) -> Int {
    var revision = CacheRevision(of: cache, RevisedTerms(routes: routes, lostSources: lostSources))
    while !revision.isDone { revision.advance(steps: 3) }
    return revision.removed
  }

  private func isFresh(_ key: OwnedKey, at seconds: Int64) -> Bool {
    cache.peek(key.key, now: seconds * second) != nil
  }

  @Test func `a revision removes the entries of removed routes, and no others`() {
    let kept = [insert("a.example", route: 0), insert("b.example", route: 2)]
    let gone = [insert("a.example", route: 1), insert("c.example", route: 3), insert("d.example", route: 65_535)]
    #expect(revise([terms, nil, terms]) == gone.count)
    #expect(kept.allSatisfy { isFresh($0, at: 99) && !isFresh($0, at: 100) })
    #expect(!gone.contains { isFresh($0, at: 1) })
    #expect(cache.usage.entries == kept.count)
  }

  @Test func `a revision shortens lifetimes and lengthens none`() {
    var short = terms
    short.longest = 10
    let cut = insert("a.example")
    let brief = insert("b.example") { $0.lifetime = 5 }
    #expect(revise([short]) == 0)
    #expect(isFresh(cut, at: 9) && !isFresh(cut, at: 10))
    #expect(isFresh(brief, at: 4) && !isFresh(brief, at: 5))
    #expect(revise([terms]) == 0)
    #expect(!isFresh(cut, at: 10))
  }

  @Test func `a revision ends immutability and the serving of stale data`() {
    let fixed = insert("a.example") {
      ($0.isImmutable, $0.isServedStale, $0.staleFor) = (true, true, 50)
    }
    let stale = insert("b.example") { ($0.isServedStale, $0.staleFor) = (true, 1000) }
    #expect(cache.serve(fixed, now: 5000 * second, servesStale: true)?.lookup.isAnswer == true)
    #expect(cache.serve(stale, now: 101 * second, servesStale: true)?.lookup.isAnswer == true)
    var strict = terms
    (strict.isServedStale, strict.isImmutable, strict.staleFor) = (false, false, 20)
    #expect(revise([strict]) == 0)
    for key in [fixed, stale] {
      #expect(cache.serve(key, now: 101 * second, servesStale: true) == nil)
      #expect(cache.peek(key.key, now: 119 * second, orStale: true) != nil)
      #expect(cache.peek(key.key, now: 121 * second, orStale: true) == nil)
    }
  }

  @Test func `a revision lets answers of a substitute end with their lifetime`() {
    let entries = [UInt8(1), 2].map { source in
      insert("\(source).example") {
        ($0.isImmutable, $0.isServedStale, $0.staleFor, $0.source) = (source == 1, true, 1000, source)
      }
    }
    var strict = terms
    strict.substitute = 1
    #expect(revise([strict]) == 0)
    #expect(entries.map { cache.peek($0.key, now: 99 * second, orStale: true) != nil } == [true, true])
    #expect(entries.map { cache.peek($0.key, now: 101 * second, orStale: true) != nil } == [false, true])
  }

  @Test func `a revision clears sources that no longer exist`() {
    let keys = [insert("a.example") { $0.source = 5 }, insert("b.example") { $0.source = 6 }]
    #expect(revise([terms], lostSources: [5]) == 0)
    #expect(keys.map { cache.state(hash: $0.key.hash)?.source } == [0, 6])
  }

  @Test func `a revision covers every entry while the table grows`() {
    for number in 0..<5000 { insert("n\(number).example", route: UInt16(number % 2)) }
    var revision = CacheRevision(of: cache, RevisedTerms(routes: [terms], lostSources: []))
    var added = 5000
    while !revision.isDone {
      revision.advance(steps: 1)
      for _ in 0..<40 {
        insert("n\(added).example")
        added += 1
      }
    }
    #expect(revision.removed == 2500)
    #expect(cache.usage.entries == added - 2500)
  }
}
