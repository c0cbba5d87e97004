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
    var (answered, truncated, partial) = (0, 0, 0)
    for number in 0..<25_000 {
      // The same random numbers make the same query, sound first and then damaged: so that its answer is in the cache.
      var sound = mutator
      if number % 2 == 0, let question = try? Message.parse(sound.query()).questions.first?.question {
        property.keepChain(question, links: 1 + number % 7, addresses: 80)
      }
      let query = mutator.damagedQuery()
      do {
        for reply in try property.replies(to: query) {
          answered += reply[7] > 0 ? 1 : 0
          truncated += reply[2] & 2 != 0 ? 1 : 0
          partial += reply[2] & 2 != 0 && reply[7] > 0 ? 1 : 0
          replies.append((query, reply))
        }
      } catch {
        Issue.record("\(IndependentParser.hexadecimal(query)): \(error)")
        return
      }
    }
    // Refusals, answers and truncated answers have to be there, or this says nothing.
    #expect(answered > 1000 && truncated > 1000 && replies.count > 20_000, "\(answered) \(truncated) \(replies.count)")
    #expect(partial > 20, "\(partial)")
    // Most replies are the refusals of a stranger; every seventh of all is enough.
    try dnspythonReads(replies.indices.filter { $0 % 7 == 0 }.map { replies[$0] })
  }

  /// dnspython, which shares no code with us, can parse the replies and finds their questions.
  private func dnspythonReads(_ replies: [(query: [UInt8], reply: [UInt8])]) throws {
    let verdicts = try IndependentParser.verdicts(on: replies.map(\.reply))
    var disagreements: [String] = []
    for (pair, verdict) in zip(replies, verdicts) {
      if !verdict.hasPrefix("ok") || !echoes(pair.query, pair.reply, verdict) {
        disagreements.append("\(IndependentParser.hexadecimal(pair.reply))\n  \(verdict)")
      }
    }
    #expect(
      disagreements.isEmpty, "\(disagreements.count), the first:\n\(disagreements.prefix(5).joined(separator: "\n"))")
  }

  /// Whether QNAME in the verdict on a reply is that of the query, octet by octet; and none where the reply says none.
  private func echoes(_ query: [UInt8], _ reply: [UInt8], _ verdict: String) -> Bool {
    let fields: [Substring] = verdict.split(separator: " ").first { $0.hasPrefix("Q:") }?.split(separator: ":") ?? []
    guard fields.count > 1 else { return reply[5] == 0 }
    let end = 12 + fields[1].utf8.count / 2
    guard reply[5] == 1, end <= query.count else { return false }
    return IndependentParser.hexadecimal(Array(query[12..<end])) == fields[1]
  }
}
