// AnswerCheckTests.swift -- the checks that every dialect's answers pass, shown with JSON replies.

import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct AnswerCheckTests {
  let www = "www.example.com"

  @Test func `a chain in any order comes out in order, without strays`() throws {
    let records = [
      record("c.example.net", 1, "192.0.2.2"), record("stray.example", 1, "198.51.100.1"),
      record("b.example.org", 5, "c.example.net."), record("stray.example", 5, "c.example.net"),
      record("WWW.example.com.", 5, "B.example.org."), record("C.example.net.", 1, "192.0.2.1"),
      record("www.example.com", 28, "2001:db8::1"),
    ]
    let answer = try google.answer(to: question(www), from: reply(www, answer: records))
    #expect(
      answer.answers == [
        cname(www, 300, "B.example.org"), cname("B.example.org", 300, "c.example.net"),
        a("c.example.net", 300, "192.0.2.2"), a("c.example.net", 300, "192.0.2.1"),
      ])
    #expect(!answer.isNegative)
  }

  @Test func `the owner of the first record is spelled as it was asked`() throws {
    let answer = try google.answer(
      to: question("wWw.eXample.com"),
      from: reply("www.example.com.", answer: [record("WWW.EXAMPLE.COM.", 1, "192.0.2.1")]))
    #expect(answer.answers.map(\.owner.text) == ["wWw.eXample.com."])
  }

  @Test func `a chain that ends without the asked type is NODATA and stays`() throws {
    let answer = try google.answer(
      to: question(www, .aaaa),
      from: reply(
        www, 28, answer: [record(www, 5, "b.example.com")],
        authority: [record("example.com.", 6, "ns1.example.com. hostmaster.example.com. 2024010101 3600 600 604800 60")]
      ))
    #expect(answer.answers == [cname(www, 300, "b.example.com")])
    #expect(answer.responseCode == .noError && answer.isNegative && !answer.isEmptyAmbiguous)
    #expect(answer.authorities == [soa(300, minimum: 60)])
    #expect(answer.negativeTTL == 60)
  }

  @Test func `a question for CNAME is answered with the record and not followed`() throws {
    let answer = try google.answer(
      to: question(www, .cname),
      from: reply(www, 5, answer: [record(www, 5, "b.example.com"), record("b.example.com", 5, "c.example.com")]))
    #expect(answer.answers == [cname(www, 300, "b.example.com")])
    #expect(!answer.isNegative)
  }

  @Test func `sixteen links are followed, seventeen are not`() throws {
    func chain(_ links: Int) -> HTTPResponse {
      let names = (0...links).map { "n\($0).example" }
      return reply(
        names[0],
        answer: zip(names, names.dropFirst()).map { record($0, 5, $1) } + [record(names[links], 1, "192.0.2.1")])
    }
    #expect(try google.answer(to: question("n0.example"), from: chain(16)).answers.count == 17)
    #expect(failure(of: chain(17), to: question("n0.example")) == .unreadable(.chain))
  }

  @Test func `a loop and a gap are refused`() {
    let loops = [[record(www, 5, www)], [record(www, 5, "b.example"), record("b.example", 5, www)]]
    let gap = [record(www, 5, "b.example"), record("c.example", 1, "192.0.2.1")]
    for records in loops + [gap] {
      #expect(failure(of: reply(www, answer: records), to: question(www)) == .unreadable(.chain))
    }
  }

  @Test(arguments: ["b.example", "c.example"])
  func `of two CNAME records at one name the first that leads on counts`(end: String) throws {
    let fork = [record(www, 5, "b.example"), record(www, 5, "c.example"), record(end, 1, "192.0.2.1")]
    let answer = try google.answer(to: question(www), from: reply(www, answer: fork))
    #expect(answer.answers.last == a(end, 300, "192.0.2.1"))
    let deaf = try google.answer(to: question(www), from: reply(www, answer: Array(fork[..<2])))
    #expect(deaf.isNegative && deaf.answers == [cname(www, 300, "b.example")])
  }

  @Test func `a record that cannot be read leaves its neighbours`() throws {
    let broken = [record(www, 1, "192.0.2"), record("..", 1, "192.0.2.9"), #"{"name":"www.example.com"}"#]
    let answer = try google.answer(
      to: question(www), from: reply(www, answer: broken + [record(www, 1, "192.0.2.1")]))
    #expect(answer.answers == [a(www, 300, "192.0.2.1")])
    for record in broken {
      let failure = failure(of: reply(www, answer: [record]), to: question(www))
      #expect(failure?.kind == .unreadable, "\(record)")
    }
  }

  @Test func `an RRset has its lowest TTL and no record twice`() throws {
    let answer = try google.answer(
      to: question(www),
      from: reply(
        www,
        answer: [
          record(www, 1, "192.0.2.1", ttl: "300"), record(www, 1, "192.0.2.2", ttl: "20"),
          record(www, 1, "192.0.2.1", ttl: "70"), record(www, 1, "192.0.2.2", ttl: "80"),
        ]))
    #expect(answer.answers == [a(www, 20, "192.0.2.1"), a(www, 20, "192.0.2.2")])
  }

  @Test func `a large RRset holds no record twice either`() throws {
    let addresses = (0..<200).map { "192.0.2.\($0 % 100)" }
    let answer = try google.answer(to: question(www), from: reply(www, answer: addresses.map { record(www, 1, $0) }))
    #expect(answer.answers == addresses[..<100].map { a(www, 300, $0) })
  }

  @Test(arguments: ["www.example.co", "www.example.comx", "www-example.com", "ww.wexample.com", "www.example.com.."])
  func `a name that is nearly QNAME is not QNAME`(name: String) {
    let response = reply(www, answer: [record(name, 1, "192.0.2.1")])
    #expect(failure(of: response, to: question(www)) == .unreadable(name.hasSuffix("..") ? .name : .chain))
    let asked = name.hasSuffix("..") ? HTTPDNSFailure.unreadable(.name) : .wrongQuestion
    #expect(failure(of: reply(name), to: question(www)) == asked)
  }

  @Test(arguments: [
    ("0", 0), ("2147483647", 2_147_483_647), ("2147483648", 2_147_483_647), ("9223372036854775807", 2_147_483_647),
    (#""120""#, 120), (#""99999999999""#, 2_147_483_647), ("-1", 0), (#""-1""#, 0), ("1.5", 1), (#""1.5""#, 1),
    (#""""#, 0), ("null", 0),
  ])
  func `a TTL out of range is brought into it`(text: String, ttl: UInt32) throws {
    let response = reply(www, answer: [record(www, 1, "192.0.2.1", ttl: text)])
    #expect(try google.answer(to: question(www), from: response).answers == [a(www, ttl, "192.0.2.1")])
  }

  @Test(arguments: ["true", #""-""#, #""1e3""#, #""1.""#, #"" 60""#, "[300]"])
  func `a TTL that is no number is refused`(text: String) {
    let response = reply(www, answer: [record(www, 1, "192.0.2.1", ttl: text)])
    #expect(failure(of: response, to: question(www)) == .unreadable(.number))
  }

  @Test func `a reply to another question is refused`() {
    #expect(failure(of: reply("other.example.com"), to: question(www)) == .wrongQuestion)
    #expect(failure(of: reply(www, 28), to: question(www)) == .wrongQuestion)
    #expect(failure(of: json(#"{"Status":0,"Question":[]}"#), to: question(www)) == .wrongQuestion)
    let two = #"{"Status":0,"Question":[{"name":"\#(www)","type":1},{"name":"\#(www)","type":28}]}"#
    #expect(failure(of: json(two), to: question(www)) == .wrongQuestion)
  }

  @Test func `a missing question is borne beside data, and from services that are not known to repeat it`() throws {
    let body = json(#"{"Status":0,"Answer":[{"name":"www.example.com.","type":1,"TTL":5,"data":"192.0.2.1"}]}"#)
    let denial = json(#"{"Status":3}"#)
    #expect(try generic.answer(to: question(www), from: denial).responseCode == .nxDomain)
    for dialect in [generic, google, cloudflare, alidns] as [any Dialect] {
      #expect(try dialect.answer(to: question(www), from: body).answers == [a(www, 5, "192.0.2.1")])
    }
    for dialect in [google, cloudflare, alidns] as [any Dialect] {
      #expect(failure(of: denial, to: question(www), with: dialect) == .wrongQuestion)
    }
  }

  @Test func `a truncated reply is no answer`() {
    let body = #"{"Status":0,"TC":true,"Question":{"name":"www.example.com","type":1}}"#
    #expect(failure(of: json(body), to: question(www)) == .truncated)
  }

  @Test func `other response codes come without records and are not negative`() throws {
    let answer = try google.answer(
      to: question(www), from: reply(www, status: 2, answer: [record(www, 1, "192.0.2.1")]))
    #expect(answer == HTTPDNSAnswer(responseCode: .servFail))
    #expect(failure(of: reply(www, status: 4096), to: question(www)) == .unreadable(.number))
  }

  @Test func `data of the asked type speaks against NXDOMAIN, a chain does not`() throws {
    let data = reply(www, status: 3, answer: [record(www, 1, "192.0.2.1")])
    let denied = try google.answer(to: question(www), from: data)
    #expect(denied.responseCode == .noError && denied.answers == [a(www, 300, "192.0.2.1")])
    let chain = reply(www, status: 3, answer: [record(www, 5, "gone.example.com")])
    let answer = try google.answer(to: question(www), from: chain)
    #expect(answer.responseCode == .nxDomain && answer.isNegative)
    #expect(answer.answers == [cname(www, 300, "gone.example.com")])
  }

  @Test func `an SOA record of a zone that the name is not in is dropped`() throws {
    let data = "ns1.example.com. hostmaster.example.com. 1 3600 600 604800 60"
    for zone in ["example.net.", "www.example.com.evil.", "sub.www.example.com."] {
      let answer = try google.answer(
        to: question(www), from: reply(www, status: 3, authority: [record(zone, 6, data)]))
      #expect(answer.authorities.isEmpty && answer.negativeTTL == nil)
    }
  }

  @Test func `the Authority section of a positive answer is dropped`() throws {
    let answer = try google.answer(
      to: question(www),
      from: reply(
        www, answer: [record(www, 1, "192.0.2.1")],
        authority: [
          record("example.com.", 2, "ns1.example.com."),
          record("example.com.", 6, "ns1.example.com. hostmaster.example.com. 1 3600 600 604800 60"),
        ]))
    #expect(answer.authorities.isEmpty)
  }

  @Test func `unreadable RDATA and unreadable addresses are distinguished`() {
    let strange = reply("example.com", 65, answer: [record("example.com", 65, "something else")])
    #expect(failure(of: strange, to: question("example.com", .https)) == .unsupported)
    let broken = reply(www, answer: [record(www, 1, "192.0.2.256")])
    #expect(failure(of: broken, to: question(www)) == .unreadable(.rdata))
  }

  @Test func `unreadable RDATA of other types is ignored`() throws {
    let answer = try google.answer(
      to: question(www), from: reply(www, answer: [record(www, 65, "?"), record(www, 1, "192.0.2.1")]))
    #expect(answer.answers.count == 1 && answer.isAuthenticated)
  }

  @Test func `signatures follow the records they sign, and are dropped without DO`() throws {
    let signature = ##"\\# 23 0001 0d 03 0000012c 6553f100 6553f100 0001 00 01020304"##
    let records = [record(www, 46, signature), record(www, 1, "192.0.2.1")]
    let signed = try google.answer(to: question(www, dnssecOK: true), from: reply(www, answer: records))
    #expect(signed.answers.map(\.type) == [.a, .rrsig] && signed.isAuthenticated)
    #expect(try google.answer(to: question(www), from: reply(www, answer: records)).answers.map(\.type) == [.a])
  }

  @Test func `unreadable signatures are dropped, and AD with them`() throws {
    let records = [record(www, 46, "?"), record(www, 1, "192.0.2.1")]
    let answer = try google.answer(to: question(www, dnssecOK: true), from: reply(www, answer: records))
    #expect(answer.answers == [a(www, 300, "192.0.2.1")])
    #expect(!answer.isAuthenticated)
  }

  @Test func `a scope counts only for the subnet that was sent`() throws {
    func scope(_ text: String, sent: String?) throws -> Int? {
      let body = #"{"Status":0,"Question":{"name":"\#(www)","type":1},"edns_client_subnet":"\#(text)"}"#
      return try google.answer(to: question(www, subnet: sent), from: json(body)).scopePrefixLength
    }
    #expect(try scope("192.0.2.0/20", sent: "192.0.2.0/24") == 20)
    #expect(try scope("192.0.2.0/0", sent: "192.0.2.0/24") == 0)
    #expect(try scope("192.0.2.0/20", sent: nil) == nil)
    for text in ["198.51.100.0/24", "192.0.2.0/33", "192.0.2.0", "192.0.2.0/x", "2001:db8::/24", ""] {
      #expect(try scope(text, sent: "192.0.2.0/24") == nil)
    }
  }
}
