// EMASDialectTests.swift -- version 1 of the EMAS API: what is sent, and what replies mean.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct EMASDialectTests {
  let www = "www.example.com"
  let unsigned = EMASDialect(accountID: "100000", secretKey: nil, isEncrypted: false)

  /// A body for one name.
  func single(_ members: String, host: String = "www.example.com") -> HTTPResponse {
    json(#"{"host":"\#(host)",\#(members)}"#)
  }

  @Test func `one name and several names have paths of their own, with a key and without`() {
    #expect(unsigned.request(for: batch([www]), unixTime: 0).target == "/100000/d?host=www.example.com&query=4")
    #expect(
      unsigned.request(for: batch(["a.example", "b.example"], [.aaaa]), unixTime: 0).target
        == "/100000/resolve?host=a.example,b.example&query=6")
    #expect(emas.request(for: batch([www]), unixTime: 0).target.hasPrefix("/100000/sign_d?"))
    #expect(emas.request(for: batch([www, "b.example"]), unixTime: 0).target.hasPrefix("/100000/sign_resolve?"))
  }

  @Test func `a name is sent and signed in lower case and without its final dot`() {
    let target = emas.request(for: batch(["WWW.Example.COM."]), unixTime: 1_700_000_000).target
    #expect(
      target
        == "/100000/sign_d?host=www.example.com&query=4&t=1700000600&s=a664ed82defd92520beb49a6336afd63")
  }

  @Test func `a subnet is sent as its first address, and one of no bits not at all`() {
    func address(_ subnet: String) -> Bool {
      unsigned.request(for: batch([www], subnet: subnet), unixTime: 0).target.contains("&ip=")
    }
    #expect(
      unsigned.request(for: batch([www], subnet: "203.0.113.77/24"), unixTime: 0).target
        == "/100000/d?host=www.example.com&query=4&ip=203.0.113.0")
    #expect(
      unsigned.request(for: batch([www], subnet: "2001:db8::/56"), unixTime: 0).target.hasSuffix("&ip=2001:db8::"))
    #expect(address("0.0.0.0/1") && !address("0.0.0.0/0") && !address("::/0"))
  }

  @Test func `an account with special characters adds no path and no parameter`() {
    let dialect = EMASDialect(accountID: "1/../2?x=y&z", secretKey: nil, isEncrypted: true)
    #expect(
      dialect.request(for: batch([www]), unixTime: 0).target
        == "/1%2F..%2F2%3Fx%3Dy%26z/d?host=www.example.com&query=4")
  }

  @Test func `addresses of plain names are served and nothing else`() {
    for dialect in [emas, emasV2] as [any BatchDialect] {
      #expect(dialect.mostNames == 5)
      #expect(dialect.serves(question(www)) && dialect.serves(question("_a-1.example", .aaaa)))
      for type in [RecordType.txt, .https, .cname, .srv, RecordType(255)] {
        #expect(!dialect.serves(question(www, type)))
      }
      for name in [".", "a,b.example", "a&b.example", #"a\.b.example"#, #"a\"b.example"#, "a b.example", "*.example"] {
        #expect(!dialect.serves(question(name)))
      }
    }
  }

  @Test func `what is left of the TTL counts before the zone's own, and a minute where neither is positive`() throws {
    for (members, ttl) in [
      (#""ttl":57,"origin_ttl":60"#, 57), (#""ttl":0,"origin_ttl":60"#, 60), (#""ttl":57"#, 57),
      (#""origin_ttl":60"#, 60), (#""ttl":"57""#, 57), (#""ttl":-1,"origin_ttl":"60""#, 60),
      (#""ttl":-3,"origin_ttl":0"#, 60), (#""ttl":null"#, 60), (#""x":1"#, 60), (#""ttl":"""#, 60), (#""ttl":1.5"#, 1),
      (#""ttl":2147483648"#, 2_147_483_647), (#""ttl":"99999999999""#, 2_147_483_647),
    ] as [(String, UInt32)] {
      let answer = try emas.answer(to: question(www), from: single(#""ips":["192.0.2.1"],"# + members))
      #expect(answer.answers == [a(www, ttl, "192.0.2.1")], "\(members)")
    }
    for text in [#""x""#, "[1]", "true"] {
      let response = single(#""ips":["192.0.2.1"],"origin_ttl":\#(text)"#)
      #expect(failure(of: response, to: question(www), with: emas) == .unreadable(.number), "\(text)")
    }
  }

  @Test func `an empty list is NODATA that may mean something else, and never NXDOMAIN`() {
    for members in [#""ips":[]"#, #""ips":[],"ipsv6":[]"#, #""ipsv6":["2001:db8::1"]"#] {
      #expect(outcomes(batch([www]), single(members)) == [noData()])
    }
    #expect(outcomes(batch([www], [.aaaa]), single(#""ips":["192.0.2.1"]"#)) == [noData()])
  }

  @Test func `host is compared without regard to case and final dot, and another host is another question`() {
    let body = #""ips":["192.0.2.1"],"ttl":60"#
    for host in [www, "WWW.example.com.", "www.example.com."] {
      #expect(outcomes(batch([www]), single(body, host: host)) == [positive(a(www, 60, "192.0.2.1"))])
    }
    for host in ["example.com", "www.example.com..", "", "www.example.com,b.example"] {
      #expect(outcomes(batch([www]), single(body, host: host)) == [.failure(.wrongQuestion)])
    }
  }

  @Test func `batches have an element for each name and family, in any order`() {
    let body = #"""
      {"dns":[
        {"host":"b.example","ips":["2001:db8::2"],"type":28,"ttl":7},
        {"host":"c.example","ips":["192.0.2.3"],"ipsv6":["2001:db8::3"],"ttl":8},
        {"host":"stray.example","ips":["192.0.2.9"],"type":1},
        {"host":"a.example","ips":["192.0.2.1"],"type":1,"ttl":9},
        {"host":"a.example","ipsv6":["2001:db8::1"],"type":"28","ttl":9},
        {"host":"b.example","ips":["198.51.100.1"],"type":5},
        {"host":"a.example","ips":["192.0.2.7"],"type":1,"ttl":5}]}
      """#
    #expect(
      outcomes(batch(["a.example", "b.example", "c.example", "d.example"], [.a, .aaaa]), json(body)) == [
        positive(a("a.example", 5, "192.0.2.1"), a("a.example", 5, "192.0.2.7")),
        positive(a("a.example", 9, "2001:db8::1")), .failure(.wrongQuestion),
        positive(a("b.example", 7, "2001:db8::2")),
        positive(a("c.example", 8, "192.0.2.3")), positive(a("c.example", 8, "2001:db8::3")),
        .failure(.wrongQuestion), .failure(.wrongQuestion),
      ])
  }

  @Test func `an element or a list that cannot be read spoils nothing else`() {
    let body = #"""
      {"dns":[{"host":"a.example","ips":["192.0.2.1","x"],"type":1},{"host":"b.example","ips":["192.0.2.2"],"type":1},
      {"host":"c.example","ips":["2001:db8::3"],"type":1},{"host":"d.example","ips":"192.0.2.4","type":1},
      {"host":"e.example","ips":[4],"type":1}]}
      """#
    let names = ["a.example", "b.example", "c.example", "d.example", "e.example"]
    #expect(
      outcomes(batch(names), json(body)) == [
        positive(a("a.example", 60, "192.0.2.1")), positive(a("b.example", 60, "192.0.2.2")),
        .failure(.unreadable(.rdata)), .failure(.unreadable(.shape("ips"))), .failure(.unreadable(.rdata)),
      ])
  }

  @Test func `a reply that answers no question of a batch is a failure of the whole`() {
    let body = json(#"{"dns":[{"host":"a.example","ips":["x"],"type":1}]}"#)
    #expect(throws: HTTPDNSFailure.unreadable(.rdata)) {
      try emas.answers(to: batch(["a.example", "b.example"]), from: body)
    }
    #expect(throws: HTTPDNSFailure.wrongQuestion) { try emas.answers(to: batch(["b.example"]), from: body) }
    #expect(throws: HTTPDNSFailure.wrongQuestion) {
      try emas.answers(to: batch(["b.example", "c.example"], [.a, .aaaa]), from: json(#"{"dns":[]}"#))
    }
  }

  @Test(arguments: [
    ("[]", "host"), ("{}", "host"), (#"{"ttl":60}"#, "host"), (#"{"host":7}"#, "host"), (#"{"dns":{}}"#, "dns"),
    (#"{"host":"www.example.com","ips":{}}"#, "ips"),
  ])
  func `EMAS JSON of another shape is refused, and the failure names the member`(body: String, member: String) {
    #expect(failure(of: json(body), to: question(www), with: emas) == .unreadable(.shape(member)))
  }

  @Test(arguments: [
    #"{"ips":["192.0.2.1"],"ttl":57}"#, #"{"host":"www.example.com","ips":["192.0.2.1"],"origin_ttl":57}"#,
    #"{"dns":[{"ips":["192.0.2.1"],"ttl":57}]}"#,
    #"{"dns":[1,{"host":"other.example","ips":[7]},{"type":"A"},"#
      + #"{"host":"www.example.com","ips":["192.0.2.1"],"ttl":57,"type":1,"more":[]}]}"#,
  ])
  func `EMAS JSON without what is optional, and with senseless neighbours, is read`(body: String) {
    #expect(outcomes(batch([www]), json(body)) == [positive(a(www, 57, "192.0.2.1"))])
  }

  @Test(arguments: [
    #"{"host":"www.example.com"}"#, #"{"ips":[]}"#, #"{"host":"www.example.com","ips":null}"#,
    #"{"dns":[{"host":"www.example.com"}]}"#, #"{"host":7,"ips":[]}"#,
  ])
  func `a name without a list has no addresses, for all that the reply says`(body: String) {
    #expect(outcomes(batch([www]), json(body)) == [noData()])
  }

  @Test(arguments: [
    #"{"dns":[1]}"#, #"{"dns":[]}"#, #"{"dns":[{"host":"www.example.com","ips":[],"type":"A"}]}"#,
  ])
  func `an element that no name can be known of answers none`(body: String) {
    #expect(outcomes(batch([www]), json(body)) == [.failure(.wrongQuestion)])
  }

  @Test func `of several names an element without its name answers none`() {
    let body = #"{"dns":[{"ips":["192.0.2.1"]},{"host":"b.example","ips":["192.0.2.2"],"ttl":5}]}"#
    #expect(
      outcomes(batch(["a.example", "b.example"]), json(body))
        == [.failure(.wrongQuestion), positive(a("b.example", 5, "192.0.2.2"))])
  }

  @Test func `parameters of the account's own are sent as they are, and the signature does not cover them`() {
    let own = EMASDialect(
      accountID: "100000", secretKey: Secret("EmasSecret01"), parameters: ["tags": "a=b", "sdns-isp": "mobile_1"],
      isEncrypted: true)
    let plain = emas.request(for: batch([www]), unixTime: 1_700_000_000).target
    #expect(own.request(for: batch([www]), unixTime: 1_700_000_000).target == plain + "&sdns-isp=mobile_1&tags=a%3Db")
  }

  @Test func `the owner is spelled as it was asked`() throws {
    let answer = try emas.answer(to: question("wWw.example.com"), from: single(#""ips":["192.0.2.1"]"#))
    #expect(answer.answers.map(\.owner.text) == ["wWw.example.com."])
  }

  @Test func `each name and family with addresses costs 1, 3, 5 or 8 units, a transfer nothing`() throws {
    func v2(_ aes: Configuration.AESMode?, _ isEncrypted: Bool) -> Billing {
      emasV2Dialect(aes: aes, isEncrypted: isEncrypted).billing
    }
    let prices = [unsigned.billing, v2(nil, false), v2(.cbc, false), v2(.gcm, false)].map(\.unitsPerAnswer)
    #expect(prices == [1, 1, 3, 3])
    #expect([emas.billing, v2(nil, true), v2(.cbc, true), v2(.gcm, true)].map(\.unitsPerAnswer) == [5, 5, 8, 8])
    #expect(emas.billing.units(answers: 0) == 0 && emas.billing.units(answers: 2) == 10)
    #expect(!emas.billing.isEstimate && emas.billing.source.contains("billing"))
  }

  @Test func `no secret stands in any description`() throws {
    let dialect = EMASDialect(accountID: "canary-account", secretKey: Secret("canary-secret"), isEncrypted: true)
    let second = emasV2Dialect(aes: .gcm)
    let schedule = EMASSchedule(accountID: "canary-account")
    var shown = ""
    for value in [dialect, second, schedule, dialect.request(for: batch([www]), unixTime: 0)] as [any Sendable] {
      shown += "\(value) \([value]) \(String(reflecting: value))"
      dump(value, to: &shown)
      dump([value], to: &shown)
    }
    #expect(shown.contains("emas"))
    for hidden in ["canary-secret", "0b0c0d0e", "11, 12, 13", "44556677", "68, 85"] { #expect(!shown.contains(hidden)) }
    #expect(!"\(dialect) \(schedule)".contains("canary"))
  }
}
