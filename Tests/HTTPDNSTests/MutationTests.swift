// MutationTests.swift -- broken bodies by the thousand: no crash, and what is accepted is valid.

import DNSWire
import HTTPMessage
import TestSupport
import Testing

@testable import HTTPDNS

@Suite struct MutationTests {
  /// A body that is accepted, the question that it answers, and who reads it.
  struct Seed {
    let dialect: any Dialect
    let question: HTTPDNSQuestion
    let contentType: String
    let body: [UInt8]
  }

  /// What a mutation may write: the characters that mean something, and numbers at the edges.
  static let fragments: [String] = [
    "{", "}", "[", "]", "\"", "\\", ":", ",", "null", "true", "-1", "4294967296", "2147483648", "1e400", "\\u0000",
    "\\ud800", "\u{0}", #""Status":0,"#, #""type":5"#, #""type":46"#, #""TTL":0"#, "www.example.com.", ".", "..",
    "\\\\# 4 ",
    "192.0.2.1", "2001:db8::1", "\u{e9}", "\\300", "\\\\\"",
  ]

  private func seeds() throws -> [Seed] {
    let names = [
      ("www.example.com", RecordType.a), ("alias.example.com", .a), ("www.example.com", .aaaa), ("example.com", .txt),
      ("t.example.com", .txt), ("example.com", .caa), ("example.com", .https), ("nope.example.com", .a),
      ("v4only.example.com", .aaaa), ("auto.sdk.alidns.com", .srv),
    ]
    var seeds: [Seed] = []
    let vectors = ProviderVectors.all
    let groups: [([ProviderVectors.Body], any Dialect)] = [
      (vectors.alibaba_pdns.responses, alidns), (vectors.alibaba_pdns.responses, shortAliDNS),
      (vectors.doh.google_responses, google), (vectors.doh.cloudflare_responses, cloudflare),
    ]
    for (bodies, dialect) in groups {
      for body in bodies {
        for (name, type) in names {
          let asked = question(name, type, dnssecOK: true, subnet: "203.0.113.0/24")
          guard failure(of: json(body.body), to: asked, with: dialect) == nil else { continue }
          seeds.append(
            Seed(dialect: dialect, question: asked, contentType: "application/json", body: Array(body.body.utf8)))
        }
      }
    }
    let asked = question("alias.example.com", .a, dnssecOK: true)
    var message = Message.query(Question(name: asked.name, type: asked.type), id: 0, edns: EDNS(dnssecOK: true))
    message.header.qr = true
    message.answers = [cname("alias.example.com", 60, "www.example.com"), a("www.example.com", 60, "192.0.2.1")]
    message.authorities = [soa(60, minimum: 60)]
    let octets = try message.compose()
    seeds += (0..<5).map { _ in
      Seed(dialect: post, question: asked, contentType: "application/dns-message", body: octets)
    }
    return seeds
  }

  @Test func `fifty thousand mutated bodies crash nothing, and accepted ones hold valid records`() throws {
    var generator = SeededGenerator(seed: testSeed)
    let seeds = try seeds()
    #expect(seeds.count >= 25)
    var accepted = 0
    for _ in 0..<50_000 {
      let original = seeds.randomElement(using: &generator)!
      let response = HTTPResponse(
        status: 200, contentType: original.contentType,
        body: generator.mutated(original.body, with: MutationTests.fragments))
      guard let answer = try? original.dialect.answer(to: original.question, from: response) else { continue }
      accepted += 1
      guard problem(of: answer, to: original.question) == nil else {
        Issue.record("seed \(testSeed): \(problem(of: answer, to: original.question)!): \(response.body)")
        return
      }
    }
    // Were everything refused, the test would prove nothing.
    #expect((1_000..<49_000).contains(accepted), "\(accepted)")
  }

  /// What is wrong with an accepted answer; nil where nothing is.
  private func problem(of answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) -> String? {
    let records = answer.answers + answer.authorities
    guard records.allSatisfy({ $0.ttl <= Int32.max }) else { return "a TTL of 32 bits" }
    guard records.allSatisfy({ RDATA.isValid($0.rdata, type: $0.type) }) else { return "invalid RDATA" }
    guard answer.answers.first.map({ $0.owner == question.name || $0.type == .dname }) ?? true else {
      return "no chain from QNAME"
    }
    guard
      answer.isNegative || answer.responseCode != .noError
        || answer.answers.contains(where: { $0.type == question.type })
    else { return "positive without data" }
    var message = Message.query(Question(name: question.name, type: question.type), id: 1)
    message.header.qr = true
    message.answers = answer.answers
    message.authorities = answer.authorities
    guard let octets = try? message.compose(), let again = try? Message.parse(octets) else { return "no message" }
    return again.answers == answer.answers && again.authorities == answer.authorities ? nil : "another message"
  }
}
