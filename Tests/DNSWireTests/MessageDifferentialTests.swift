// MessageDifferentialTests.swift -- the message parser against dnspython, over damaged messages.
//
// Data/independent_parser.py lists the intended differences, each with its reason.

import DNSWire
import TestSupport
import Testing

@Suite struct MessageDifferentialTests {
  /// dnspython refuses a message with a record that we leave out. Where that is one of the additional section, it must read
  /// the rest as we do.
  @Test func `dnspython and our parser read the same message, or both refuse it`() throws {
    var mutator = MessageMutator(seed: testSeed)
    let octets = (0..<50_000).map { _ in mutator.damagedResponse() }
    var refused = 0
    var excused: [[UInt8]] = []
    var disagreements: [String] = []
    for (octets, verdict) in zip(octets, try IndependentParser.verdicts(on: octets)) {
      let message = try? Message.parse(octets)
      if message == nil { refused += 1 }
      if verdict.hasPrefix("ok") {
        note(octets, message, verdict, in: &disagreements)
      } else if let message, message.unreadableRecordCount == 0 {
        excused.append(octets)
      }
    }
    let shortened = excused.map { Array($0[..<10] + [0, 0] + $0[12...]) }
    for (octets, verdict) in zip(shortened, try IndependentParser.verdicts(on: shortened)) {
      note(octets, try? Message.parse(octets), verdict, in: &disagreements)
    }
    #expect(
      disagreements.isEmpty, "\(disagreements.count), the first:\n\(disagreements.prefix(5).joined(separator: "\n"))")
    // The comparison is meaningless unless all outcomes occur.
    #expect(refused > octets.count / 10 && excused.count > 100)
    #expect(refused + excused.count < octets.count * 4 / 5)
  }

  private func note(_ octets: [UInt8], _ message: Message?, _ verdict: String, in disagreements: inout [String]) {
    let ours = message.map { "ok " + contents($0) }
    if ours != verdict {
      disagreements.append("\(IndependentParser.hexadecimal(octets))\n  \(ours ?? "no")\n  \(verdict)")
    }
  }

  /// The contents in the form of the script.
  private func contents(_ message: Message) -> String {
    var words = message.questions.map {
      "Q:\(hexadecimal($0.question.name)):\($0.question.type.rawValue):\($0.qclass.rawValue)"
    }
    for (number, section) in [message.answers, message.authorities, message.additionals].enumerated() {
      // dnspython keeps a TSIG record (250) apart from its section, even one of class IN.
      words += section.filter { $0.type != RecordType(250) }.map {
        "\(number + 1):\(hexadecimal($0.owner)):\($0.type.rawValue):\($0.ttl):"
          + IndependentParser.hexadecimal($0.rdata)
      }
    }
    if let edns = message.edns {
      let options = edns.options.map { "\($0.code.rawValue)=\(IndependentParser.hexadecimal($0.data))" }
      let ttl = UInt32(edns.extendedResponseCode) << 24 | UInt32(edns.version) << 16 | (edns.dnssecOK ? 0x8000 : 0)
      words.append("E:\(edns.udpPayloadSize):\(ttl):\(options.joined(separator: ","))")
    }
    return words.joined(separator: " ")
  }

  private func hexadecimal(_ name: DomainName) -> String { IndependentParser.hexadecimal(name.octets) }
}
