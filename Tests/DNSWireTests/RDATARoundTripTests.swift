// RDATARoundTripTests.swift -- RDATA and its text: properties, and a comparison with dnspython in both directions.

import DNSWire
import TestSupport
import Testing

@Suite struct RDATARoundTripTests {
  /// RDATA of valid random responses, as the parser returns it.
  private func records(seed: UInt64, messages: Int) throws -> [ResourceRecord] {
    var mutator = MessageMutator(seed: seed)
    return (0..<messages).flatMap { _ in (try? Message.parse(mutator.response()))?.answers ?? [] }
  }

  @Test func `RDATA survives its text, and the text its RDATA`() throws {
    for record in try records(seed: testSeed, messages: 3_000) {
      let text = RDATA.text(record.rdata, type: record.type)
      let rdata = RDATA.parse(text: text, type: record.type)
      #expect(rdata == record.rdata, "\(record.type) \(text)")
      #expect(rdata.map { RDATA.text($0, type: record.type) } == text)
    }
  }

  @Test func `the generic form is read for every type`() throws {
    for record in try records(seed: testSeed, messages: 1_000) {
      let digits = IndependentParser.hexadecimal(record.rdata)
      let text = "\\# \(record.rdata.count) \(digits)"
      #expect(RDATA.parse(text: text, type: record.type) == record.rdata, "\(record.type) \(text)")
    }
  }

  @Test func `random octets and random text never crash`() {
    var random = SeededGenerator(seed: testSeed)
    let words = [
      "1", "0", "\"", "\\", "\\#", ".", "a.", " ", "=", ",", "alpn", "mandatory", "key", "port=1", "\\1", "255", "é",
      "/", "::1",
      "192.0.2.1", "ff", "AAAA", "ech=", "\t", ";", "no-default-alpn",
    ]
    let types = [RecordType](
      [1, 2, 6, 13, 14, 15, 16, 26, 28, 33, 35, 43, 44, 46, 47, 48, 52, 64, 257, 65_280].map { RecordType($0) })
    for _ in 0..<20_000 {
      let type = types.randomElement(using: &random)!
      let text = (0..<Int.random(in: 0...8, using: &random)).map { _ in words.randomElement(using: &random)! }.joined()
      if let rdata = RDATA.parse(text: text, type: type) {
        #expect(RDATA.isValid(rdata, type: type), "\(type) \(text)")
        #expect(RDATA.parse(text: RDATA.text(rdata, type: type), type: type) == rdata, "\(type) \(text)")
      }
      let octets = random.octets(Int.random(in: 0...24, using: &random)).map { random.oneIn(2) ? $0 & 3 : $0 }
      #expect(!RDATA.text(octets, type: type).isEmpty)
    }
  }

  /// Types whose RDATA dnspython accepts without checks in a message, so that it can write every value.
  private let shared: Set<UInt16> = [
    1, 2, 5, 6, 12, 13, 15, 16, 17, 18, 26, 28, 33, 35, 36, 39, 48, 64, 65, 257, 65_280,
  ]

  @Test func `dnspython reads our RDATA text, and we read its text, as the same RDATA`() throws {
    // DNSKEY without a key has no text that could be read again, but dnspython writes one.
    let records = try records(seed: testSeed, messages: 3_000).filter {
      shared.contains($0.type.rawValue) && ($0.type != .dnskey || $0.rdata.count > 4)
    }
    let ours = records.map { (type: $0.type.rawValue, text: RDATA.text($0.rdata, type: $0.type)) }
    let theirRDATA = try IndependentParser.rdata(of: ours)
    let theirText = try IndependentParser.texts(of: records.map { (type: $0.type.rawValue, octets: $0.rdata) })
    var compared = 0
    for (index, record) in records.enumerated() where !theirText[index].isEmpty {
      compared += 1
      #expect(theirRDATA[index] == IndependentParser.hexadecimal(record.rdata), "\(record.type) \(ours[index].text)")
      #expect(
        RDATA.parse(text: theirText[index], type: record.type) == record.rdata, "\(record.type) \(theirText[index])")
    }
    // dnspython refuses SOA intervals above 2^31-1 and the values of known SvcParams that are only random octets.
    #expect(compared > records.count * 3 / 4)
  }
}
