// QueryPathMutationTests.swift -- damaged queries through the query path: every reply is one that its client can use.

import DNSWire
import FuzzProperties
import TestSupport
import Testing

@Suite struct QueryPathMutationTests {
  @Test func `every reply to a damaged query parses, echoes ID and question, and fits its size`() throws {
    var mutator = MessageMutator(seed: testSeed)
    let property = QueryProperty()
    var replies: [(query: [UInt8], reply: [UInt8])] = []
    var (answered, truncated) = (0, 0)
    for number in 0..<25_000 {
      // The same random numbers make the same query, sound first and then damaged: so that its answer is in the cache.
      var sound = mutator
      if number % 2 == 0, let question = try? Message.parse(sound.query()).questions.first?.question {
        property.keepText(question.name, type: question.type, octets: (number % 7) * 400)
      }
      let query = mutator.damagedQuery()
      for reply in try property.replies(to: query) {
        answered += reply[7] > 0 ? 1 : 0
        truncated += reply[2] & 2 != 0 ? 1 : 0
        if reply.count < 512 { replies.append((query, reply)) }
      }
    }
    // Refusals, answers and truncated answers have to be there, or this says nothing.
    #expect(answered > 1000 && truncated > 1000 && replies.count > 20_000)
    try dnspythonReads(replies.filter { $0.reply.count % 2 == 0 })
  }

  /// dnspython, which shares no code with us, can parse the replies and finds their questions.
  private func dnspythonReads(_ replies: [(query: [UInt8], reply: [UInt8])]) throws {
    let verdicts = try IndependentParser.verdicts(on: replies.map(\.reply))
    var disagreements: [String] = []
    for (pair, verdict) in zip(replies, verdicts) {
      let count = pair.reply[5]
      let asksTheSame = echoed(in: verdict).map { isName($0, of: pair.query) } ?? false
      if !verdict.hasPrefix("ok") || asksTheSame != (count == 1) {
        disagreements.append("\(IndependentParser.hexadecimal(pair.reply))\n  \(verdict)")
      }
    }
    #expect(
      disagreements.isEmpty, "\(disagreements.count), the first:\n\(disagreements.prefix(5).joined(separator: "\n"))")
  }

  /// QNAME in hexadecimal, as the independent parser tells it.
  private func echoed(in verdict: String) -> Substring? {
    guard let question = verdict.split(separator: " ").first(where: { $0.hasPrefix("Q:") }) else { return nil }
    return question.split(separator: ":").dropFirst().first
  }

  private func isName(_ hexadecimal: Substring, of query: [UInt8]) -> Bool {
    let octets = Array(query[12...].prefix(hexadecimal.utf8.count / 2))
    return IndependentParser.hexadecimal(octets) == hexadecimal
  }
}
