// CompressionTests.swift -- names in RDATA become pointers where every resolver accepts them, at limited cost.

import TestSupport
import Testing

@testable import DNSWire

@Suite struct `Compression of names in RDATA` {
  private let zone = DomainName(text: "example.com")!

  private func record(_ owner: DomainName, _ type: RecordType, _ rdata: [UInt8]) -> ResourceRecord {
    ResourceRecord(owner: owner, type: type, ttl: 300, rdata: rdata)
  }

  private func name(_ text: String) -> DomainName { DomainName(text: text)! }

  private func compose(
    _ asked: DomainName, _ answers: [ResourceRecord], _ authorities: [ResourceRecord] = []
  ) throws -> ComposedResponse {
    let response = try #require(ComposedResponse(.noError, to: asked, answers: answers, authorities: authorities))
    try expectSame(response, asked, answers, authorities)
    return response
  }

  @Test func `compression turns each mail exchange of the zone into one label and a pointer`() throws {
    let hosts = (1...5).map { name("mx\($0).example.com") }
    let response = try compose(zone, hosts.map { record(zone, .mx, [0, 10] + $0.octets) })
    // Pointer and fixed fields, preference, `mxN` and a pointer; 12 + 2 + 17 octets without.
    #expect(response.body.count == 5 * (12 + 2 + 4 + 2))
    #expect(response.ttlOffsets == [6, 26, 46, 66, 86])
  }

  @Test func `a chain of five aliases fits if it fits at its source`() throws {
    let names = (0...5).map { name("chain\($0).odd.example") }
    var records = zip(names, names.dropFirst()).map { record($0, .cname, $1.octets) }
    records.append(record(names[5], .a, [192, 0, 2, 1]))
    let response = try compose(names[0], records)
    // Each alias: pointer and fixed fields, a label and a pointer; 12 + 20 octets without.
    #expect(response.body.count == 5 * (12 + 7 + 2) + 16)
  }

  @Test func `compression applies to RDATA of the types of RFC 1035 only`() throws {
    let host = name("host.example.com").octets
    let short = 5 + 2
    for (type, rdata, expected) in [
      (.ns, host, short), (.cname, host, short), (.ptr, host, short), (.mx, [0, 1] + host, 2 + short),
      (RecordType(7), host, short), (RecordType(8), host, short), (RecordType(9), host, short),
      (RecordType(14), host + name("x.host.example.com").octets, short + 4),
      (.soa, host + host + [UInt8](repeating: 1, count: 20), short + 2 + 20), (.srv, [0, 1, 0, 1, 0, 1] + host, 24),
      (.dname, host, 18), (RecordType(17), host + host, 36), (RecordType(18), [0, 1] + host, 20),
      (.nsec, host + [0, 1, 0x40], 21), (RecordType(107), [0, 1] + host, 20),
    ] as [(RecordType, [UInt8], Int)] {
      let response = try compose(zone, [record(zone, type, rdata)])
      #expect(response.body.count == 12 + expected, "\(type)")
    }
  }

  @Test func `compression ignores the case of QNAME and of RDATA`() throws {
    let hosts = (1...5).map { name("mx\($0).eXample.cOm") }
    let lower = try compose(zone, hosts.map { record(zone, .mx, [0, 10] + $0.octets) })
    let upper = try compose(name("EXAMPLE.com"), hosts.map { record(zone, .mx, [0, 10] + $0.octets) })
    #expect(lower.body == upper.body && lower.ttlOffsets == upper.ttlOffsets)
  }

  @Test func `compression does not change RDATA without the form of its type`() throws {
    for rdata in [[], [0], [3, 97], [64] + [UInt8](repeating: 97, count: 64) + [0], [0xC0, 12], [1]] as [[UInt8]] {
      for type in [RecordType.ns, .mx, .soa] {
        let response = try #require(ComposedResponse(.noError, to: zone, answers: [record(zone, type, rdata)]))
        #expect(response.body.count == 12 + rdata.count)
        #expect(Array(response.body.suffix(rdata.count)) == rdata)
      }
    }
  }

  @Test func `addresses after a compressed alias rotate`() throws {
    let target = name("edge.example.com")
    let addresses = (1...3).map { record(target, .a, [192, 0, 2, $0]) }
    let response = try compose(
      name("www.example.com"), [record(name("www.example.com"), .cname, target.octets)] + addresses)
    #expect(response.rotation.start == 12 + 7 && response.rotation.size == 16 && response.rotation.count == 3)
  }

  @Test func `compression takes a few steps per label, also for 3,000 names of 100 labels`() throws {
    // Two alternating names that differ in their last label: neither the previous name nor a common suffix helps.
    let tails = ["x", "y"].map { (0..<100).map { _ in "a." }.joined() + $0 }
    let records = (0..<3000).map { index in
      record(zone, .ns, name("n\(index).\(tails[index % 2])").octets)
    }
    var steps = 0
    let response = ComposedResponse(.noError, to: zone, answers: records, authorities: [], counting: &steps)
    #expect(response != nil)
    #expect(steps < 3000 * 102 * 2)
  }

  @Test func `an unused compression table costs nothing`() throws {
    var steps = 0
    let records = (0..<100).map { record(zone, .a, [192, 0, 2, UInt8($0)]) }
    _ = ComposedResponse(.noError, to: zone, answers: records, authorities: [], counting: &steps)
    #expect(steps == 0)
  }
}

@Suite struct `Work for the names of a message` {
  /// A response to `a.` whose records have that owner, and RDATA of a label and a pointer to a name of 120 labels.
  private func message(records: Int, type: UInt8 = 2, owner: [UInt8] = [0xC0, 12]) -> [UInt8] {
    var octets: [UInt8] = [0, 0, 0x80, 0, 0, 1, UInt8((records + 1) >> 8), UInt8((records + 1) & 0xFF), 0, 0, 0, 0]
    octets += [1, 97, 0, 0, 1, 0, 1]
    // A name of 120 labels stands in the first record, at offset 31.
    let long = [UInt8]((0..<120).flatMap { _ in [1, 98] as [UInt8] }) + [0]
    octets += [0xC0, 12, 0, 2, 0, 1, 0, 0, 0, 1, 0, UInt8(long.count)] + long
    for index in 0..<records {
      let rdata = [2, UInt8(97 + index % 26), UInt8(97 + index / 26 % 26), 0xC0, 31] as [UInt8]
      octets += owner + [0, type, 0, 1, 0, 0, 0, 1, 0, UInt8(rdata.count)] + rdata
    }
    return octets
  }

  @Test func `the work for names of a message is bounded for any pointers`() throws {
    #expect(try Message.parse(message(records: 2000)).answers.count == 2001)
    #expect(throws: WireError.tooMuchWork) { try Message.parse(message(records: 3000)) }
    #expect(throws: WireError.tooMuchWork) { try Message.parse(message(records: 1100, owner: [1, 99, 0xC0, 31])) }
  }

  @Test func `the limit of work admits the largest RRsets of real zones`() throws {
    // 4,000 name servers, each a label and a pointer, behind an alias: each owner a pointer to the target of it.
    var octets: [UInt8] = [0, 0, 0x80, 0, 0, 1, 0x0F, 0xA1, 0, 0, 0, 0] + [1, 97, 0, 0, 2, 0, 1]
    let reverse = [UInt8]((0..<32).flatMap { _ in [1, 49] as [UInt8] }) + [3, 105, 112, 54, 4, 97, 114, 112, 97, 0]
    octets += [0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 1, 0, UInt8(reverse.count)] + reverse
    for _ in 0..<4000 { octets += [0xC0, 31, 0, 2, 0, 1, 0, 0, 0, 1, 0, 4, 1, 97, 0xC0, 31] }
    #expect(octets.count < 65_536)
    #expect(try Message.parse(octets).answers.count == 4001)
  }
}
