// TextTests.swift -- services of plain text: the vectors, what is sent, and what replies mean.

import Configuration
import DNSWire
import HTTPMessage
import TestSupport
import Testing

@testable import HTTPDNS

/// The part of Data/provider_vectors_more.json that these tests read.
private struct TextVectors: Decodable {
  struct Request: Decodable {
    let `case`, url: String
  }
  struct Body: Decodable {
    let `case`, body: String
  }
  struct Text: Decodable {
    let requests: [Request]
    let responses: [Body]
  }
  let plain_text: Text

  static let all = vectors(TextVectors.self, in: "provider_vectors_more.json").plain_text
}

private let dnspod = TextDialect(form: .dnspod, path: "/d")
private let oneOneFour = TextDialect(form: .oneOneFour, path: "/d")

@Suite struct TextTests {
  private let vectors = TextVectors.all
  private let www = "www.example.com"

  private func response(_ body: String, status: Int = 200, contentType: String? = nil) -> HTTPResponse {
    HTTPResponse(status: status, contentType: contentType, body: Array(body.utf8))
  }

  private func outcome(
    _ response: HTTPResponse, _ type: RecordType = .a, _ dialect: TextDialect = oneOneFour
  ) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    Result { () throws(HTTPDNSFailure) in try dialect.answer(to: question(www, type), from: response) }
  }

  private func answer(_ ttl: UInt32, _ addresses: String...) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    .success(HTTPDNSAnswer(responseCode: .noError, answers: addresses.map { a(www, ttl, $0) }))
  }

  /// The parameters of a target; their order and the case of types are those of different clients.
  private func parameters(_ target: some StringProtocol) -> Set<String> {
    Set(target.drop { $0 != "?" }.dropFirst().split(separator: "&").map { $0.lowercased() })
  }

  @Test func `requests have the vectors' parameters`() {
    let requests = [
      oneOneFour.request(for: question(www), unixTime: 0),
      oneOneFour.request(for: question(www, .aaaa, subnet: "198.51.100.7/32"), unixTime: 0),
      dnspod.request(for: question(www), unixTime: 0),
    ]
    #expect(vectors.requests.count == requests.count)
    for (vector, request) in zip(vectors.requests, requests) {
      #expect(parameters(request.target) == parameters(vector.url), "\(vector.case)")
      #expect(request.method == .get && request.fields.isEmpty && request.body.isEmpty)
    }
    #expect(
      requests.map(\.target) == [
        "/d?dn=www.example.com&type=a&ttl=y", "/d?dn=www.example.com&type=aaaa&ttl=y&ip=198.51.100.7",
        "/d?dn=www.example.com&ttl=1",
      ])
  }

  @Test func `replies are read as the vectors mean them, whatever was asked`() throws {
    let expected = [
      "114DNS: a TTL per address, records separated by ;": answer(30, "192.0.2.1", "192.0.2.2"),
      "DNSPod: one TTL at the end": answer(60, "192.0.2.1", "192.0.2.2"), "both: nothing found": noData(),
    ]
    #expect(vectors.responses.count == expected.count)
    for vector in vectors.responses {
      let result = try #require(expected[vector.case], "\(vector.case)")
      for dialect in [dnspod, oneOneFour] { #expect(outcome(response(vector.body), .a, dialect) == result) }
    }
  }

  @Test func `a request has one name, in lower case, and the client's address of either family`() {
    let own = TextDialect(form: .dnspod, path: "/my/path?key=1")
    #expect(
      own.request(for: question("WWW.Example.com.", subnet: "2001:db8::/56"), unixTime: 0).target
        == "/my/path?key=1&dn=www.example.com&ttl=1&ip=2001:db8::")
    #expect(!own.request(for: question(www, subnet: "0.0.0.0/0"), unixTime: 0).target.contains("ip="))
    #expect(dnspod.billing == .free && !dnspod.learnsTimeInTheClear)
  }

  @Test func `AAAA is for 114DNS's form alone, and other types are for neither`() {
    #expect(dnspod.serves(question(www)) && !dnspod.serves(question(www, .aaaa)))
    #expect(oneOneFour.serves(question(www)) && oneOneFour.serves(question("_a-1.example", .aaaa)))
    for dialect in [dnspod, oneOneFour] {
      for type in [RecordType.txt, .https, .cname, RecordType(255)] { #expect(!dialect.serves(question(www, type))) }
      for name in [".", "a,b.example", "a;b.example", "a&b.example", "*.example"] {
        #expect(!dialect.serves(question(name)))
      }
    }
  }

  @Test(
    arguments: [
      ("192.0.2.1", 600), ("192.0.2.1,", 600), ("192.0.2.1,x", 600), ("192.0.2.1,1e9", 600), ("192.0.2.1,0", 0),
      ("192.0.2.1,7.9", 7), ("192.0.2.1,-1", 0), ("192.0.2.1,99999999999", UInt32(Int32.max)), ("192.0.2.1;", 600),
      (" 192.0.2.1 , 7 \r\n", 7), ("192.0.2.1,9;", 9),
    ] as [(String, UInt32)])
  func `a TTL is the number that stands there, or 600`(body: String, ttl: UInt32) {
    #expect(outcome(response(body)) == answer(ttl, "192.0.2.1"))
  }

  @Test(
    arguments: [
      ("192.0.2.1,9;192.0.2.2,7", 7), ("192.0.2.1,7;192.0.2.2,x", 7), ("192.0.2.1;192.0.2.2,900", 900),
      ("192.0.2.1,900;192.0.2.2", 900), ("192.0.2.1,x;192.0.2.2,y", 600),
    ] as [(String, UInt32)])
  func `of several TTLs the lowest counts, and what is no number does not`(body: String, ttl: UInt32) {
    #expect(outcome(response(body)) == answer(ttl, "192.0.2.1", "192.0.2.2"))
  }

  @Test func `families that are mixed are divided`() {
    let mixed = response("192.0.2.1,9;2001:db8::1,7")
    #expect(outcome(mixed) == answer(7, "192.0.2.1") && outcome(mixed, .aaaa) == answer(7, "2001:db8::1"))
    #expect(outcome(response("2001:db8::1,7")) == noData() && outcome(response("192.0.2.1"), .aaaa) == noData())
    for empty in ["", "\n", " \r\n\t"] { #expect(outcome(response(empty)) == noData()) }
  }

  @Test(arguments: [
    "Service Unavailable", "no such host", "0", "error,60", "192.0.2.1:80", "192.0.2.1:80,60", "\"192.0.2.1\"",
    "192.0.2.1;x", "x;192.0.2.1", "192.0.2.1;;192.0.2.2", ";", ";;", ",", ",60", "192.0.2.1,60,70",
    "192.0.2.1|192.0.2.7",
    "192.0.2.1 192.0.2.2", "192.0.2.1\n192.0.2.2", "192.0.2.256", "[2001:db8::1]", "{\"ips\":[]}", "192.0.2.1;<p>",
    "192.0.2.1\u{0}", "192.0.2.1/24", "\u{feff}192.0.2.1", "www.example.com.:192.0.2.1,60",
  ])
  func `anything but an address in its place makes the whole reply unreadable`(body: String) {
    for type in [RecordType.a, .aaaa] { #expect(outcome(response(body), type) == .failure(.unreadable(.syntax))) }
  }

  @Test func `a page is no reply, and any other media type may be one`() {
    for type in ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml"] {
      #expect(outcome(response("192.0.2.1", contentType: type)) == .failure(.unreadable(.mediaType)))
    }
    for type in [nil, "text/plain", "application/octet-stream", "application/json", ""] {
      #expect(outcome(response("192.0.2.1,7", contentType: type)) == answer(7, "192.0.2.1"))
    }
    for page in ["<html>", " \n<!DOCTYPE html>"] {
      #expect(outcome(response(page)) == .failure(.unreadable(.page)))
    }
    let large = String(repeating: "192.0.2.1;", count: 6554)
    #expect(outcome(response(large)) == .failure(.unreadable(.tooLarge)))
    #expect((try? outcome(response(String(large.dropLast(20)))).get().answers.count) == 1, "the same address once")
  }

  @Test(arguments: [301, 400, 403, 404, 500, 503]) func `another status is a failure with its number`(status: Int) {
    #expect(outcome(response("192.0.2.1,7", status: status)) == .failure(.status(status)))
    var busy = response("", status: 429)
    busy.retryAfter = .seconds(5)
    #expect(outcome(busy) == .failure(.status(429, retryAfter: .seconds(5))))
  }

  @Test func `mutated replies crash nothing and yield no address that is not in them`() {
    var generator = SeededGenerator(seed: testSeed)
    let fragments = [";", ",", " ", "\n", "198.51.100.9", "2001:db8::99", ",0", ":", "x", "\u{0}", "\u{e9}", ".", "-"]
    var accepted = 0
    for round in 0..<4_000 {
      let whole = ["192.0.2.1,60;192.0.2.2,30", "192.0.2.1;192.0.2.2;192.0.2.3,60", "2001:db8::1,7;192.0.2.1"][
        round % 3]
      let body = generator.mutated(Array(whole.utf8), with: fragments, damages: 1...3)
      for type in [RecordType.a, .aaaa] {
        guard let answer = try? outcome(HTTPResponse(status: 200, body: body), type).get() else { continue }
        accepted += answer.answers.isEmpty ? 0 : 1
        #expect(answer.answers.allSatisfy { $0.owner.text == "\(www)." && $0.type == type && $0.ttl <= Int32.max })
        #expect(answer.isNegative == answer.answers.isEmpty && answer.isEmptyAmbiguous == answer.isNegative)
        let texts = String(decoding: body, as: UTF8.self).split {
          ";, \r\n\t\u{0B}\u{0C}".unicodeScalars.contains($0.unicodeScalars.first!)
        }
        let found = Set(texts.compactMap { IPAddress(text: $0)?.octets })
        #expect(answer.answers.allSatisfy { found.contains($0.rdata) }, "seed \(testSeed): \(texts)")
      }
    }
    #expect((100..<7_900).contains(accepted), "\(accepted)")
  }
}
