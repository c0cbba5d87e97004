// VolcengineTests.swift -- Volcengine HTTPDNS: the vectors, what is sent, and what replies mean.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

/// The part of Data/provider_vectors_more.json that these tests read.
private struct VolcengineVectors: Decodable {
  struct Published: Decodable {
    let string, sign: String
  }
  struct Request: Decodable {
    let `case`, secret_key, timestamp, account_id, domain, ip, type, string_to_hash, sign, url: String
  }
  struct Body: Decodable {
    let `case`: String
    let http: Int
    let body: String
  }
  struct Volcengine: Decodable {
    let published: [Published]
    let vectors: [Request]
    let responses: [Body]
  }
  let volcengine: Volcengine

  static let all = vectors(VolcengineVectors.self, in: "provider_vectors_more.json").volcengine
}

let volcengine = VolcengineDialect(
  account: .init(id: "2100000001", secret: Secret("VolcSecret01")), isEncrypted: true)

@Suite struct VolcengineTests {
  private let vectors = VolcengineVectors.all
  private let www = "www.example.com"
  private var both: QuestionBatch { batch([www], [.a, .aaaa]) }

  @Test func `signatures are the vectors', and so are the targets of the form that is sent`() throws {
    #expect(vectors.vectors.count == 8)
    var sent = 0
    for vector in vectors.vectors {
      let secret = Secret(vector.secret_key)
      let values = [vector.timestamp, vector.account_id, vector.domain, vector.ip, vector.type]
      #expect(VolcengineDialect.signature(of: secret, values) == vector.sign, "\(vector.case)")
      #expect(Hexadecimal.encode(Digest.md5(Array(vector.string_to_hash.utf8))) == vector.sign)
      guard vector.type == "0" else { continue }
      sent += 1
      let dialect = VolcengineDialect(
        account: .init(id: vector.account_id, secret: secret), isEncrypted: true)
      let request = dialect.request(
        for: batch(vector.domain.split(separator: ",").map(String.init), [.a, .aaaa]),
        unixTime: try #require(Int64(vector.timestamp)) / 1000 - 600)
      #expect("https://httpdns.volcengineapi.com\(request.target)" == vector.url, "\(vector.case)")
      #expect(request.method == .get && request.body.isEmpty && request.fields.isEmpty)
    }
    #expect(sent == 4)
  }

  @Test func `the published signature is met`() {
    let texts = ["", "", "1023", "1566808387000", "www.a.com,www.b.com"]
    #expect(vectors.published.map(\.string) == ["__1023_1566808387000_QlgAuFMwNUwN_www.a.com,www.b.com"])
    #expect(VolcengineDialect.signature(of: Secret("QlgAuFMwNUwN"), texts) == vectors.published[0].sign)
  }

  @Test func `replies are read as the vectors mean them`() throws {
    let one = [
      positive(a(www, 52, "192.0.2.1"), a(www, 52, "192.0.2.2")), positive(a(www, 52, "2001:db8::1")),
    ]
    let expected: [String: (QuestionBatch, [Result<HTTPDNSAnswer, HTTPDNSFailure>])] = [
      "one name, families mixed in ips": (both, one), "one name with weights": (both, [one[0], noData()]),
      "several names (inferred from the in-house twin of the service)": (
        batch(["a.example.com", "b.example.com"], [.a, .aaaa]),
        [
          positive(a("a.example.com", 52, "192.0.2.1")), noData(), noData(),
          positive(a("b.example.com", 60, "2001:db8::2")),
        ]
      ),
    ]
    #expect(vectors.responses.count == expected.count)
    for vector in vectors.responses {
      let (batch, results) = try #require(expected[vector.case], "\(vector.case)")
      #expect(outcomes(batch, json(vector.body, status: vector.http), volcengine) == results, "\(vector.case)")
    }
  }

  @Test func `every request asks for both families, and the client's address is signed`() {
    for types in [[RecordType.a], [.aaaa], [.a, .aaaa]] {
      #expect(volcengine.request(for: batch([www], types), unixTime: 0).target.hasSuffix("&type=0"))
    }
    #expect(volcengine.families == .both && volcengine.mostNames == 10)
    let target = volcengine.request(for: batch(["WWW.Example.com."], subnet: "198.51.100.7/32"), unixTime: 0).target
    let sign = VolcengineDialect.signature(
      of: Secret("VolcSecret01"), ["600000", "2100000001", www, "198.51.100.7", "0"])
    #expect(
      target
        == "/resolve?domain=www.example.com&account_id=2100000001&sign=\(sign)&timestamp=600000&ip=198.51.100.7&type=0")
    #expect(
      volcengine.request(for: batch([www], subnet: "2001:db8::/56"), unixTime: 0).target.contains("&ip=2001:db8::&"))
    #expect(!volcengine.request(for: batch([www], subnet: "0.0.0.0/0"), unixTime: 0).target.contains("&ip="))
  }

  @Test func `an account with special characters adds no parameter, and is signed as it is`() {
    let odd = VolcengineDialect(account: .init(id: "1&x=y#z", secret: Secret("s")), isEncrypted: true)
    let target = odd.request(for: both, unixTime: 0).target
    let sign = VolcengineDialect.signature(of: Secret("s"), ["600000", "1&x=y#z", www, "", "0"])
    #expect(target == "/resolve?domain=\(www)&account_id=1%26x%3Dy%23z&sign=\(sign)&timestamp=600000&type=0")
  }

  @Test func `addresses of plain names are served and nothing else`() {
    #expect(volcengine.serves(question(www)) && volcengine.serves(question("_a-1.example", .aaaa)))
    for type in [RecordType.txt, .https, .cname, RecordType(255)] { #expect(!volcengine.serves(question(www, type))) }
    for name in [".", "a,b.example", "a_&b.example", "*.example"] { #expect(!volcengine.serves(question(name))) }
  }

  @Test func `a name costs 5 units over https and 1 over http`() {
    #expect(volcengine.billing.units(names: 2, answers: 4) == 10)
    let plain = VolcengineDialect(account: .init(id: "1", secret: Secret("s")), isEncrypted: false)
    #expect(plain.billing.units(names: 2, answers: 4) == 2 && plain.billing.isBilled && plain.billing.isEstimate)
  }

  @Test func `several names come as an object with a list, or as a list`() {
    let elements =
      #"[{"host":"b.example","ips":["192.0.2.2"]},{"host":"A.example.","ips":["192.0.2.1","2001:db8::1"],"ttl":"7"}]"#
    for body in [elements, #"{"cip":"192.0.2.9","dns":\#(elements)}"#] {
      #expect(
        outcomes(batch(["a.example", "b.example", "c.example"], [.a, .aaaa]), json(body), volcengine) == [
          positive(a("a.example", 7, "192.0.2.1")), positive(a("a.example", 7, "2001:db8::1")),
          positive(a("b.example", 60, "192.0.2.2")), noData(), noData(), noData(),
        ])
    }
  }

  @Test(arguments: [
    #"{"host":"www.example.com","ips":[],"ttl":60}"#, #"{"host":"www.example.com","ips":null}"#,
    #"{"host":"www.example.com"}"#, #"{"ips":[]}"#, #"{"dns":[]}"#, "[]",
  ])
  func `nothing found is empty and may mean anything`(body: String) {
    #expect(outcomes(both, json(body), volcengine) == [noData(), noData()])
  }

  @Test(arguments: [
    ("{}", HTTPDNSFailure.unreadable(.shape("ips"))), (#"{"code":1,"message":"x"}"#, .unreadable(.shape("ips"))),
    (#"{"dns":{}}"#, .unreadable(.shape("dns"))),
    (#"{"host":"www.example.com","ips":"192.0.2.1"}"#, .unreadable(.shape("ips"))),
    (#"{"host":"www.example.com","ips":["x"]}"#, .unreadable(.rdata)),
    (#"{"host":"www.example.com","ips":["192.0.2.1"],"ttl":"x"}"#, .unreadable(.number)),
    (#"{"host":"b.example","ips":["192.0.2.1"]}"#, .wrongQuestion), ("", .unreadable(.syntax)),
    (#"{"ips":["192.0.2.1"],"ips":[]}"#, .unreadable(.syntax)), (#"{"ips":[]}[]"#, .unreadable(.syntax)),
    ("Forbidden", .unreadable(.syntax)), ("[1]", .unreadable(.shape("ips"))),
    (#"["x",{}]"#, .unreadable(.shape("ips"))),
    (#"{"dns":[{"error":7}]}"#, .unreadable(.shape("ips"))), (#"{"host":5,"ips":[]}"#, .unreadable(.shape("ips"))),
  ])
  func `a body without an answer is the failure`(body: String, expected: HTTPDNSFailure) {
    #expect(failure(of: json(body), to: question(www), with: volcengine) == expected)
  }

  @Test(arguments: [400, 401, 404, 405, 429, 500, 503, 302])
  func `403 may mean an unlisted name, and every other status is what it says`(status: Int) {
    var response = json(#"{"host":"www.example.com","ips":["192.0.2.1"]}"#, status: status)
    response.retryAfter = .seconds(7)
    let expected = HTTPDNSFailure.status(status, retryAfter: .seconds(7))
    #expect(failure(of: response, to: question(www), with: volcengine) == expected)
    response.status = 403
    #expect(failure(of: response, to: question(www), with: volcengine) == .notListed)
    #expect(HTTPDNSFailure.notListed.isUndecided && !HTTPDNSFailure.notListed.isOfAccount)
  }

  @Test func `the time over http is taken from Date, and the dialect shows no secret`() {
    #expect(volcengine.learnsTimeInTheClear && volcengine.unixTime(in: json("{}", status: 403)) == nil)
    #expect("\(volcengine)" == "volcengine" && Mirror(reflecting: volcengine).children.isEmpty)
  }
}
