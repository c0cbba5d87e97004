// TencentMutationTests.swift -- thousands of broken replies cause no crash and no invented address.

import Ciphers
import DNSWire
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@Suite struct TencentMutationTests {
  /// A reply that is accepted, and what it answers.
  private struct Seed {
    let batch: QuestionBatch
    let text: String
  }

  private static let fragments = [
    "|", ":", ".:", ";", ",", "-", "\n", "\r\n", "0", ",60", "192.0.2.77", "2001:db8::77", "a.example.com.:",
    "b.example.com.:0|192.0.2.7\n", "4294967296", "-1", ".", "..", " ", "\u{0}", "é", "0-0", "::", "|198.51.100.7",
  ]

  private static let seeds: [Seed] = {
    let both: [RecordType] = [.a, .aaaa]
    let (a, b) = ("a.example.com", "b.example.com")
    return [
      Seed(batch: Tencent.batch([a]), text: "a.example.com.:192.0.2.1;192.0.2.2,120|198.51.100.7"),
      Seed(batch: Tencent.batch([a], [.aaaa]), text: "a.example.com.:2001:db8::1;2001:db8::2,60|198.51.100.7"),
      Seed(batch: Tencent.batch([a], both), text: "a.example.com.:192.0.2.1,120-2001:db8::1,60|198.51.100.7"),
      Seed(batch: Tencent.batch([a], both), text: "192.0.2.1,120-0|2001:db8::7"),
      Seed(
        batch: Tencent.batch([a, b]),
        text: "a.example.com.:192.0.2.1,120|198.51.100.7\nb.example.com.:192.0.2.2;192.0.2.3,60|198.51.100.7"),
      Seed(
        batch: Tencent.batch([b, a], both),
        text: "a.example.com.:192.0.2.1,120-0|198.51.100.7\nb.example.com.:0-2001:db8::2,60|198.51.100.7"),
    ]
  }()

  /// Every address that stands between two marks of punctuation in a text; what looks like a name before it is cut
  /// off at each colon, which is more than the dialect does.
  private func addresses(in text: [UInt8]) -> Set<IPAddress> {
    var found: Set<IPAddress> = []
    for word in text.split(whereSeparator: { " \t\r\n\u{b}\u{c};,|-".utf8.contains($0) }) {
      var rest = word
      while !rest.isEmpty {
        if let address = IPAddress(text: String(decoding: rest, as: UTF8.self)) { found.insert(address) }
        rest = rest.drop { $0 != UInt8(ascii: ":") }.dropFirst()
      }
    }
    return found
  }

  /// What is wrong with the results; nil where nothing is.
  private func problem(
    _ results: [Result<HTTPDNSAnswer, HTTPDNSFailure>], _ batch: QuestionBatch, plaintext: [UInt8]
  ) -> String? {
    let questions = batch.questions
    guard results.count == questions.count else { return "\(results.count) results" }
    let isAnswered = results.contains { $0.records?.isEmpty == false }
    let sent = isAnswered ? addresses(in: plaintext) : []
    for (question, result) in zip(questions, results) {
      guard case .success(let answer) = result else { continue }
      guard answer.responseCode == .noError else { return "a response code" }
      guard answer.isNegative == answer.answers.isEmpty, answer.isEmptyAmbiguous == answer.isNegative else {
        return "an inconsistent empty answer"
      }
      guard answer.answers.allSatisfy({ $0.owner == question.name && $0.type == question.type && $0.ttl <= Int32.max })
      else { return "a record that was not asked for" }
      for record in answer.answers {
        guard record.rdata.count == (question.type == .a ? 4 : 16), let address = IPAddress(octets: record.rdata),
          sent.contains(address)
        else { return "an address from nowhere: \(record.rdata)" }
      }
    }
    return nil
  }

  /// Counts answers with records, and records an issue for anything wrong.
  private func run(
    _ name: String,
    _ next: (Seed, inout SeededGenerator) -> (dialect: TencentDialect, body: [UInt8], plaintext: [UInt8])
  ) -> Int {
    var generator = SeededGenerator(seed: testSeed)
    var answered = 0
    for _ in 0..<20_000 {
      let original = TencentMutationTests.seeds.randomElement(using: &generator)!
      let (dialect, body, plaintext) = next(original, &generator)
      let response = HTTPResponse(status: 200, body: body)
      guard let results = try? dialect.answers(to: original.batch, from: response) else { continue }
      if results.contains(where: { $0.records?.isEmpty == false }) { answered += 1 }
      if let problem = problem(results, original.batch, plaintext: plaintext) {
        Issue.record("seed \(testSeed): \(problem): \(body)")
        break
      }
    }
    return answered
  }

  @Test func `twenty thousand mutated texts crash nothing and invent no address`() {
    let answered = run("clear text") { seed, generator in
      let body = generator.mutated(Array(seed.text.utf8), with: TencentMutationTests.fragments)
      return (Tencent.https, body, body)
    }
    // Were everything refused, the test would prove nothing.
    #expect((1_000..<19_900).contains(answered), "\(answered)")
  }

  @Test func `twenty thousand mutated texts behind a cipher crash nothing and invent no address`() {
    let answered = run("plaintext") { seed, generator in
      let plaintext = generator.mutated(Array(seed.text.utf8), with: TencentMutationTests.fragments)
      let vector = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
      guard Bool.random(using: &generator) else {
        return (
          Tencent.des, Array(Hexadecimal.encode(Tencent.desCipher.encrypt(plaintext, vector: [])).utf8), plaintext
        )
      }
      let octets = vector + Tencent.aesCipher.encrypt(plaintext, vector: vector)
      return (Tencent.aes, Array(Hexadecimal.encode(octets).utf8), plaintext)
    }
    #expect((1_000..<19_900).contains(answered), "\(answered)")
  }

  /// Neither cipher detects what was altered: parts of the text may well survive, and must be in what was decrypted.
  @Test func `twenty thousand mutated ciphertexts crash nothing and invent no address`() {
    let answered = run("ciphertext") { seed, generator in
      let isDES = Bool.random(using: &generator)
      let vector = Array<UInt8>(0..<16)
      var octets =
        isDES
        ? Tencent.desCipher.encrypt(Array(seed.text.utf8), vector: [])
        : vector + Tencent.aesCipher.encrypt(Array(seed.text.utf8), vector: vector)
      if Bool.random(using: &generator) {
        octets[Int.random(in: 0..<octets.count, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      } else {
        octets = generator.mutated(octets, with: TencentMutationTests.fragments)
      }
      let plaintext =
        isDES
        ? Tencent.desCipher.decrypt(octets[...], vector: [])
        : octets.count < 16 ? nil : Tencent.aesCipher.decrypt(octets[16...], vector: Array(octets[..<16]))
      return (isDES ? Tencent.des : Tencent.aes, Array(Hexadecimal.encode(octets).utf8), plaintext ?? [])
    }
    #expect((100..<19_900).contains(answered), "\(answered)")
  }
}
