// RotationTests.swift -- each address of a set is first in turn, and nothing else in a response moves.

import DNSWire
import MessageCache
import TestSupport
import Testing

@Suite struct `Rotation` {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
  private let name = DomainName(text: "www.example.com")!

  @Test(arguments: [2, 3, 7, 60])
  func `over n hits each of n addresses is first once, and the set stays the same`(count: Int) throws {
    for type in [RecordType.a, .aaaa] {
      let records = (0..<count).map { number in
        type == .a
          ? ResourceRecord.a(name, UInt8(number), ttl: 100 + UInt32(number))
          : .aaaa(name, UInt8(number), ttl: 100 + UInt32(number))
      }
      let rounds = try hits(3 * count, records)
      for round in 0..<3 {
        let firsts = rounds[(round * count)..<((round + 1) * count)].map { $0[0].rdata.last! }
        #expect(Set(firsts).count == count)
      }
      for answers in rounds {
        let start = Int(answers[0].rdata.last!)
        #expect(answers == Array(records[start...] + records[..<start]))
      }
    }
  }

  @Test func `a chain of aliases does not rotate`() throws {
    let middle = DomainName(text: "a.very.different.name.example.net")!
    let target = DomainName(text: "web.example.com")!
    let chain: [ResourceRecord] = [.cname(name, middle, ttl: 7), .cname(middle, target, ttl: 8)]
    let addresses = (0..<5).map { ResourceRecord.a(target, UInt8($0)) }
    let rounds = try hits(5, chain + addresses)
    for answers in rounds {
      #expect(Array(answers[..<2]) == chain)
      #expect(answers.count == 7)
    }
    #expect(Set(rounds.map { $0[2].rdata }).count == 5)
  }

  @Test func `the authority section does not rotate`() throws {
    let soa = ResourceRecord(owner: .root, type: .soa, ttl: 77, rdata: [0, 0] + Array(repeating: 9, count: 20))
    let key = OwnedKey(name, in: cache)
    let records = (0..<3).map { ResourceRecord.a(name, UInt8($0)) }
    cache.insert(
      key.key, try #require(ComposedResponse(.noError, to: name, answers: records, authorities: [soa])), now: 0,
      lifetime: 9)
    for _ in 0..<3 {
      let served = try #require(cache.serve(key, now: 0)).records(of: name)
      #expect(Set(served.answers.map(\.rdata)).count == 3)
      #expect(served.authorities == [soa])
    }
  }

  @Test func `only addresses rotate, and only the last run of one owner and type`() throws {
    let other = DomainName(text: "mail.example.com")!
    let fixed: [[ResourceRecord]] = [
      [.a(name, 1)],
      [.txt(name, octets: 5, filledWith: 1), .txt(name, octets: 5, filledWith: 2)],
      [.a(name, 1), .a(name, 2), .txt(name, octets: 5, filledWith: 2)],
      [.a(name, 1), .a(other, 2)],
      [.a(name, 1), .aaaa(name, 2)],
      [.a(name, 1), .a(other, 2), .a(other, 3)],
    ]
    for records in fixed {
      for answers in try hits(4, records) { #expect(answers == records) }
    }
    let rounds = try hits(2, [.a(name, 1), .aaaa(name, 2), .aaaa(name, 3)])
    #expect(rounds.map { $0.map { $0.rdata.last! } } == [[1, 2, 3], [1, 3, 2]])
  }

  @Test func `owners that are not just a compression pointer survive`() throws {
    let owners = ["x.example.com", "example.org", "deep.below.www.example.com", "\\193.\\193", "\\200.example.com"]
    for owner in owners.compactMap({ DomainName(text: $0) }) {
      let records = (0..<3).map { ResourceRecord.a(owner, UInt8($0)) }
      for answers in try hits(6, records) {
        #expect(answers.allSatisfy { $0.owner == owner })
        #expect(Set(answers.map(\.rdata)).count == 3)
      }
    }
  }

  @Test func `a response that does not fit does not advance the rotation`() throws {
    let key = OwnedKey(name, in: cache)
    let records = (0..<4).map { ResourceRecord.a(name, UInt8($0)) }
    cache.insert(key.key, try #require(ComposedResponse(.noError, to: name, answers: records)), now: 0, lifetime: 9)
    #expect(try firstAddress(key) == 0)
    #expect(cache.serve(key, now: 0, capacity: 63)?.lookup.kind == .tooLong)
    #expect(try firstAddress(key) == 1)
    #expect(cache.peek(key.key, now: 0) != nil)
    #expect(try firstAddress(key) == 2)
  }

  @Test func `the beginning of a response that does not fit is rotated as the next hit`() throws {
    let key = OwnedKey(name, in: cache)
    let target = DomainName(text: "web.example.com")!
    let soa = ResourceRecord(owner: .root, type: .soa, ttl: 77, rdata: [0, 0] + Array(repeating: 9, count: 20))
    let records = (0..<6).map { ResourceRecord.a(target, UInt8($0)) }
    let response = try #require(
      ComposedResponse(.noError, to: name, answers: [.cname(name, target)] + records, authorities: [soa]))
    for round in 0..<7 {
      cache.insert(key.key, response, now: 0, lifetime: 9)
      for _ in 0..<round { _ = cache.serve(key, now: 0) }
      let beginnings = try (0..<response.body.count).map { capacity in
        let served = try #require(cache.serve(key, now: second, capacity: capacity))
        #expect(served.lookup.kind == .tooLong && served.body.count == capacity)
        return served.body
      }
      let whole = try #require(cache.serve(key, now: second)).body
      for (capacity, beginning) in beginnings.enumerated() {
        // The TTL at the end may not be aged if it is not there as a whole; such a record is not sent.
        let isWithinTTL = response.ttlOffsets.contains { Int($0) < capacity && capacity < Int($0) + 4 }
        let length = isWithinTTL ? capacity - 3 : capacity
        #expect(beginning[..<length] == whole[..<length], "\(capacity) octets in round \(round)")
      }
    }
  }

  private func firstAddress(_ key: OwnedKey) throws -> UInt8? {
    try #require(cache.serve(key, now: 0)).records(of: name).answers.first?.rdata.last
  }

  private func hits(_ count: Int, _ records: [ResourceRecord]) throws -> [[ResourceRecord]] {
    let key = OwnedKey(name, in: cache)
    let response = try #require(ComposedResponse(.noError, to: name, answers: records))
    cache.insert(key.key, response, now: 0, lifetime: 9)
    return try (0..<count).map { _ in try #require(cache.serve(key, now: 0)).records(of: name).answers }
  }
}
