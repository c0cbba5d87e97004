// BaiduTests.swift -- Baidu Cloud HTTPDNS: the vectors, what is sent, and what replies mean.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

/// The part of Data/provider_vectors_more.json that these tests read.
private struct BaiduVectors: Decodable {
  struct Published: Decodable {
    let string, sign: String
  }
  struct Request: Decodable {
    let `case`, dn, secret, account_id, t, string_to_hash, sign, url: String
    let headers: [String: String]
  }
  struct Body: Decodable {
    let `case`: String
    let http: Int
    let body: String
  }
  struct Baidu: Decodable {
    let published: [Published]
    let vectors: [Request]
    let responses: [Body]
  }
  let baidu: Baidu

  static let all = vectors(BaiduVectors.self, in: "provider_vectors_more.json").baidu
}

let baidu = BaiduDialect(
  account: .init(id: "100001", secret: Secret("BaiduSecret01")), isEncrypted: true)

@Suite struct BaiduTests {
  private let vectors = BaiduVectors.all
  private let www = "www.example.com"
  private var both: QuestionBatch { batch([www], [.a, .aaaa]) }

  /// A reply with what it says to www.example.com.
  private func reply(_ families: String, name: String = "www.example.com") -> HTTPResponse {
    json(#"{"msg":"ok","timestamp":1700000000,"data":{"\#(name)":{\#(families)}}}"#)
  }

  @Test func `signatures and targets are the vectors' octet by octet`() throws {
    #expect(vectors.vectors.count == 5)
    for vector in vectors.vectors {
      let secret = Secret(vector.secret)
      #expect(nameSignature(of: vector.dn, secret, expiry: vector.t) == vector.sign, "\(vector.case)")
      #expect(Hexadecimal.encode(Digest.md5(Array(vector.string_to_hash.utf8))) == vector.sign)
      let types: [RecordType] =
        vector.url.contains("type=ipv4") ? [.a] : vector.url.contains("type=ipv6") ? [.aaaa] : [.a, .aaaa]
      let dialect = BaiduDialect(account: .init(id: vector.account_id, secret: secret), isEncrypted: true)
      let request = dialect.request(
        for: batch(
          vector.dn.split(separator: ",").map(String.init), types,
          subnet: vector.url.contains("&ip=") ? "198.51.100.7/32" : nil),
        unixTime: try #require(Int64(vector.t)) - 300)
      #expect("https://180.76.76.200\(request.target)" == vector.url, "\(vector.case)")
      #expect(request.method == .get && request.body.isEmpty && request.fields.isEmpty)
    }
  }

  @Test func `the published signature is met`() {
    for vector in vectors.published {
      let parts = vector.string.split(separator: "-").map(String.init)
      #expect(nameSignature(of: parts[0], Secret(parts[1]), expiry: parts[2]) == vector.sign)
    }
    #expect(vectors.published.count == 1)
  }

  @Test func `replies are read as the vectors mean them`() throws {
    let (a1, b1) = ("a.example.com", "b.example.com")
    let expected: [String: (QuestionBatch, [Result<HTTPDNSAnswer, HTTPDNSFailure>])] = [
      "v4 ok, two names, one without IPv6": (
        batch([a1, b1], [.a, .aaaa]),
        [
          positive(a(a1, 300, "192.0.2.1"), a(a1, 300, "192.0.2.2")), positive(a(a1, 120, "2001:db8::1")),
          positive(a(b1, 60, "192.0.2.3")), noData(),
        ]
      ),
      "v4 ok, document form without per-family msg": (both, [positive(a(www, 300, "192.0.2.1")), noData()]),
      "signature expired: the clock is taken from timestamp and the request repeated once": (
        both, [.failure(.expired), .failure(.expired)]
      ),
      "other error": (both, [.failure(.unexplained), .failure(.unexplained)]),
    ]
    #expect(vectors.responses.count == expected.count)
    for vector in vectors.responses {
      let (batch, results) = try #require(expected[vector.case], "\(vector.case)")
      #expect(outcomes(batch, json(vector.body, status: vector.http), baidu) == results, "\(vector.case)")
    }
  }

  @Test func `names are sent in lower case and without final dot, an account adds no parameter`() {
    let target = baidu.request(for: batch(["WWW.Example.COM."], [.a]), unixTime: 1_700_000_000).target
    #expect(target == vectors.vectors.first { $0.url.hasSuffix("type=ipv4") }!.url.dropFirst(21))
    let odd = BaiduDialect(account: .init(id: "1&x=y#z", secret: Secret("s")), isEncrypted: true)
    #expect(odd.request(for: both, unixTime: 0).target.hasPrefix("/v4/resolve?account_id=1%26x%3Dy%23z&dn="))
    #expect(!baidu.request(for: batch([www], subnet: "0.0.0.0/0"), unixTime: 0).target.contains("ip="))
    #expect(
      baidu.request(for: batch([www], subnet: "2001:db8::/56"), unixTime: 0).target.hasSuffix("&ip=2001:db8::"))
  }

  @Test func `addresses of plain names are served and nothing else`() {
    #expect(baidu.serves(question(www)) && baidu.serves(question("_a-1.example", .aaaa)) && baidu.mostNames == 10)
    for type in [RecordType.txt, .https, .cname, RecordType(255)] { #expect(!baidu.serves(question(www, type))) }
    for name in [".", "a,b.example", "a;b.example", "a&b.example", "*.example"] {
      #expect(!baidu.serves(question(name)))
    }
  }

  @Test func `a name costs 5 units over https, 1 over http, in one family or both`() {
    #expect(baidu.billing.units(names: 1, answers: 2) == 5 && baidu.billing.units(names: 10, answers: 0) == 50)
    let plain = BaiduDialect(account: .init(id: "1", secret: Secret("s")), isEncrypted: false)
    #expect(plain.billing.units(names: 3, answers: 6) == 3 && plain.billing.isBilled && plain.billing.isEstimate)
  }

  @Test func `the client's spelling is kept, and other names and families do not count`() throws {
    let asked = question("WWW.example.com")
    let answer = try baidu.answer(
      to: asked,
      from: json(
        #"{"msg":"ok","data":{"www.Example.com.":{"ipv4":{"ip":["192.0.2.1"],"ttl":"60"},"ipv6":{"ip":["x"]}},"#
          + #""b.example":{"ipv4":{"ip":["192.0.2.9"],"ttl":1}}},"more":[1]}"#))
    #expect(answer.answers.map(\.owner.text) == ["WWW.example.com."] && answer.answers.map(\.ttl) == [60])
  }

  @Test func `nothing found is empty and may mean anything`() {
    for families in [
      "", #""ipv4":{"ip":[],"ttl":60},"ipv6":{"ip":[],"ttl":60}"#, #""ipv4":null,"ipv6":{}"#, #""ipv4":{"msg":"none"}"#,
    ] {
      #expect(outcomes(both, reply(families), baidu) == [noData(), noData()], "\(families)")
    }
    #expect(outcomes(both, json(#"{"msg":"ok","data":{}}"#), baidu) == [noData(), noData()])
  }

  @Test(arguments: [#""x""#, "7", "true"]) func `a name or a family that is no object is unreadable`(
    value: String
  ) {
    let failure = Result<HTTPDNSAnswer, HTTPDNSFailure>.failure(.unreadable(.shape("ip")))
    let name = json(#"{"msg":"ok","data":{"www.example.com":\#(value)}}"#)
    #expect(outcomes(both, name, baidu) == [failure, failure])
    #expect(outcomes(both, reply(#""ipv4":\#(value)"#), baidu) == [failure, noData()])
    let list = #""ipv4":["192.0.2.1"]"#
    #expect(outcomes(both, reply(list), baidu).first == .failure(.unreadable(.shape("ttl"))))
    #expect(outcomes(both, json(#"{"msg":"ok","data":{"www.example.com":null}}"#), baidu) == [noData(), noData()])
  }

  @Test func `a family with addresses needs its TTL, and the other one does not suffer`() {
    let ipv6 = #""ipv6":{"ip":["2001:db8::1"],"ttl":7}"#
    for ttl in ["", #","ttl":null"#, #","ttl":"""#] {
      #expect(
        outcomes(both, reply(#""ipv4":{"ip":["192.0.2.1"]\#(ttl)},\#(ipv6)"#), baidu)
          == [.failure(.unreadable(.shape("ttl"))), positive(a(www, 7, "2001:db8::1"))])
    }
  }

  @Test(arguments: [
    (#"{"msg":"ok"}"#, HTTPDNSFailure.unreadable(.shape("data"))),
    (#"{"msg":"ok","data":[]}"#, .unreadable(.shape("data"))), (#"{"data":{}}"#, .unreadable(.shape("msg"))),
    (#"{"msg":"ok","data":{"other.example":{"ipv4":{"ip":["192.0.2.1"],"ttl":1}}}}"#, .wrongQuestion),
    (#"{"msg":"ok","data":{"www.example.com":{"ipv4":{"ip":["x"],"ttl":1}}}}"#, .unreadable(.rdata)),
    (#"{"msg":"ok","data":{"www.example.com":{},"www.example.com":{}}}"#, .unreadable(.syntax)),
    (#"{"msg":"ok","data":{}}{}"#, .unreadable(.syntax)), ("{\"msg\":\"ok\u{0}\",\"data\":{}}", .unreadable(.syntax)),
    ("[]", .unreadable(.shape("msg"))), ("", .unreadable(.syntax)), ("<html>", .unreadable(.syntax)),
    (#"{"msg":"SignatureExpired","timestamp":1}"#, .expired), (#"{"msg":"NoSuchThing"}"#, .unexplained),
    (#"{"msg":""}"#, .unexplained), (#"{"msg":1}"#, .unreadable(.shape("msg"))),
  ])
  func `a body without an answer is the failure`(body: String, expected: HTTPDNSFailure) {
    #expect(failure(of: json(body), to: question(www), with: baidu) == expected)
  }

  @Test(arguments: [
    (400, "SignatureExpired", HTTPDNSFailure.expired), (403, "SignatureExpired", .expired),
    (401, "SignatureExpired", .authentication), (401, "AnyText", .authentication), (403, "AnyText", .unexplained),
    (400, "AnyText", .unexplained), (404, "AnyText", .unexplained), (403, "ok", .status(403)),
    (429, "AnyText", .status(429)), (500, "AnyText", .status(500)), (302, "ok", .status(302)),
  ])
  func `msg counts in any refusal, and a status says the rest`(status: Int, text: String, expected: HTTPDNSFailure) {
    #expect(failure(of: json(#"{"msg":"\#(text)"}"#, status: status), to: question(www), with: baidu) == expected)
    let bare = json("no JSON", status: status, contentType: "text/html")
    #expect(failure(of: bare, to: question(www), with: baidu) == .status(status))
  }

  @Test func `a refusal's text and time are taken only if they are sound`() {
    #expect(baidu.errorCode(in: json(#"{"msg":"SomeError"}"#, status: 403)) == "SomeError")
    for text in ["ok", "", "a\\nb", "\\u00e9", "a\\\"b", String(repeating: "x", count: 65)] {
      #expect(baidu.errorCode(in: json("{\"msg\":\"\(text)\"}", status: 403)) == nil, "\(text)")
    }
    #expect(baidu.unixTime(in: json(#"{"msg":"x","timestamp":1700000900}"#, status: 403)) == 1_700_000_900)
    #expect(baidu.unixTime(in: json(#"{"timestamp":"1700000900"}"#)) == 1_700_000_900)
    for time in ["-1", "1.5", "\"x\"", "null", "99999999999"] {
      #expect(baidu.unixTime(in: json("{\"timestamp\":\(time)}")) == nil)
    }
    #expect(baidu.learnsTimeInTheClear && "\(baidu)" == "baidu" && Mirror(reflecting: baidu).children.isEmpty)
  }

  @Test func `the page of a portal is refused by its media type`() {
    let page = json("<html>", contentType: "text/html")
    #expect(failure(of: page, to: question(www), with: baidu) == .unreadable(.mediaType))
    for type in ["text/plain; charset=utf-8", "application/json", nil] {
      #expect(outcomes(batch([www]), json(#"{"msg":"ok","data":{}}"#, contentType: type), baidu) == [noData()])
    }
  }
}
