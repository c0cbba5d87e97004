// JSONServiceTests.swift -- what JSON services send that differs from Google's form: AdGuard, doh.pub, 360, DNS.SB, NextDNS and
// m13253's doh-server.

import DNSWire
import Foundation
import HTTPMessage
import Testing

@testable import HTTPDNS

/// The part of Data/provider_vectors_more.json that these tests read.
private struct JSONServiceVectors: Decodable {
  struct Request: Decodable {
    let `case`, url: String
    let headers: [String: String]?
  }
  struct Body: Decodable {
    let `case`: String
    let http: Int
    let content_type, body: String

    var response: HTTPResponse { json(body, status: http, contentType: content_type) }
  }
  struct Services: Decodable {
    let requests: [Request]
    let adguard_responses, doh_server_responses: [Body]
  }
  let json_doh: Services

  static let all = vectors(JSONServiceVectors.self, in: "provider_vectors_more.json").json_doh
}

@Suite struct `JSON services` {
  private let vectors = JSONServiceVectors.all
  private let www = "www.example.com"

  /// What each of the bodies says; a failure for those that are no verdict.
  private func check(
    _ bodies: [JSONServiceVectors.Body], _ expected: [(String, HTTPDNSQuestion, Result<HTTPDNSAnswer, HTTPDNSFailure>)]
  ) throws {
    #expect(bodies.count == expected.count)
    for (start, question, result) in expected {
      let body = try #require(bodies.first { $0.case.hasPrefix(start) })
      let found = Result { () throws(HTTPDNSFailure) in try generic.answer(to: question, from: body.response) }
      #expect(found == result, "\(start)")
    }
  }

  private func answer(_ records: ResourceRecord...) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    .success(HTTPDNSAnswer(responseCode: .noError, answers: records))
  }

  @Test func `requests are those of the vectors, with the type as a number and one field`() throws {
    #expect(vectors.requests.count == 6)
    for vector in vectors.requests {
      let url = try #require(URL(string: vector.url))
      let path = url.path()
      let host = try #require(url.host())
      let sent = vector.url.replacing("type=A", with: "type=1")
      let type: RecordType = sent.contains("type=28") ? .aaaa : .a
      #expect(JSONDialect.Flavour(host: host, path: path) == .generic)
      let request = JSONDialect(flavour: .generic, path: path).request(
        for: question(www, type, dnssecOK: sent.contains("do=1")), unixTime: 0)
      #expect("https://\(host)\(request.target)" == sent)
      #expect(request.method == .get && request.body.isEmpty)
      // doh-server refuses any other type in Accept, and a Content-Type.
      #expect(request.fields == [HTTPField("Accept", "application/dns-json")])
      #expect(vector.headers?["Accept"] ?? "application/dns-json" == request.fields[0].value)
    }
  }

  @Test func `AdGuard's bodies are read as the vectors mean them`() throws {
    let alias = "alias.example.com"
    let service = try #require(RDATA.parse(text: "1 . alpn=h2,h3 ipv4hint=192.0.2.1,192.0.2.2", type: .https))
    try check(
      vectors.adguard_responses,
      [
        ("A with CNAME", question(alias), answer(cname(alias, 600, www), a(www, 60, "192.0.2.1"))),
        (
          "NXDOMAIN", question("nope.example.com"),
          .success(HTTPDNSAnswer(responseCode: .nxDomain, isNegative: true))
        ),
        ("TXT", question("t.example.com", .txt), answer(txt("t.example.com", 100, "value1", "value2"))),
        (
          "HTTPS", question(www, .https),
          answer(ResourceRecord(owner: DomainName(text: www)!, type: .https, ttl: 100, rdata: service))
        ),
      ])
  }

  @Test func `doh-server's bodies are read as the vectors mean them`() throws {
    try check(
      vectors.doh_server_responses,
      [
        ("A with RRSIG", question(www), answer(a(www, 300, "192.0.2.1"))),
        ("SERVFAIL", question(www), .failure(.status(503))), ("bad parameter", question(www), .failure(.status(400))),
      ])
  }

  @Test func `a comment without the question is no verdict, and SERVFAIL with the question is one`() throws {
    let comment = #""Status":2,"Comment":"Invalid argument value""#
    for dialect in [google, cloudflare, generic] {
      #expect(failure(of: json("{\(comment)}"), to: question(www), with: dialect) == .wrongQuestion)
      let body = json(#"{"Question":[{"name":"www.example.com","type":1}],\#(comment)}"#)
      #expect(try dialect.answer(to: question(www), from: body).responseCode == .servFail)
    }
  }

  @Test(arguments: [
    #""Answer":[ANSWER]"#, #""Answer":[ANSWER],"Authority":null,"Additional":[],"Extra":null"#,
    #""Question":null,"Answer":[ANSWER]"#, #""Answer":[ANSWER],"Question":{"name":"WWW.example.com","type":"1"}"#,
    #""Answer":[ANSWER],"Question":[{"type":1,"name":"www.Example.com."}],"Expires":"x","class":[]"#,
    #""Answer":[{"name":".","type":41,"TTL":0,"data":"x","class":4096},ANSWER]"#,
    #""Answer":[{"name":"www.example.com","type":46,"TTL":0,"data":"A 13 3 300 x"},ANSWER]"#,
  ])
  func `members in any order, absent or empty, say the same`(members: String) throws {
    for record in [
      #"{"name":"www.example.com.","type":1,"TTL":60,"data":"192.0.2.1"}"#,
      #"{"data":"192.0.2.1","class":1,"TTL":"60","type":"1","name":"WWW.EXAMPLE.com","Expires":"x"}"#,
    ] {
      let inner = members.replacing("ANSWER", with: record)
      for body in ["{\"Status\":0,\(inner)}", "{\(inner),\"Status\":\"0\"}"] {
        let answer = try generic.answer(to: question(www), from: json(body))
        #expect(answer.answers == [a(www, 60, "192.0.2.1")], "\(body)")
      }
    }
  }

  @Test(arguments: [
    ("1 . alpn=\\\"h2,h3\\\" port=\\\"443\\\"", "1 . alpn=h2,h3 port=443"),
    ("1 svc.example.com. alpn=h2 ipv6hint=\\\"2001:db8::1\\\"", "1 svc.example.com. alpn=h2 ipv6hint=2001:db8::1"),
  ])
  func `SVCB may have quotes around its values`(data: String, plain: String) throws {
    for type in [RecordType.https, RecordType(64)] {
      let body = reply(www, Int(type.rawValue), answer: [record("www.example.com.", Int(type.rawValue), data)])
      let answer = try generic.answer(to: question(www, type), from: body)
      #expect(answer.answers.map(\.rdata) == [RDATA.parse(text: plain, type: type)])
    }
  }

  @Test(
    arguments: [
      (nil, nil), (0, 1), (1, 1), (29, 29), (30, 30), (31, 30), (86_400, 30),
    ] as [(UInt32?, UInt32?)])
  func `max-age limits a denial without an SOA record to 1 to 30 seconds`(maxAge: UInt32?, kept: UInt32?) throws {
    for (status, answer) in [(3, []), (0, []), (0, [record("www.example.com.", 5, "a.example.com.")])] {
      var response = reply(www, status: status, answer: answer)
      response.maxAge = maxAge
      let answer = try generic.answer(to: question(www), from: response)
      #expect(answer.isNegative && answer.negativeTTL == nil && answer.statedTTL == kept)
    }
  }

  @Test func `max-age says nothing of data, nor of a denial with an SOA record`() throws {
    let zone = record("example.com.", 6, "ns.example.com. h.example.com. 1 3600 600 86400 60")
    for (status, answer, authority) in [(0, [record("www.example.com.", 1, "192.0.2.1")], []), (3, [], [zone])] {
      var response = reply(www, status: status, answer: answer, authority: authority)
      response.maxAge = 5
      let answer = try generic.answer(to: question(www), from: response)
      #expect(answer.statedTTL == nil)
      #expect((answer.answers + answer.authorities).map(\.ttl) == [300])
    }
  }
}
