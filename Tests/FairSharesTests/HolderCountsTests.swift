// HolderCountsTests.swift -- counts by client against a dictionary.

import DNSWire
import FairShares
import Glibc
import TestSupport
import Testing

@Suite struct HolderCountsTests {
  @Test func `the counts equal those of a dictionary for random changes`() {
    var generator = SeededGenerator(seed: testSeed)
    for things in [1, 3, 16, 200] {
      let counts = HolderCounts(things: things, seed: generator.next())
      let known = (0..<40).map { _ in ClientKey(value: generator.next() | 1) }
      var held: [ClientKey] = []
      for _ in 0..<5000 {
        if held.count < things, Bool.random(using: &generator) {
          let client = known.randomElement(using: &generator)!
          counts.add(client)
          held.append(client)
        } else if let place = held.indices.randomElement(using: &generator) {
          counts.remove(held.remove(at: place))
        }
        let client = known.randomElement(using: &generator)!
        #expect(counts.count(client) == held.count { $0 == client }, "seed \(testSeed)")
      }
    }
  }
}

@Suite struct ShareKeyTests {
  private func key(_ family: sa_family_t, _ octets: [UInt8]) -> ClientKey {
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) { raw in
      raw.storeBytes(of: family, as: sa_family_t.self)
      for (index, octet) in octets.enumerated() { raw[(family == 10 ? 8 : 4) + index] = octet }
      raw[2] = .random(in: 0...255)
    }
    return withUnsafePointer(to: storage) { ClientKey($0) }
  }

  private let prefix: [UInt8] = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 1]

  @Test func `a client is an IPv4 address, regardless of its port and of IPv4-mapping`() {
    let client = key(2, [192, 0, 2, 1])
    #expect(key(2, [192, 0, 2, 1]) == client)
    #expect(key(10, [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, 1]) == client)
    #expect(key(2, [192, 0, 2, 2]) != client)
    #expect(client != .ourselves)
  }

  @Test func `a client is an IPv6 /56`() {
    let client = key(10, prefix + [1] + [UInt8](repeating: 9, count: 8))
    #expect(key(10, prefix + [2] + [UInt8](repeating: 7, count: 8)) == client)
    #expect(key(10, prefix.dropLast() + [2, 1] + [UInt8](repeating: 9, count: 8)) != client)
    #expect(key(10, [UInt8](repeating: 0, count: 15) + [1]) != .ourselves)
  }

  @Test func `names with one owner have one domain key`() {
    func domain(_ text: String) -> DomainKey { DomainKey(of: DomainName(text: text)!) }
    #expect(domain("a.b.example.com") == domain("example.com"))
    #expect(domain("example.com") != domain("example.org"))
    #expect(domain("one.co.uk") != domain("two.co.uk"))
    #expect(domain("4.3.2.192.in-addr.arpa") == domain("9.9.2.192.in-addr.arpa"))
    #expect(domain(".") == domain("."))
  }
}
