// RemovalTests.swift -- entries are removed by name while other threads use the cache.

import DNSWire
import Glibc
import MessageCache
import TestSupport
import Testing

private func name(_ text: String) -> DomainName { DomainName(text: text)! }

@Suite struct `A removal` {
  private let cache = MessageCache(CacheBounds(maxOctets: 64 << 20, maxEntries: 200_000))

  /// Stores an answer; the key stays valid.
  @discardableResult
  private func insert(
    _ text: String, _ scope: CacheScope = .plain(1), subnet: QueryClientSubnet = QueryClientSubnet()
  ) -> OwnedKey {
    let key = OwnedKey(name(text), in: cache, scope, subnet: subnet)
    cache.insert(key.key, .filled(key.name, octets: 40, with: 1), now: 0, lifetime: 60)
    return key
  }

  private func remove(_ names: NameSelection) -> Int {
    var removal = CacheRemoval(of: names, from: cache)
    while !removal.isDone { removal.advance(steps: 3) }
    return removal.count
  }

  private func isThere(_ key: OwnedKey) -> Bool { cache.peek(key.key, now: second) != nil }

  @Test func `a removal removes all entries of a name, in any case, and no others`() {
    let subnet = QueryClientSubnet(family: 1, sourceLength: 24, high: 0xC000_0200_0000_0000, low: 0)
    let scopes = [
      CacheScope.plain(1), .plain(28), .plain(65), .plain(CacheKey.everyType),
      CacheScope(type: 1, dnssecOK: true, checkingDisabled: true, route: 7, network: 0xDEAD_BEEF),
    ]
    var meant = scopes.map { insert("www.example.com", $0) }
    meant.append(insert("www.example.com", .plain(1), subnet: subnet))
    let others = ["example.com", "a.www.example.com", "wwww.example.com", "www.example.net", "."].map { insert($0) }
    #expect(remove(NameSelection([name("WWW.Example.COM")], andBelow: false)) == meant.count)
    #expect(!meant.contains(where: isThere))
    #expect(others.allSatisfy(isThere))
  }

  @Test func `a removal with andBelow removes the names below, label by label`() {
    let meant = ["example.com", "a.example.com", "b.a.example.com"].map { insert($0) }
    // The tail begins in the middle of a label.
    let others = ["com", "notexample.com", "example.com.net"].map { insert($0) }
    #expect(remove(NameSelection([name("example.com")], andBelow: true)) == meant.count)
    #expect(!meant.contains(where: isThere))
    #expect(others.allSatisfy(isThere))
    #expect(remove(NameSelection([.root], andBelow: true)) == others.count)
  }

  @Test func `a removal removes NXDOMAIN entries that cover a name, and nothing else above it`() {
    let nxdomain = insert("gone.example.com", .plain(CacheKey.everyType))
    let others = [insert("gone.example.com"), insert("a.example.com", .plain(CacheKey.everyType))]
    #expect(remove(NameSelection([name("b.a.gone.example.com")], andBelow: false)) == 1)
    #expect(!isThere(nxdomain))
    #expect(others.allSatisfy(isThere))
  }

  @Test func `a removal removes stale and immutable entries`() {
    var stale = EntryLife(lifetime: 1)
    stale.staleFor = 3600
    var immutable = EntryLife(lifetime: 1)
    immutable.isImmutable = true
    for (number, life) in [stale, immutable].enumerated() {
      let key = OwnedKey(.numbered(number), in: cache)
      cache.insert(key.key, .filled(key.name, octets: 40, with: 1), now: 0, life)
      #expect(cache.peek(key.key, now: 100 * second, orStale: true) != nil)
    }
    #expect(remove(.everything) == 2)
    #expect(cache.usage.entries == 0)
  }

  @Test func `a removal of everything removes a hundred thousand entries in steps, with insertions meanwhile`() {
    for number in 0..<100_000 { insert("n\(number).example.com") }
    var removal = CacheRemoval(of: .everything, from: cache)
    var steps = 0
    while !removal.isDone {
      let before = removal.count
      removal.advance(steps: 64)
      // A step is 32 short buckets: its work does not depend on the size of the cache.
      #expect(removal.count - before <= 64 * 32 * 2)
      insert("m\(steps).example.net")
      steps += 1
    }
    #expect(steps > 16)
    #expect(removal.count >= 100_000)
    for number in stride(from: 0, to: 100_000, by: 101) {
      #expect(!isThere(OwnedKey(.numbered(number), in: cache)))
    }
    // Entries inserted behind the walk remain, and the counts are correct.
    #expect(cache.usage.entries == 100_000 + steps - removal.count)
    #expect(remove(.everything) == 100_000 + steps - removal.count)
    #expect(cache.usage.entries == 0)
  }

  @Test func `a removal counts as a change to save`() {
    insert("a.example")
    let before = cache.changes
    #expect(remove(NameSelection([name("b.example")], andBelow: false)) == 0)
    #expect(cache.changes == before)
    #expect(remove(.everything) == 1)
    #expect(cache.changes > before)
  }

  @Test func `a selection of many names selects what a check of each name does`() {
    var random = SeededGenerator(seed: testSeed)
    func draw() -> DomainName {
      let labels = (0..<Int.random(in: 1...4, using: &random)).map { _ in
        ["a", "b", "ab"].randomElement(using: &random)!
      }
      return name(labels.joined(separator: "."))
    }
    for _ in 0..<200 {
      let names = (0..<Int.random(in: 1...6, using: &random)).map { _ in draw() }
      let (exact, below) = (NameSelection(names, andBelow: false), NameSelection(names, andBelow: true))
      for _ in 0..<50 {
        let other = draw()
        #expect(exact.contains(other) == names.contains(other))
        #expect(below.contains(other) == names.contains { other.octets.suffix($0.octets.count) == $0.octets[...] })
      }
    }
  }

  @Test func `a check takes as long for 256 names as for one`() {
    let looked = (0..<5_000).map { name("host\($0).example.com") }
    func time(_ count: Int) -> Int {
      let selection = NameSelection((0..<count).map { name("other\($0).example.com") }, andBelow: true)
      var begin = timespec()
      var end = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin)
      let found = looked.count { selection.contains($0) }
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
      #expect(found == 0)
      return (end.tv_sec - begin.tv_sec) * 1_000_000_000 + end.tv_nsec - begin.tv_nsec
    }
    _ = time(1)
    // Checking one name after the other took several hundred times as long.
    #expect(time(256) < 8 * time(1))
  }

  @Test func `a selection contains its names`() {
    let exact = NameSelection([name("a.example"), name("b.example")], andBelow: false)
    let below = NameSelection([name("a.example")], andBelow: true)
    #expect(exact.contains(name("B.Example")) && !exact.contains(name("c.b.example")))
    #expect(below.contains(name("x.A.example")) && !below.contains(name("example")))
    #expect(NameSelection.everything.contains(.root))
  }
}
