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
    log.record(.names([name("example.com")], andBelow: false), at: 1_000)
    log.record(.names([name("example.net")], andBelow: true), at: 2_000)
    #expect(log.covers(name("example.com"), stored: 1_000) && !log.covers(name("example.com"), stored: 1_001))
    #expect(!log.covers(name("www.example.com"), stored: 0))
    #expect(log.covers(name("www.example.net"), stored: 2_000) && !log.covers(name("example.org"), stored: 0))
    log.record(.everything, at: 1_500)
    #expect(log.covers(name("example.org"), stored: 1_500) && !log.covers(name("example.org"), stored: 1_501))
    #expect(log.covers(name("a.example.net"), stored: 1_600) && !log.covers(name("net"), stored: 1_600))
    // An older one takes nothing back.
    log.record(.names([name("example.net")], andBelow: true), at: 1_550)
    #expect(log.covers(name("example.net"), stored: 2_000))
  }

  @Test func `that can no longer be remembered by name counts for all names`() {
    var log = FlushLog()
    for number in 0..<5_000 { log.record(.names([name("n\(number).example")], andBelow: false), at: Int64(number)) }
    #expect(log.covers(name("n4999.example"), stored: 4_999) && !log.covers(name("n4999.example"), stored: 5_000))
    #expect(log.covers(name("n0.example"), stored: 0) && log.covers(name("other.example"), stored: 2_000))
    #expect(!log.covers(name("other.example"), stored: 2_100))
  }

  @Test func `travels plain and sealed`() throws {
    let notes: [FlushedNames] = [
      .everything, .names([name("example.com")], andBelow: true),
      .names([name("a.example"), name("b.example"), .root], andBelow: false),
    ]
    for secret in [nil, Array("0123456789abcdef0123456789abcdef".utf8)] {
      let keys = FleetKeys(namespace: "n", site: "", secret: secret)
      for names in notes {
        let note = FlushNote(names: names, sender: sender, sentAt: 1_800_000_000_000)
        let octets = note.octets(keys)
        #expect(FlushNote(octets, keys) == note)
        for length in octets.indices { #expect(FlushNote(Array(octets[..<length]), keys) == nil) }
        #expect(FlushNote(octets + [0], keys) == nil)
        #expect(FlushNote(octets, FleetKeys(namespace: "n", site: "", secret: Array("another".utf8))) == nil)
      }
    }
  }

  @Test func `that is added to the stream again flushes no more than the first time`() {
    let note = FlushNote(names: .everything, sender: sender, sentAt: 5_000)
    #expect(note.end(addedAt: 5_003) == 5_003 && note.end(addedAt: 4_990) == 4_990)
    #expect(note.end(addedAt: 999_000) == 6_000)
  }

  @Test func `is new if it is later than all of its sender, whatever others send`() {
    func note(_ sender: Int, _ time: Int64) -> FlushNote {
      FlushNote(names: .everything, sender: (0..<16).map { UInt8(truncatingIfNeeded: sender >> $0) }, sentAt: time)
    }
    var order = NoteOrder()
    func areNew(_ notes: [FlushNote]) -> [Bool] { notes.map { order.insert($0) } }
    #expect(areNew([note(1, 5), note(1, 5), note(1, 4), note(2, 4), note(1, 6)]) == [true, false, false, true, true])
    // Daemons that were forgotten bring nothing back.
    #expect(areNew((0..<1_000).map { note(100 + $0, Int64(10 + $0)) }) == [Bool](repeating: true, count: 1_000))
    #expect(areNew([note(1, 6), note(2, 4), note(1_099, 1_009)]) == [false, false, false])
    #expect(areNew([note(5_000, 2_000), note(1_099, 1_010)]) == [true, true])
  }

  @Test func `is nil with a time out of range`() {
    let keys = FleetKeys(namespace: "n", site: "", secret: nil)
    for time in [-1, Int64.min, Int64.max] {
      #expect(FlushNote(FlushNote(names: .everything, sender: sender, sentAt: time).octets(keys), keys) == nil)
    }
  }

  @Test func `is one of at most three parts of a batch, whatever it has`() {
    var batch = FlushBatch()
    #expect(batch.isEmpty && batch.parts.isEmpty)
    batch.add(.names([name("a.example")], andBelow: false), until: 1)
    batch.add(.names([name("b.example")], andBelow: false), until: 3)
    batch.add(.names([name("c.example")], andBelow: true), until: 2)
    #expect(batch.count == 3 && batch.parts.map(\.until) == [3, 2])
    #expect(batch.parts.allSatisfy { $0.names.covers(name("c.example")) == ($0.until == 2) })
    batch.add(.everything, until: 1)
    #expect(batch.parts.map(\.until) == [1, 3, 2])
    batch.add(.names((0..<20_000).map { name("n\($0).example") }, andBelow: false), until: 4)
    #expect(batch.parts.count == 1 && batch.parts[0].until == 4 && batch.parts[0].names == .everything)
  }
}
