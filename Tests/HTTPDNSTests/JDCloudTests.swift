// JDCloudTests.swift -- JD Cloud HTTPDNS: the vectors, what is sent, and what replies mean.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

/// The part of Data/provider_vectors_more.json that these tests read.
private struct JDCloudVectors: Decodable {
  struct Published: Decodable {
    let string, s: String
  }
  struct Request: Decodable {
    let `case`, dn, key, t, account_id, string_to_hash, s, url: String
  }
  struct Body: Decodable {
    let `case`: String
    let http: Int
    let body: String
  }
  struct JDCloud: Decodable {
    let published: [Published]
    let vectors: [Request]
    let responses: [Body]
  }
  let jdcloud: JDCloud

  static let all = vectors(JDCloudVectors.self, in: "provider_vectors_more.json").jdcloud
}

let jdcloud = JDCloudDialect(account: .init(id: "123456", secret: Secret("JdKey01")))

@Suite struct JDCloudTests {
  private let vectors = JDCloudVectors.all
  private let www = "www.example.com"

  /// A reply with this list for www.example.com.
  private func reply(_ element: String, status: Int = 200, code: String = "0") -> HTTPResponse {
    json(#"{"ret_code":\#(code),"msg":"x","data":[\#(element)]}"#, status: status)
  }

  @Test func `signatures and targets are the vectors' octet by octet`() throws {
    #expect(vectors.vectors.count == 4)
    for vector in vectors.vectors {
      let key = Secret(vector.key)
      #expect(nameSignature(of: vector.dn, key, expiry: vector.t) == vector.s, "\(vector.case)")
      #expect(Hexadecimal.encode(Digest.md5(Array(vector.string_to_hash.utf8))) == vector.s)
      let request = JDCloudDialect(account: .init(id: vector.account_id, secret: key)).request(
        for: batch(
          vector.dn.split(separator: ",").map(String.init), [vector.url.contains("qt=AAAA") ? .aaaa : .a],
          subnet: vector.url.contains("&ip=") ? "198.51.100.7/32" : nil),
        unixTime: try #require(Int64(vector.t)) - 600)
      #expect("http://103.224.222.208\(request.target)" == vector.url, "\(vector.case)")
      #expect(request.method == .get && request.body.isEmpty && request.fields.isEmpty)
    }
  }

  @Test func `the published signature is met`() {
    #expect(vectors.published.count == 1)
    for vector in vectors.published {
      let parts = vector.string.split(separator: "-").map(String.init)
      #expect(nameSignature(of: parts[0], Secret(parts[1]), expiry: parts[2]) == vector.s)
    }
  }

  @Test func `replies are read as the vectors mean them`() throws {
    let expected: [String: (QuestionBatch, [Result<HTTPDNSAnswer, HTTPDNSFailure>])] = [
      "ok; the published sample has blanks inside the address strings": (
        batch([www]), [positive(a(www, 600, "192.0.2.1"), a(www, 600, "192.0.2.2"))]
      ),
      "ok, AAAA": (batch([www], [.aaaa]), [positive(a(www, 600, "2001:db8::1"))]),
      "name not in the account's list; data is a string": (batch([www]), [noData()]),
    ]
    #expect(vectors.responses.count == expected.count)
    for vector in vectors.responses {
      let (batch, results) = try #require(expected[vector.case], "\(vector.case)")
      #expect(outcomes(batch, json(vector.body, status: vector.http), jdcloud) == results, "\(vector.case)")
    }
  }

  @Test func `a request has one family, and the client's IPv4 address alone`() {
    #expect(jdcloud.families == .one && jdcloud.mostNames == 10)
    #expect(!jdcloud.request(for: batch([www], subnet: "2001:db8::/56"), unixTime: 0).target.contains("&ip="))
    #expect(!jdcloud.request(for: batch([www], subnet: "0.0.0.0/0"), unixTime: 0).target.contains("&ip="))
    #expect(
      jdcloud.request(for: batch(["WWW.Example.com."]), unixTime: 0).target
        == jdcloud.request(for: batch([www]), unixTime: 0).target)
    #expect(jdcloud.billing.units(names: 3, answers: 3) == 3 && jdcloud.billing.isBilled && jdcloud.billing.isEstimate)
    #expect("\(jdcloud)" == "jdcloud" && Mirror(reflecting: jdcloud).children.isEmpty)
  }

  @Test func `addresses of plain names are served and nothing else`() {
    #expect(jdcloud.serves(question(www)) && jdcloud.serves(question("_a-1.example", .aaaa)))
    for type in [RecordType.txt, .https, .cname, RecordType(255)] { #expect(!jdcloud.serves(question(www, type))) }
    for name in [".", "a,b.example", "a&b.example", "*.example"] { #expect(!jdcloud.serves(question(name))) }
  }

  @Test func `several names have an element each, in any order`() {
    let elements =
      #"{"domain":"B.example.","ips":["192.0.2.2"],"ttl":"7"},{"domain":"a.example","ips":["2001:db8::1"," 192.0.2.1 "],"ttl":9}"#
    #expect(
      outcomes(batch(["a.example", "b.example", "c.example"]), reply(elements, code: "\"0\""), jdcloud) == [
        positive(a("a.example", 9, "192.0.2.1")), positive(a("b.example", 7, "192.0.2.2")), noData(),
      ])
  }

  @Test(arguments: [
    #"{"domain":"www.example.com","ips":[],"ttl":60}"#, #"{"domain":"www.example.com","ips":null}"#, "",
    #"{"domain":"www.example.com","ips":["2001:db8::1"],"ttl":60}"#,
  ])
  func `nothing found is empty and may mean anything`(element: String) {
    #expect(outcomes(batch([www]), reply(element), jdcloud) == [noData()])
  }

  @Test(arguments: [#""www.example.com""#, "{}", "null", "7", #"{"domain":["www.example.com"],"ips":[]}"#])
  func `elements that are no list of a name are unreadable, and spoil no others`(element: String) {
    #expect(outcomes(batch([www]), reply(element), jdcloud) == [.failure(.unreadable(.shape("ips")))])
    let good = #"{"domain":"www.example.com","ips":["192.0.2.1"],"ttl":7}"#
    #expect(outcomes(batch([www]), reply("\(element),\(good)"), jdcloud) == [positive(a(www, 7, "192.0.2.1"))])
  }

  @Test func `a name that is not listed is empty, and one of several has each asked alone`() {
    for status in [200, 400, 401, 403, 404] {
      let refusal = json(#"{"ret_code":10015,"msg":"x","data":"www.example.com"}"#, status: status)
      #expect(outcomes(batch([www]), refusal, jdcloud) == [noData()])
      #expect(
        outcomes(batch([www, "b.example"]), refusal, jdcloud) == [.failure(.oneNotListed), .failure(.oneNotListed)])
    }
  }

  @Test(arguments: [
    (400, "10001", HTTPDNSFailure.unexplained), (403, "\"10004\"", .unexplained), (200, "7", .unexplained),
    (401, "10003", .authentication), (403, "0", .unexplained), (429, "10015", .status(429)), (500, "1", .status(500)),
    (302, "0", .status(302)), (403, "-1", .status(403)), (403, "null", .status(403)),
  ])
  func `a code counts in any refusal, and a status says the rest`(status: Int, code: String, expected: HTTPDNSFailure) {
    #expect(failure(of: reply("", status: status, code: code), to: question(www), with: jdcloud) == expected)
    guard status != 200 else { return }
    let bare = json("no JSON", status: status, contentType: "text/html")
    #expect(failure(of: bare, to: question(www), with: jdcloud) == .status(status))
  }

  @Test(arguments: [
    ("{}", HTTPDNSFailure.unreadable(.shape("ret_code"))), (#"{"ret_code":0}"#, .unreadable(.shape("data"))),
    (#"{"ret_code":0,"data":"www.example.com"}"#, .unreadable(.shape("data"))), ("", .unreadable(.syntax)),
    (#"{"ret_code":0,"data":[{"domain":"www.example.com","ips":["x"],"ttl":1}]}"#, .unreadable(.rdata)),
    (#"{"ret_code":0,"data":[{"domain":"www.example.com","ips":["192.0.2.1"]}]}"#, .unreadable(.shape("ttl"))),
    (#"{"ret_code":0,"data":[{"domain":"b.example","ips":["192.0.2.1"],"ttl":1}]}"#, .wrongQuestion),
    (#"{"ret_code":0,"ret_code":0,"data":[]}"#, .unreadable(.syntax)),
    (#"{"ret_code":0,"data":[]}{}"#, .unreadable(.syntax)),
  ])
  func `a body without an answer is the failure`(body: String, expected: HTTPDNSFailure) {
    #expect(failure(of: json(body), to: question(www), with: jdcloud) == expected)
  }

  @Test func `a refusal's code is shown, and its time is that of Date`() {
    #expect(jdcloud.errorCode(in: reply("", status: 403, code: "10004")) == "10004")
    #expect(jdcloud.errorCode(in: reply("")) == nil && jdcloud.errorCode(in: json("{}", status: 403)) == nil)
    #expect(jdcloud.learnsTimeInTheClear && jdcloud.unixTime(in: reply("", status: 403, code: "1")) == nil)
  }
}
