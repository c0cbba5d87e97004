// MessageDifferentialTests.swift -- the message parser against dnspython, over damaged messages.
//
// Data/independent_parser.py lists the intended differences, each with its reason.

import DNSWire
import TestSupport
import Testing

@Suite struct MessageDifferentialTests {
  @Test func `dnspython and our parser read the same message, or both refuse it`() throws {
    var mutator = MessageMutator(seed: testSeed)
    let messages = (0..<50_000).map { _ in mutator.damagedResponse() }
    let verdicts = try IndependentParser.verdicts(on: messages)
    var accepted = 0
    var disagreements: [String] = []
    for (octets, verdict) in zip(messages, verdicts) {
      let ours = (try? Message.parse(octets)).map { "ok " + contents($0) }
      if ours != nil { accepted += 1 }
      if verdict.hasPrefix("ok") ? ours != verdict : ours != nil {
        disagreements.append("\(IndependentParser.hexadecimal(octets))\n  \(ours ?? "no")\n  \(verdict)")
      }
    }
    #expect(
      disagreements.isEmpty, "\(disagreements.count), the first:\n\(disagreements.prefix(5).joined(separator: "\n"))")
    // The comparison is meaningless unless both outcomes occur.
    #expect(accepted > messages.count / 5)
    #expect(accepted < messages.count * 4 / 5)
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
