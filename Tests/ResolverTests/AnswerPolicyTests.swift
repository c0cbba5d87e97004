// AnswerPolicyTests.swift -- from an upstream's records to what is kept: bounds on TTLs, SOA records, chains.

import DNSWire
import HTTPDNS
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct AnswerPolicyTests {
  private let www = name("www.example.com")
  private let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
  private let bounds = TTLBounds(lowest: 20, highest: 600, highestNegative: 30, highestFallback: 60)

  private func finish(
    _ answer: HTTPDNSAnswer, isFallback: Bool = false, lowest: UInt32 = 20
  ) throws -> FinishedAnswer {
    var bounds = bounds
    bounds.lowest = lowest
    let policy = AnswerPolicy(ttl: bounds, isFallback: isFallback)
    let finished = try #require(policy.finish(answer, to: question))
    #expect(policy.lifetime(of: answer, to: question) == finished.lifetime)
    return finished
  }

  private func ttls(_ answer: FinishedAnswer) throws -> (answers: [UInt32], authorities: [UInt32]) {
    let message = try #require(answer.response.message(to: Question(name: www, type: .a)))
    return (message.answers.map(\.ttl), message.authorities.map(\.ttl))
  }

  @Test(
    arguments: [(5, 20), (20, 20), (21, 21), (600, 600), (601, 600), (UInt32(Int32.max), 600)] as [(UInt32, UInt32)])
  func `TTLs are limited to the bounds`(given: UInt32, kept: UInt32) throws {
    let answer = try finish(.addresses(www, "192.0.2.1", ttl: given))
    #expect(answer.lifetime == kept)
    #expect(try ttls(answer).answers == [kept])
  }

  @Test(arguments: [(30, 30), (60, 60), (61, 60), (300, 60)] as [(UInt32, UInt32)])
  func `an answer by fallback is cached for a minute at most`(given: UInt32, kept: UInt32) throws {
    #expect(try finish(.addresses(www, "192.0.2.1", ttl: given), isFallback: true).lifetime == kept)
  }

  @Test func `a negative answer by fallback has the same limit`() throws {
    var bounds = bounds
    bounds.highestFallback = 5
    let answer = HTTPDNSAnswer.negative(.nxDomain, zone: name("example.com"))
    #expect(AnswerPolicy(ttl: bounds, isFallback: true).finish(answer, to: question)?.lifetime == 5)
    #expect(AnswerPolicy(ttl: bounds).finish(answer, to: question)?.lifetime == 30)
  }

  @Test func `without an SOA record the upstream's own time counts, within the bounds`() throws {
    for (stated, kept) in [(nil, 30), (1, 1), (20, 20), (30, 30)] as [(UInt32?, UInt32)] {
      var answer = HTTPDNSAnswer(responseCode: .nxDomain, isNegative: true)
      answer.statedTTL = stated
      let finished = try finish(answer)
      #expect(finished.lifetime == kept)
      #expect(try ttls(finished).authorities == [kept])
    }
    // The SOA record goes before it.
    var answer = HTTPDNSAnswer.negative(.nxDomain, zone: name("example.com"), ttl: 20)
    answer.statedTTL = 5
    #expect(try finish(answer).lifetime == 20)
  }

  @Test func `TTL 0 is not cached, unless a lower bound is configured`() throws {
    #expect(try finish(.addresses(www, "192.0.2.1", ttl: 0), lowest: 0).lifetime == 0)
    #expect(try finish(.addresses(www, "192.0.2.1", ttl: 0), lowest: 20).lifetime == 20)
  }

  @Test func `an answer lives as long as the shortest link of its chain, and each record keeps its TTL`() throws {
    var answer = HTTPDNSAnswer.addresses(name("a.example"), "192.0.2.1", ttl: 300)
    answer.answers.insert(.alias(www, name("a.example"), ttl: 40), at: 0)
    let finished = try finish(answer)
    #expect(finished.lifetime == 40)
    #expect(try ttls(finished).answers == [40, 300])
  }

  @Test(
    arguments: [(900, 900, 30), (25, 900, 25), (900, 15, 15), (0, 900, 0), (900, 0, 0)] as [(UInt32, UInt32, UInt32)])
  func `a negative answer is cached for the lowest of TTL, minimum and bound`(
    ttl: UInt32, minimum: UInt32, kept: UInt32
  ) throws {
    for code in [ResponseCode.noError, .nxDomain] {
      let answer = try finish(.negative(code, zone: name("example.com"), ttl: ttl, minimum: minimum))
      #expect(answer.lifetime == kept)
      #expect(try ttls(answer).authorities == [kept])
      #expect(answer.isNXDOMAIN == (code == .nxDomain))
    }
  }

  @Test func `a chain that ends without data keeps the chain and gets an SOA record for its end`() throws {
    let chain = HTTPDNSAnswer(
      responseCode: .noError, answers: [.alias(www, name("a.example"), ttl: 25)], isNegative: true)
    let finished = try finish(chain)
    #expect(finished.lifetime == 25)
    let message = try #require(finished.response.message(to: Question(name: www, type: .a)))
    #expect(message.answers.map(\.ttl) == [25])
    #expect(message.authorities.map(\.owner) == [name("a.example")])
    #expect(!finished.isNXDOMAIN)
  }

  @Test func `signatures and proofs beside the SOA record expire with it`() throws {
    var answer = HTTPDNSAnswer.negative(.nxDomain, zone: name("example.com"), ttl: 900, minimum: 12)
    answer.authorities.append(
      ResourceRecord(owner: www, type: .nsec, ttl: 900, rdata: name("z.example.com").octets + [0, 1, 64]))
    #expect(try ttls(finish(answer)).authorities == [12, 12])
  }

  @Test func `an answer that no message can hold is nil`() {
    let records = (0..<300).map {
      ResourceRecord(
        owner: www, type: .txt, ttl: 300, rdata: [250] + [UInt8](repeating: UInt8($0 & 0xFF), count: 250))
    }
    let answer = HTTPDNSAnswer(responseCode: .noError, answers: records)
    #expect(AnswerPolicy(ttl: bounds).finish(answer, to: question) == nil)
  }
}
