// InUseTests.swift -- entries are in use if they were queried in more than one second.

import DNSWire
import MessageCache
import Testing

@Suite struct `An entry is in use` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100, staleTTL: 30))
  private let name = DomainName(text: "www.example.com")!
  private let key: OwnedKey

  init() { key = OwnedKey(name, in: cache) }

  private func keep(now: Int64, _ code: ResponseCode = .noError, _ change: (inout EntryLife) -> Void = { _ in }) throws
  {
    var life = EntryLife(lifetime: 10)
    life.staleFor = 1000
    change(&life)
    let answers: [ResourceRecord] = code == .noError ? [.a(name, 1)] : []
    let response = try #require(ComposedResponse(code, to: name, answers: answers))
    #expect(cache.insert(key.key, response, now: now, life))
  }

  private func isInUse(now: Int64) throws -> Bool { try #require(cache.peek(key.key, now: now, orStale: true)).isInUse }

  @Test func `an entry without hits, or with hits only in its first second, is not in use`() throws {
    try keep(now: 0)
    #expect(try !isInUse(now: second))
    for _ in 0..<5 { _ = cache.serve(key, now: second / 2) }
    #expect(try !isInUse(now: 60 * second))
  }

  @Test func `an entry is in use after a hit in a later second`() throws {
    try keep(now: 0)
    _ = cache.serve(key, now: 3 * second)
    #expect(try isInUse(now: 60 * second))
  }

  @Test func `an entry is in use if it replaces one that is at least a second old`() throws {
    try keep(now: 0)
    try keep(now: second - 1)
    #expect(try !isInUse(now: 2 * second))
    try keep(now: 2 * second)
    #expect(try isInUse(now: 3 * second))
    // And so do those that follow.
    try keep(now: 2 * second + 1)
    #expect(try isInUse(now: 3 * second))
  }

  @Test func `an entry that replaces a negative answer is not in use`() throws {
    try keep(now: 0, .nxDomain)
    try keep(now: 20 * second)
    #expect(try !isInUse(now: 21 * second))
  }

  @Test func `an entry may be created as in use`() throws {
    try keep(now: 0) { $0.isInUse = true }
    #expect(try isInUse(now: second))
  }
}
