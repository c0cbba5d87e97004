// QueryDifferentialTests.swift -- the reader of queries against dnspython, over damaged messages.

import DNSWire
import TestSupport
import Testing

@Suite struct QueryDifferentialTests {
  @Test func `dnspython parses exactly the queries that are not refused for their form`() throws {
    var mutator = MessageMutator(seed: testSeed)
    let messages = (0..<50_000).map { number in
      withoutKnownTypes(asQuery(number % 2 == 0 ? mutator.damagedQuery() : mutator.damagedResponse()))
    }
    let verdicts = try IndependentParser.verdicts(on: messages)
    var accepted = 0
    var disagreements: [String] = []
    for (octets, verdict) in zip(messages, verdicts) {
      let ours = read(octets)
      let isFine = ours.verdict == .query || ours.verdict == .badVers
      if isFine { accepted += 1 }
      let agrees =
        isFine
        ? verdict.hasPrefix("ok") && contents(ours.query, octets) == question(of: verdict)
          || isOfLaterVersion(ours, verdict)
        : !verdict.hasPrefix("ok") || isRefusedByDesign(octets)
      if !agrees {
        disagreements.append("\(IndependentParser.hexadecimal(octets))\n  \(ours)\n  \(verdict)")
      }
    }
    #expect(
      disagreements.isEmpty, "\(disagreements.count), the first:\n\(disagreements.prefix(5).joined(separator: "\n"))")
    #expect(accepted > messages.count / 5)
    #expect(accepted < messages.count * 4 / 5)
  }

  /// A query with these sections: no QR, OPCODE QUERY, and answers moved to the authority section, which a query may have.
  private func asQuery(_ message: [UInt8]) -> [UInt8] {
    guard message.count >= 12 else { return message }
    var message = message
    message[2] &= 0x07
    let records = (UInt16(message[6]) << 8 | UInt16(message[7])) &+ (UInt16(message[8]) << 8 | UInt16(message[9]))
    message.replaceSubrange(6..<10, with: words(0, records))
    return message
  }

  /// Intended differences: a query has one question (RFC 9619), whose name is not compressed, because nothing precedes it,
  /// and whose type is not OPT.
  private func isRefusedByDesign(_ octets: [UInt8]) -> Bool {
    guard octets[4] == 0, octets[5] == 1 else { return true }
    var position = 12
    while octets[position] != 0 {
      if octets[position] >= 0xC0 { return true }
      position += Int(octets[position]) + 1
    }
    return octets[position + 1] == 0 && octets[position + 2] == 41
  }

  /// An intended difference: the options of another EDNS version may have another form, so they are not read.
  private func isOfLaterVersion(_ ours: (verdict: QueryVerdict, query: Query), _ verdict: String) -> Bool {
    ours.verdict == .badVers && verdict.hasPrefix("no FormError")
  }

  /// An intended difference: records other than OPT are skipped, so malformed RDATA is not noticed. Every record that the
  /// reader reaches gets an unknown type, for which all RDATA is valid.
  private func withoutKnownTypes(_ message: [UInt8]) -> [UInt8] {
    let ours = read(message)
    guard ours.verdict == .query || ours.verdict == .badVers else { return message }
    var octets = message
    let word = { (offset: Int) in Int(message[offset]) << 8 + Int(message[offset + 1]) }
    var position = ours.query.questionEnd
    for _ in 0..<(word(8) + word(10)) {
      while message[position] != 0, message[position] < 0xC0 { position += Int(message[position]) + 1 }
      position += message[position] == 0 ? 1 : 2
      if word(position) != 41 { octets.replaceSubrange(position..<(position + 2), with: [0xFF, 0]) }
      position += 10 + word(position + 8)
    }
    return octets
  }

  /// Question and OPT in the form of the script, without options.
  private func contents(_ query: Query, _ octets: [UInt8]) -> [String] {
    let name = IndependentParser.hexadecimal(Array(octets[12..<(12 + query.nameLength)]))
    return ["Q:\(name):\(query.type):\(query.qclass)"] + (query.hasOPT ? ["\(query.udpPayload) \(query.dnssecOK)"] : [])
  }

  private func question(of verdict: String) -> [String] {
    let words = verdict.split(separator: " ").map(String.init)
    return words.filter { $0.hasPrefix("Q:") }
      + words.filter { $0.hasPrefix("E:") }.map { word in
        let fields = word.split(separator: ":").compactMap { Int($0) }
        return "\(max(512, fields[0])) \(fields[1] & 0x8000 != 0)"
      }
  }
}
