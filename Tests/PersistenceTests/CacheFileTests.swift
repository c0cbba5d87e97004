// CacheFileTests.swift -- what is loaded is what was saved, as old as it is and under today's numbers.

import DNSWire
import Glibc
import MessageCache
@testable import Persistence
import TestSupport
import Testing

@Suite struct `A cache file` {
  private let folder = TemporaryFolder()

  @Test func `a cache file restores every property of an entry`() throws {
    let first = MessageCache.empty()
    first.fill(at: 100)
    #expect(first.useAll(now: 101 * second) == 10)
    let save = try folder.file.save(first, .usual, at: .at(110))
    #expect(save.entries == 5)
    #expect(save.octets == folder.read()?.count)
    #expect(folder.mode() == 0o600)
    #expect(folder.names == ["cache"])
    let target = MessageCache.empty()
    #expect(folder.file.load(into: target, .usual, at: .at(110)) == kept(5))
    let now = 110 * second
    #expect(target.contents(now: now) == first.contents(now: now))
    #expect(target.useAll(now: now) == 10)
  }

  @Test func `AAAA that the daemon withholds is not saved`() throws {
    let first = MessageCache.empty()
    let nodata = ComposedResponse(.noError, extendedError: .filtered)
    first.insert("www.example.com", type: 28, nodata)
    first.insert("www.example.com")
    first.insert("other.example.com", type: 28, ComposedResponse(.noError))
    #expect(try folder.file.save(first, .usual, at: .at(1)).entries == 2)
  }

  @Test func `a large cache file is loaded in the order of use`() throws {
    let first = MessageCache.empty()
    for number in 0..<5_000 {
      first.insert("n\(number).example.com", at: Int64(number) * 2, EntryLife(lifetime: 20_000))
    }
    let save = try folder.file.save(first, .usual, at: .at(10_000))
    #expect(save.octets > 5 * 65_536)
    let target = MessageCache.empty(entries: 100)
    let counts = CacheCounts(loaded: 100, withoutRoom: 4_900)
    #expect(folder.file.load(into: target, .usual, at: .at(10_001)) == .loaded(counts))
    #expect(target.peek("n4999.example.com", at: 10_001) != nil)
    #expect(target.peek("n4900.example.com", at: 10_001) != nil)
    #expect(target.peek("n4899.example.com", at: 10_001) == nil)
  }

  @Test func `ages follow the wall clock, also after a reboot`() throws {
    let first = MessageCache.empty()
    var life = EntryLife(lifetime: 60)
    life.staleFor = 100
    first.insert("www.example.com", at: 1_000, life)
    _ = try folder.file.save(first, .usual, at: .at(1_010))
    // The clock since the start stands at 5 s, 40 s have passed.
    let restarted = CacheTime(boot: 5 * second, wall: epoch + 1_050 * second)
    let target = MessageCache.empty()
    #expect(folder.file.load(into: target, .usual, at: restarted) == kept(1))
    let found = try #require(target.peek("www.example.com", at: 5))
    #expect(found.storedAt == -45 * second)
    #expect(found.expiresAt == 15 * second)
    #expect(target.peek("www.example.com", at: 15) == nil)
    #expect(target.peek("www.example.com", at: 114, orStale: true) != nil)
    #expect(target.peek("www.example.com", at: 115, orStale: true) == nil)
  }

  @Test func `useless entries are neither saved nor loaded`() throws {
    let first = MessageCache.empty()
    var life = EntryLife(lifetime: 60)
    life.staleFor = 100
    first.insert("old.example.com", at: 0, life)
    first.insert("new.example.com", at: 120, life)
    #expect(try folder.file.save(first, .usual, at: .at(159)).entries == 2)
    let target = MessageCache.empty()
    let counts = CacheCounts(loaded: 1, dropped: 1)
    #expect(folder.file.load(into: target, .usual, at: .at(160)) == .loaded(counts))
    #expect(try folder.file.save(first, .usual, at: .at(160)).entries == 1)
  }

  @Test func `entries are expired if the wall clock is behind the time of writing`() throws {
    let first = MessageCache.empty()
    var life = EntryLife(lifetime: 60)
    life.staleFor = 100
    first.insert("www.example.com", at: 1_000, life)
    first.insert("older.example.com", at: 930, life)
    first.insert("plain.example.com", at: 1_000)
    _ = try folder.file.save(first, .usual, at: .at(1_010))
    let behind = CacheTime(boot: 1_020 * second, wall: epoch)
    let target = MessageCache.empty()
    guard case .loaded(let counts) = folder.file.load(into: target, .usual, at: behind) else {
      Issue.record("it was not loaded")
      return
    }
    #expect(counts.loaded == 2)
    #expect(counts.dropped == 1)
    #expect(target.peek("www.example.com", at: 1_020) == nil)
    #expect(target.peek("www.example.com", at: 1_119, orStale: true) != nil)
    #expect(target.peek("www.example.com", at: 1_120, orStale: true) == nil)
    // It had been stale for 20 s when it was written.
    #expect(target.peek("older.example.com", at: 1_099, orStale: true) != nil)
    #expect(target.peek("older.example.com", at: 1_100, orStale: true) == nil)
  }

  @Test func `immutable entries expire with the process`() throws {
    let first = MessageCache.empty()
    first.fill()
    _ = try folder.file.save(first, .usual, at: .at(1))
    let soon = MessageCache.empty()
    #expect(folder.file.load(into: soon, .usual, at: .at(50)) == .loaded(CacheCounts(loaded: 3, dropped: 2)))
    #expect(soon.contents(now: 50 * second).contains { $0.contains("isImmutable: true") })
    let later = MessageCache.empty()
    let terms = EntryTerms.of(staleFor: 3600, isServedStale: false, isImmutable: true)
    let meanings = CacheMeanings(
      routes: CacheMeanings.usual.routes, sources: CacheMeanings.usual.sources, terms: [terms, terms, terms])
    _ = folder.file.load(into: later, meanings, at: .at(400))
    #expect(later.peek("pinned.example.com", route: 2, at: 400) == nil)
    #expect(later.peek("pinned.example.com", route: 2, at: 400, orStale: true) != nil)
    #expect(later.useAll(now: 400 * second) == 0)
    let years = CacheTime(boot: 0, wall: epoch + 40 * 365 * 86_400 * second)
    #expect(folder.file.load(into: .empty(), meanings, at: years) == .loaded(CacheCounts(dropped: 5)))
  }

  @Test func `the current rules for stale data apply to loaded entries`() throws {
    let first = MessageCache.empty()
    var life = EntryLife(lifetime: 60)
    (life.staleFor, life.isServedStale) = (86_400, true)
    first.insert("www.example.com", at: 0, life)
    _ = try folder.file.save(first, .usual, at: .at(1))
    func load(_ terms: EntryTerms?) -> MessageCache {
      let target = MessageCache.empty()
      _ = folder.file.load(
        into: target,
        CacheMeanings(
          routes: CacheMeanings.usual.routes, sources: CacheMeanings.usual.sources, terms: [terms, terms, terms]),
        at: .at(100))
      return target
    }
    #expect(load(nil).useAll(now: 100 * second) > 0)
    let onFailure = load(.of(staleFor: 3600, isServedStale: false, isImmutable: false))
    #expect(onFailure.useAll(now: 100 * second) == 0)
    #expect(onFailure.peek("www.example.com", at: 100, orStale: true) != nil)
    #expect(onFailure.peek("www.example.com", at: 3661, orStale: true) == nil)
    #expect(load(.of(staleFor: 0, isServedStale: false, isImmutable: false)).usage.entries == 0)
  }

  @Test func `LocalDNS's substitute answers are not loaded, since the network may be another`() throws {
    let first = MessageCache.empty()
    for source in [UInt8(1), 2] {
      var life = EntryLife(lifetime: 60)
      (life.staleFor, life.isServedStale, life.source) = (86_400, true, source)
      first.insert("\(source).example.com", at: 0, life)
    }
    let meanings = CacheMeanings(routes: ["x"], sources: [1: "localdns", 2: "p"])
    _ = try folder.file.save(first, meanings, at: .at(1))
    var terms = EntryTerms.of(staleFor: 86_400, isServedStale: true, isImmutable: false)
    terms.substitute = 1
    for second: Int64 in [2, 100] {
      let target = MessageCache.empty()
      _ = folder.file.load(
        into: target, CacheMeanings(routes: meanings.routes, sources: meanings.sources, terms: [terms]),
        at: .at(second))
      #expect(target.peek("1.example.com", at: second, orStale: true) == nil)
      #expect(target.peek("2.example.com", at: second, orStale: true) != nil)
    }
  }

  @Test func `loaded entries get the current numbers of route and source`() throws {
    let first = MessageCache.empty()
    first.insert("default.example.com", route: 0)
    first.insert("corp.example.com", route: 1)
    first.insert("gone.example.com", route: 2)
    var life = EntryLife(lifetime: 300)
    life.source = 2
    first.insert("a.example.com", at: 0, life)
    life.source = 3
    first.insert("b.example.com", at: 0, life)
    let before = CacheMeanings(routes: ["default", "corp", "old"], sources: [0: "", 2: "a", 3: "b"])
    _ = try folder.file.save(first, before, at: .at(1))
    let target = MessageCache.empty()
    let now = CacheMeanings(routes: ["new", "corp", "default"], sources: [0: "", 5: "a"])
    guard case .loaded(let counts) = folder.file.load(into: target, now, at: .at(1)) else {
      Issue.record("it was not loaded")
      return
    }
    #expect(counts.loaded == 3)
    #expect(counts.dropped == 2)
    #expect(target.peek("default.example.com", route: 2, at: 1) != nil)
    #expect(target.peek("corp.example.com", route: 1, at: 1) != nil)
    #expect(target.peek("a.example.com", route: 2, at: 1) != nil)
    var sources = Set<UInt8>()
    target.forEachRecord(now: 0) { record in
      sources.insert(record.life.source)
      return true
    }
    #expect(sources == [0, 5])
  }

  @Test func `equal routes stay separate in a cache file`() throws {
    let first = MessageCache.empty()
    first.insert("first.example.com", route: 0)
    first.insert("second.example.com", route: 1)
    first.insert("third.example.com", route: 2)
    _ = try folder.file.save(first, CacheMeanings(routes: ["x", "x", "x"], sources: [0: ""]), at: .at(1))
    let target = MessageCache.empty()
    _ = folder.file.load(into: target, CacheMeanings(routes: ["y", "x", "x"], sources: [0: ""]), at: .at(1))
    #expect(target.peek("first.example.com", route: 1, at: 1) != nil)
    #expect(target.peek("second.example.com", route: 2, at: 1) != nil)
    #expect(target.usage.entries == 2)
  }

  @Test func `a cache file does not reveal what its routes mean`() throws {
    _ = try folder.file.save(
      .empty(), CacheMeanings(routes: ["account 100000"], sources: [1: "LocalDNS"]), at: .at(1))
    let octets = try #require(folder.read())
    let text = String(decoding: octets, as: UTF8.self)
    #expect(!text.contains("account") && !text.contains("LocalDNS"))
    #expect(octets.starts(with: Array("httpdnsd-cache".utf8)))
  }

  @Test func `a loaded entry does not replace a newer one`() throws {
    let first = MessageCache.empty()
    first.insert("www.example.com", at: 0)
    _ = try folder.file.save(first, .usual, at: .at(1))
    let target = MessageCache.empty()
    target.insert("www.example.com", at: 50)
    let counts = CacheCounts(dropped: 1)
    #expect(folder.file.load(into: target, .usual, at: .at(50)) == .loaded(counts))
    #expect(target.peek("www.example.com", at: 50)?.storedAt == 50 * second)
  }
}

extension EntryTerms {
  fileprivate static func of(staleFor: UInt32, isServedStale: Bool, isImmutable: Bool) -> EntryTerms {
    EntryTerms(
      longest: .max, longestNegative: .max, staleFor: staleFor, isServedStale: isServedStale, isImmutable: isImmutable)
  }
}
