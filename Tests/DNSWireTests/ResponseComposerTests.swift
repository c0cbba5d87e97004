// ResponseComposerTests.swift -- composed bodies: compressed owners, TTL offsets, rotation, and size limits.

import DNSWire
import TestSupport
import Testing

@Suite struct `The composer of responses` {
  private let name = DomainName(text: "www.example.com")!

  @Test func `the response composer writes QNAME as an owner as a pointer to the question`() throws {
    let response = try compose([a(name, 1), a(DomainName(text: "WWW.Example.COM")!, 2)])
    #expect(response.body.count == 2 * 16)
    #expect(response.body[0...1].elementsEqual([0xC0, 12]))
    #expect(response.body[16...17].elementsEqual([0xC0, 12]))
    #expect(response.ttlOffsets == [6, 22])
    #expect((response.answers, response.authorities) == (2, 0))
  }

  @Test func `the response composer writes parents of known names and targets of aliases as pointers`() throws {
    let target = DomainName(text: "edge.cdn.example.net")!
    let zone = DomainName(text: "Example.com")!
    let sibling = DomainName(text: "mail.example.com")!
    let response = try compose(
      [cname(name, target), a(target, 1), a(sibling, 2), a(sibling, 3)],
      authorities: [soa(zone), soa(DomainName(text: "net")!)])
    let rdataOfAlias = 2 + 10 + target.octets.count
    // A pointer and 14 octets; one label and a pointer; a pointer to that; pointers to the parents.
    let addresses = 16 + (5 + 2 + 14) + 16
    let authorities = 2 * (2 + 10 + 22)
    #expect(response.body.count == rdataOfAlias + addresses + authorities)
    try expectSame(
      response, name, [cname(name, target), a(target, 1), a(sibling, 2), a(sibling, 3)],
      [soa(zone), soa(DomainName(text: "net")!)])
  }

  @Test func `the response composer records the offset of each TTL and the lowest TTL`() throws {
    var records = (0..<5).map { a(name, UInt8($0)) }
    for (index, ttl) in [500, 30, 0x7FFF_FFFF, 31, 30].enumerated() { records[index].ttl = UInt32(ttl) }
    let response = try compose(records, authorities: [soa(.root, ttl: 29)])
    #expect(response.lowestTTL == 29)
    let ttls = response.ttlOffsets.map { offset in
      response.body[Int(offset)..<(Int(offset) + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }
    #expect(ttls == [500, 30, 0x7FFF_FFFF, 31, 30, 29])
    #expect(ComposedResponse(.nxDomain).lowestTTL == .max)
    #expect(ComposedResponse(.nxDomain).body.isEmpty)
  }

  @Test func `the response composer marks the last run of addresses for rotation`() throws {
    let target = DomainName(text: "a.example.org")!
    let chain = cname(name, target)
    #expect(try compose([a(name, 1)]).rotation.count == 0)
    #expect(rotation(try compose([a(name, 1), a(name, 2)])) == [0, 16, 2])
    #expect(rotation(try compose([chain, a(target, 1), a(target, 2), a(target, 3)])) == [12 + 15, 16, 3])
    #expect(rotation(try compose([chain, aaaa(target, 1), aaaa(target, 2)])) == [27, 28, 2])
    #expect(try compose([a(name, 1), a(name, 2), chain]).rotation.count == 0)
    #expect(try compose([a(name, 1), a(target, 2), a(target, 3)]).rotation.count == 0)
    #expect(rotation(try compose([aaaa(name, 1), a(name, 2), a(name, 3)])) == [28, 16, 2])
  }

  @Test func `addresses whose owner is not just a pointer do not rotate`() throws {
    for text in ["x.example.com", "\\193", "\\193.\\192", "a.\\200", "example.net"] {
      let owner = try #require(DomainName(text: text))
      let response = try compose([a(owner, 1), a(owner, 2), a(owner, 3)])
      #expect(response.rotation.count == 0, "\(text)")
      try expectSame(response, name, [a(owner, 1), a(owner, 2), a(owner, 3)], [])
    }
    let odd = ResourceRecord(owner: name, type: .a, ttl: 1, rdata: Array(repeating: 1, count: 300))
    #expect(try compose([odd, odd]).rotation.count == 0)
    #expect(try compose([a(name, 1), ResourceRecord(owner: name, type: .a, ttl: 1, rdata: [1])]).rotation.count == 0)
  }

  @Test func `the response composer composes 60 addresses of a name and of the root`() throws {
    for owner in [name, .root] {
      let records = (0..<60).map { a(owner, UInt8($0)) }
      let response = try #require(ComposedResponse(.noError, to: owner, answers: records))
      #expect(response.body.count == 60 * (owner.isRoot ? 15 : 16))
      try expectSame(response, owner, records, [])
    }
  }

  @Test func `the response composer composes a TXT record of 5.2 kB`() throws {
    let strings = (0..<20).flatMap { number in [255] + [UInt8](repeating: 97 + UInt8(number), count: 255) }
    let record = ResourceRecord(
      owner: name, type: .txt, ttl: 60, rdata: strings + [79] + [UInt8](repeating: 65, count: 79))
    #expect(record.rdata.count == 5200)
    try expectSame(try compose([record]), name, [record], [])
  }

  @Test func `a response over 65,535 octets is refused, and one that just fits is composed`() throws {
    let room = 65_535 - 12 - name.octets.count - 4 - ResponseWriter.overhead
    let fixed = 2 + 10
    for (extra, fits) in [(0, true), (1, false), (300, false)] {
      let record = ResourceRecord(
        owner: name, type: RecordType(65_280), ttl: 1, rdata: Array(repeating: 7, count: room - fixed + extra))
      let response = ComposedResponse(.noError, to: name, answers: [record])
      #expect((response != nil) == fits)
      if let response { try expectSame(response, name, [record], []) }
    }
    let huge = ResourceRecord(owner: name, type: .txt, ttl: 1, rdata: Array(repeating: 0, count: 65_536 + 10))
    #expect(ComposedResponse(.noError, to: name, answers: [huge]) == nil)
    #expect(ComposedResponse(.noError, to: name, answers: [huge, huge, a(name, 1)]) == nil)
    #expect(ComposedResponse(.noError, to: name, answers: Array(repeating: a(name, 1), count: 70_000)) == nil)
    #expect(ComposedResponse(.noError, to: name, answers: Array(repeating: a(.root, 1), count: 70_000)) == nil)
  }

  @Test func `the response composer uses no pointer beyond 14 bits`() throws {
    let filler = ResourceRecord(
      owner: .root, type: RecordType(65_280), ttl: 1, rdata: Array(repeating: 1, count: 0x4000))
    let far = DomainName(text: "far.away.example.org")!
    let records = [
      filler, a(far, 1), a(far, 2), cname(far, name), a(DomainName(text: "x.far.away.example.org")!, 3), a(name, 4),
    ]
    try expectSame(try compose(records), name, records, [])
  }

  @Test func `our parser and dnspython read random composed answers as the same records`() throws {
    var random = SeededGenerator(seed: testSeed)
    var answers: [RandomAnswer] = []
    for _ in 0..<3_000 { answers.append(RandomAnswer(&random)) }
    let messages = try answers.map { try message($0.response(), $0.name) }
    let verdicts = try IndependentParser.verdicts(on: messages)
    for (answer, (octets, verdict)) in zip(answers, zip(messages, verdicts)) {
      try expectSame(answer.response(), answer.name, answer.answers, answer.authorities)
      let expected = answer.answers.map { line(1, $0) } + answer.authorities.map { line(2, $0) }
      let found = verdict.split(separator: " ").filter { $0.hasPrefix("1:") || $0.hasPrefix("2:") }.map(lowercaseNames)
      guard verdict.hasPrefix("ok"), found == expected else {
        Issue.record("\(IndependentParser.hexadecimal(octets))\n\(verdict)\n\(expected)")
        return
      }
    }
  }

  private func compose(_ answers: [ResourceRecord], authorities: [ResourceRecord] = []) throws -> ComposedResponse {
    try #require(ComposedResponse(.noError, to: name, answers: answers, authorities: authorities))
  }

  /// Start, size and count.
  private func rotation(_ response: ComposedResponse) -> [Int] {
    [Int(response.rotation.start), Int(response.rotation.size), Int(response.rotation.count)]
  }

  /// A record as the script for dnspython writes it, its owner in lower case.
  private func line(_ section: Int, _ record: ResourceRecord) -> String {
    let owner = IndependentParser.hexadecimal(record.owner.lowercased.octets)
    let rdata = IndependentParser.hexadecimal(folded(record).rdata)
    return "\(section):\(owner):\(record.type.rawValue):\(record.ttl):\(rdata)"
  }

  private func lowercaseNames(_ line: Substring) -> String {
    var fields = line.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    fields[1] = lowercase(fields[1])
    if let type = UInt16(fields[2]), typesWithNames.contains(RecordType(type)) { fields[4] = lowercase(fields[4]) }
    return fields.joined(separator: ":")
  }
  private func lowercase(_ hexadecimal: String) -> String {
    IndependentParser.hexadecimal(octets(hexadecimal).map(asciiLowercase))
  }
}
