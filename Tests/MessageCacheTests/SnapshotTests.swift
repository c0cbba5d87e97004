// SnapshotTests.swift -- copies all entries of a cache into another one while other threads use both.

import DNSWire
import Glibc
import MessageCache
import TestSupport
import Testing

@Suite struct `Entries that are taken out and put back` {
  private let bounds = CacheBounds(maxOctets: 64 << 20, maxEntries: 200_000)

  @Test func `restored entries answer as before`() throws {
    let first = MessageCache(bounds)
    let target = MessageCache(bounds)
    let name = DomainName(text: "www.Example.com")!
    let alias = DomainName(text: "edge.example.net")!
    var response = try #require(
      ComposedResponse(
        .noError, to: name,
        answers: [.cname(name, alias, ttl: 60), .a(name, 1), .a(name, 2), .a(name, 3)],
        authorities: [.txt(alias, octets: 20, filledWith: 7)]))
    response.isAuthenticated = true
    response.isAuthoritative = true
    response.isForEverySubnet = false
    response.extendedError = .staleAnswer
    var life = EntryLife(lifetime: 60)
    life.staleFor = 3600
    life.isServedStale = true
    life.source = 3
    life.heat = 5
    let key = OwnedKey(name, in: first)
    first.insert(key.key, response, now: 5 * second, life)
    _ = first.serve(key, now: 7 * second)
    var nxdomain = ComposedResponse(.nxDomain)
    nxdomain.isForEverySubnet = true
    let above = OwnedKey(.numbered(1), in: first, .plain(0))
    first.insert(above.key, nxdomain, now: 6 * second, lifetime: 10)
    var forever = EntryLife(lifetime: 60)
    forever.isImmutable = true
    let pinned = OwnedKey(.numbered(2), in: first)
    first.insert(pinned.key, .filled(pinned.name, octets: 300, with: 1), now: 0, forever)
    copy(from: first, to: target, now: 8 * second)
    #expect(records(of: target, now: 8 * second) == records(of: first, now: 8 * second))
    #expect(records(of: first, now: 8 * second).map(\.hits).max() == 1)
    let other = OwnedKey(name, in: target)
    #expect(target.peek(other.key, now: 8 * second)?.isInUse == true)
    for now in [9, 30, 64].map({ $0 * second }) {
      let (before, after) = try (#require(first.serve(key, now: now)), #require(target.serve(other, now: now)))
      #expect(before.body == after.body)
      #expect(before.lookup == after.lookup)
      #expect("\(before.head)" == "\(after.head)")
    }
    #expect(target.usage == first.usage)
  }

  @Test func `every entry is visited exactly once while the table grows`() {
    let cache = MessageCache(bounds)
    let initial = 300
    for number in 0..<initial { insert(number, into: cache) }
    var added = initial
    var seen: [[UInt8]: Int] = [:]
    cache.forEachRecord(now: second) { record in
      seen[Array(record.key), default: 0] += 1
      for _ in 0..<20 where added < 20_000 {
        insert(added, into: cache)
        added += 1
      }
      return true
    }
    #expect(added > 5_000)
    #expect(seen.values.allSatisfy { $0 == 1 })
    for number in 0..<initial { #expect(seen[octets(of: OwnedKey(.numbered(number), in: cache))] == 1) }
  }

  @Test func `copied entries are consistent while other threads replace and use them`() {
    let cache = MessageCache(bounds)
    for number in 0..<2_000 { insert(number, into: cache) }
    let others = Background {
      var random = SeededGenerator(seed: testSeed)
      for _ in 0..<20_000 {
        let number = Int.random(in: 2_000..<4_000, using: &random)
        let key = OwnedKey(.numbered(number), in: cache)
        switch number % 3 {
        case 0: cache.remove(key.key)
        case 1: _ = cache.peek(key.key, now: second)
        default:
          let mark = UInt8.random(in: 0...255, using: &random)
          cache.insert(
            key.key, .filled(key.name, octets: Int.random(in: 10...250, using: &random), with: mark), now: 0,
            lifetime: 100)
        }
      }
    }
    for _ in 0..<10 {
      var seen: [[UInt8]: Int] = [:]
      var torn = 0
      cache.forEachRecord(now: second) { record in
        seen[Array(record.key), default: 0] += 1
        // Name, fixed fields, and the length octet come before octets that are all alike.
        if Set(record.body.dropFirst(13)).count > 1 { torn += 1 }
        return true
      }
      #expect(torn == 0)
      for number in 0..<2_000 { #expect(seen[octets(of: OwnedKey(.numbered(number), in: cache))] == 1) }
    }
    others.join()
  }

  @Test func `restored entries replace and evict no others`() throws {
    let first = MessageCache(bounds)
    for number in 0..<100 { insert(number, into: first) }
    let small = CacheBounds(maxOctets: 64 << 20, maxEntries: 10)
    let target = MessageCache(small)
    let newer = OwnedKey(.numbered(50), in: target)
    target.insert(newer.key, .filled(newer.name, octets: 10, with: 0xEE), now: 0, lifetime: 100)
    let outcomes = copy(from: first, to: target, now: 0)
    #expect(outcomes[.stored] == 9)
    #expect(outcomes[.present] == 1)
    #expect(outcomes[.noRoom] == 90)
    #expect(try #require(target.serve(newer, now: 0)).body.contains(0xEE))
    #expect(target.changes == 1)
  }

  @Test func `restored entries are evicted in order of use, and before later ones`() {
    let first = MessageCache(bounds)
    for number in 0..<20 {
      insert(number, into: first)
      _ = first.serve(OwnedKey(.numbered(number), in: first), now: Int64(number) * 10 * second)
    }
    let target = MessageCache(CacheBounds(maxOctets: 64 << 20, maxEntries: 25))
    insert(100, into: target)
    copy(from: first, to: target, now: 200 * second)
    for number in 101..<115 { insert(number, into: target) }
    // 15 new and 20 old entries are 10 too many.
    for number in 0..<20 {
      let isThere = holds(OwnedKey(.numbered(number), in: target), target)
      #expect(isThere == (number >= 10), "\(number)")
    }
    #expect(holds(OwnedKey(.numbered(100), in: target), target))
  }

  @Test func `expired entries are not restored`() {
    let first = MessageCache(bounds)
    var life = EntryLife(lifetime: 100)
    life.staleFor = 50
    let key = OwnedKey(.numbered(1), in: first)
    first.insert(key.key, .filled(key.name, octets: 10, with: 1), now: 0, life)
    #expect(records(of: first, now: 149 * second).count == 1)
    #expect(records(of: first, now: 150 * second).isEmpty)
    let target = MessageCache(bounds)
    var outcome: CacheRestoration?
    first.forEachRecord(now: 0) { record in
      outcome = target.restore(record, route: 0, now: 150 * second)
      return true
    }
    #expect(outcome == .past)
    #expect(target.usage.entries == 0)
  }

  @Test func `restored entries get the current number of their route`() {
    let first = MessageCache(bounds)
    insert(1, into: first)
    let target = MessageCache(bounds)
    first.forEachRecord(now: 0) { record in
      #expect(record.route == 0)
      #expect(target.restore(record, route: 0x1234, now: 0) == .stored)
      return true
    }
    var scope = CacheScope.plain(1)
    scope.route = 0x1234
    #expect(holds(OwnedKey(.numbered(1), in: target, scope), target))
  }

  @Test func `inconsistent records are not restored`() {
    let cache = MessageCache(bounds)
    let name = DomainName.numbered(1)
    let key = OwnedKey(name, in: cache)
    cache.insert(
      key.key, ComposedResponse(.noError, to: name, answers: [.a(name, 1), .a(name, 2)])!, now: 0, lifetime: 100)
    let changes: [(inout CacheRecord) -> Void] = [
      { $0.answers = 1 }, { $0.answers = 3 }, { $0.authorities = 1 }, { $0.answers = .max },
      { $0.responseCode = 16 }, { $0.rotationCount = 3 }, { $0.rotationStart = 1 }, { $0.rotationSize = 255 },
      { $0.body = UnsafeBufferPointer(rebasing: $0.body.dropLast()) },
      { $0.body = UnsafeBufferPointer(rebasing: $0.body.dropFirst()) },
      { $0.body = UnsafeBufferPointer(rebasing: $0.body.prefix(0)) },
      { $0.key = UnsafeBufferPointer(rebasing: $0.key.dropLast()) },
      { $0.key = UnsafeBufferPointer(rebasing: $0.key.dropFirst()) },
      { $0.key = UnsafeBufferPointer(rebasing: $0.key.prefix(0)) },
    ]
    let target = MessageCache(bounds)
    cache.forEachRecord(now: 0) { record in
      for (number, change) in changes.enumerated() {
        var record = record
        change(&record)
        #expect(target.restore(record, route: 0, now: 0) == .unsound, "change \(number)")
      }
      return true
    }
    #expect(target.usage.entries == 0)
  }

  private func insert(_ number: Int, into cache: MessageCache) {
    let key = OwnedKey(.numbered(number), in: cache)
    cache.insert(key.key, .filled(key.name, octets: 20, with: UInt8(number & 0xFF)), now: 0, lifetime: 1000)
  }

  /// Copies everything, the entries used last first.
  @discardableResult
  private func copy(from first: MessageCache, to target: MessageCache, now: Int64) -> [CacheRestoration: Int] {
    var times: [Int64] = []
    first.forEachRecord(now: now) { record in
      times.append(record.usedAt)
      return true
    }
    var outcomes: [CacheRestoration: Int] = [:]
    for time in Set(times).sorted(by: >) {
      first.forEachRecord(now: now) { record in
        if record.usedAt == time { outcomes[target.restore(record, route: 0, now: now), default: 0] += 1 }
        return true
      }
    }
    return outcomes
  }

  private func records(of cache: MessageCache, now: Int64) -> Set<CopiedRecord> {
    var records = Set<CopiedRecord>()
    cache.forEachRecord(now: now) { record in
      records.insert(CopiedRecord(record))
      return true
    }
    return records
  }

  /// The key is a parameter, so that its octets are there until the end.
  private func holds(_ key: OwnedKey, _ cache: MessageCache) -> Bool { cache.peek(key.key, now: 0) != nil }

  private func octets(of key: OwnedKey) -> [UInt8] {
    Array(UnsafeBufferPointer(start: key.key.octets, count: key.key.length))
  }
}

/// A record that owns its octets.
private struct CopiedRecord: Hashable {
  var key: [UInt8]
  var body: [UInt8]
  var life: EntryLife
  var hits: UInt32
  var numbers: [Int64]
  var flags: [Bool]

  init(_ record: CacheRecord) {
    key = Array(record.key)
    body = Array(record.body)
    life = record.life
    hits = record.hits
    numbers = [record.storedAt, record.usedAt]
    numbers += [
      record.answers, record.authorities, record.extendedError, record.rotationStart, record.rotationCount,
    ].map { Int64($0) }
    numbers += [record.rotationSize, record.responseCode].map { Int64($0) }
    flags = [record.isAuthenticated, record.isAuthoritative, record.isForEverySubnet]
  }
}

/// A POSIX thread.
private final class Background: @unchecked Sendable {
  private let body: @Sendable () -> Void
  private var thread = pthread_t()

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
    pthread_create(
      &thread, nil,
      { context in
        Unmanaged<Background>.fromOpaque(context!).takeRetainedValue().body()
        return nil
      }, Unmanaged.passRetained(self).toOpaque())
  }

  func join() { pthread_join(thread, nil) }
}
