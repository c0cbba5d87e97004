// FlushLogTests.swift -- what a flush covers, and how it travels.

import DNSWire
import TestSupport
import Testing

@testable import Fleet

private func name(_ text: String) -> DomainName { DomainName(text: text)! }

@Suite struct `A flush` {
  private let sender = [UInt8](repeating: 9, count: 16)

  @Test func `covers what was asked for before it, and nothing else`() {
    var log = FlushLog()
    log.note(.names([name("example.com")], andBelow: false), at: 1_000)
    log.note(.names([name("example.net")], andBelow: true), at: 2_000)
    #expect(log.covers(name("example.com"), stored: 1_000) && !log.covers(name("example.com"), stored: 1_001))
    #expect(!log.covers(name("www.example.com"), stored: 0))
    #expect(log.covers(name("www.example.net"), stored: 2_000) && !log.covers(name("example.org"), stored: 0))
    log.note(.everything, at: 1_500)
    #expect(log.covers(name("example.org"), stored: 1_500) && !log.covers(name("example.org"), stored: 1_501))
    #expect(log.covers(name("a.example.net"), stored: 1_600))
    log.forget(before: 2_001)
    #expect(!log.covers(name("a.example.net"), stored: 1_600))
  }

  @Test func `that can no longer be remembered by name counts for all names`() {
    var log = FlushLog()
    for number in 0..<1_200 { log.note(.names([name("n\(number).example")], andBelow: false), at: Int64(number)) }
    #expect(log.covers(name("n1199.example"), stored: 1_199) && !log.covers(name("other.example"), stored: 200))
    #expect(log.covers(name("n0.example"), stored: 0) && log.covers(name("other.example"), stored: 199))
  }

  @Test func `travels plain and sealed`() throws {
    let notes: [FlushedNames] = [
      .everything, .names([name("example.com")], andBelow: true),
      .names([name("a.example"), name("b.example"), .root], andBelow: false),
    ]
    for secret in [nil, Array("0123456789abcdef0123456789abcdef".utf8)] {
      let keys = FleetKeys(namespace: "n", site: "", secret: secret)
      for names in notes {
        let note = FlushNote(names: names, sender: sender)
        let octets = note.octets(keys)
        #expect(FlushNote(octets, keys) == note)
        for length in octets.indices { #expect(FlushNote(Array(octets[..<length]), keys) == nil) }
        #expect(FlushNote(octets + [0], keys) == nil)
        #expect(FlushNote(octets, FleetKeys(namespace: "n", site: "", secret: Array("another".utf8))) == nil)
      }
    }
  }
}
