// AnswerSectionTests.swift -- what the sections of a DNS message come to: redirections, referrals, proofs, and at what cost.

import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct `An answer's sections` {
  private func name(_ text: String) -> DomainName { DomainName(text: text)! }

  private func dname(_ owner: String, _ ttl: UInt32, _ target: String) -> ResourceRecord {
    ResourceRecord(owner: name(owner), type: .dname, ttl: ttl, rdata: name(target).octets)
  }

  private func ns(_ owner: String, _ target: String) -> ResourceRecord {
    ResourceRecord(owner: name(owner), type: .ns, ttl: 300, rdata: name(target).octets)
  }

  private func signature(_ owner: String, covering type: RecordType, ttl: UInt32 = 300, tag: UInt8 = 1)
    -> ResourceRecord
  {
    let covered = [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF)]
    let rdata = covered + [13, 2] + [UInt8](repeating: 0, count: 13) + [tag] + name("example.com").octets + [1, 2, 3]
    return ResourceRecord(owner: name(owner), type: .rrsig, ttl: ttl, rdata: rdata)
  }

  private func nsec(_ owner: String, _ next: String = "z.example.com") -> ResourceRecord {
    ResourceRecord(owner: name(owner), type: .nsec, ttl: 300, rdata: name(next).octets + [0, 1, 0x40])
  }

  /// What the dialect makes of a message with those sections, and so does plain DNS.
  private func answer(
    to asked: HTTPDNSQuestion, _ answers: [ResourceRecord], _ authorities: [ResourceRecord] = [], rcode: UInt8 = 0,
    edns: EDNS? = nil
  ) throws -> HTTPDNSAnswer {
    var message = Message.query(Question(name: asked.name, type: asked.type), id: 0)
    message.header.qr = true
    message.header.rcode = rcode
    (message.answers, message.authorities, message.edns) = (answers, authorities, edns)
    let response = HTTPResponse(status: 200, contentType: "application/dns-message", body: try message.compose())
    let answer = try post.answer(to: asked, from: response)
    #expect(try HTTPDNSAnswer(message, to: asked) == answer)
    return answer
  }

  @Test func `a DNAME record stands before the alias that it makes, with DO and without`() throws {
    let records = [
      dname("d.example.com", 300, "t.example.net"), cname("www.d.example.com", 300, "www.t.example.net"),
      a("www.t.example.net", 60, "192.0.2.1"),
    ]
    for dnssecOK in [false, true] {
      let asked = question("www.d.example.com", dnssecOK: dnssecOK)
      #expect(try answer(to: asked, records.reversed()).answers == records)
    }
    let signed = try answer(
      to: question("www.d.example.com", dnssecOK: true), records + [signature("d.example.com", covering: .dname)])
    #expect(signed.answers.map(\.type) == [.dname, .rrsig, .cname, .a])
    // The alias itself was asked for.
    let alias = try answer(to: question("www.d.example.com", .cname), Array(records[..<2]))
    #expect(alias.answers == Array(records[..<2]) && !alias.isNegative)
  }

  @Test func `a question for DNAME below one is an alias, with data at its end or without`() throws {
    let links = [
      dname("d.example.com", 300, "t.example.net"), cname("www.d.example.com", 300, "www.t.example.net"),
    ]
    let asked = question("www.d.example.com", .dname)
    let negative = try answer(
      to: asked, links,
      [ResourceRecord(owner: name("example.net"), type: .soa, ttl: 60, rdata: soa(1, minimum: 1).rdata)])
    #expect(negative.answers == links && negative.isNegative && negative.responseCode == .noError)
    let data = dname("www.t.example.net", 30, "elsewhere.example")
    let positive = try answer(to: asked, links + [data])
    #expect(positive.answers == links + [data] && !positive.isNegative)
    // One that leads nowhere is a stray, as data of any other type is.
    #expect(throws: HTTPDNSFailure.unreadable(.chain)) { try answer(to: asked, links + [dname("x.example", 1, "y")]) }
  }

  @Test func `an alias that the server has left out is made from its DNAME record`() throws {
    let redirection = dname("d.Example.com", 120, "t.example.net")
    let data = a("a.b.t.example.net", 60, "192.0.2.1")
    let found = try answer(to: question("a.b.d.example.com"), [redirection, data])
    #expect(
      found.answers == [
        dname("d.example.com", 120, "t.example.net"), cname("a.b.d.example.com", 120, "a.b.t.example.net"), data,
      ])
    let long = (0..<3).map { _ in String(repeating: "x", count: 60) }.joined(separator: ".")
    let tooLong = dname(
      "d.example.com", 120, String(repeating: "y", count: 63) + ".\(String(repeating: "z", count: 40))")
    #expect(throws: HTTPDNSFailure.unreadable(.name)) { try answer(to: question("\(long).d.example.com"), [tooLong]) }
    let loop = dname("d.example.com", 120, "d.example.com")
    #expect(throws: HTTPDNSFailure.unreadable(.chain)) { try answer(to: question("a.d.example.com"), [loop]) }
  }

  @Test func `a referral is no answer`() throws {
    let asked = question("www.lame.example.com")
    let referral = HTTPDNSFailure.unreadable(.referral)
    #expect(throws: referral) { try answer(to: asked, [], [ns("lame.example.com", "ns.example.net")]) }
    #expect(throws: referral) { try answer(to: asked, [], [ns(".", "a.root-servers.net")]) }
    // At the end of an alias, too.
    let alias = cname("www.example.com", 60, "www.lame.example.com")
    #expect(throws: referral) {
      try answer(to: question("www.example.com"), [alias], [ns("lame.example.com", "ns.example.net")])
    }
    // With an SOA record it is NODATA (RFC 2308 section 2.2), and so it is with nothing or with what is not above the name.
    for authorities in [
      [ns("example.com", "ns.example.com"), soa(60, minimum: 60)], [], [ns("example.net", "ns.example")],
    ] {
      #expect(try answer(to: asked, [], authorities).isNegative)
    }
    // Data may come with name servers, and NXDOMAIN says enough by itself.
    let data = a("www.lame.example.com", 60, "192.0.2.1")
    #expect(try answer(to: asked, [data], [ns("example.com", "ns.example.com")]).answers == [data])
    #expect(try answer(to: asked, [], [ns("example.com", "ns.example.com")], rcode: 3).responseCode == .nxDomain)
  }

  @Test func `signatures have the TTL of what they sign, each type's their own`() throws {
    let signatures = [
      signature("www.example.com", covering: .a, ttl: 30), signature("www.example.com", covering: .aaaa, ttl: 3600),
      signature("www.example.com", covering: .a, ttl: 20, tag: 2),
      signature("www.example.com", covering: .nsec, ttl: 900),
    ]
    let found = try answer(to: question("www.example.com", .rrsig, dnssecOK: true), signatures)
    #expect(found.answers.map(\.ttl) == [20, 3600, 20, 900])
    #expect(found.answers.map(\.rdata) == signatures.map(\.rdata))
  }

  @Test func `no more proofs are passed on than a negative answer needs`() throws {
    let asked = question("gone.example.com", dnssecOK: true)
    let proofs = (0..<20).flatMap { [nsec("n\($0).example.com"), signature("n\($0).example.com", covering: .nsec)] }
    let found = try answer(
      to: asked, [], [soa(60, minimum: 60), signature("example.com", covering: .soa)] + proofs, rcode: 3)
    #expect(found.authorities.map(\.type).prefix(2) == [.soa, .rrsig])
    #expect(Array(found.authorities.dropFirst(2)) == Array(proofs.prefix(16)))
  }

  @Test(arguments: [6, 9, 12, 22])
  func `an error response retains its extended error`(code: UInt16) throws {
    let reports = [0, code].map { ExtendedErrorReport(code: ExtendedError(rawValue: $0), text: "why").option }
    let options = code <= 12 ? reports : reports.reversed()
    let found = try answer(to: question("www.example.com"), [], rcode: 2, edns: EDNS(options: options))
    #expect(found == HTTPDNSAnswer(responseCode: .servFail, extendedError: ExtendedError(rawValue: code)))
  }

  // MARK: - Work

  private func work(_ asked: HTTPDNSQuestion, _ answers: [ResourceRecord], _ authorities: [ResourceRecord] = []) throws
    -> Int
  {
    var steps = 0
    let reply = ProviderReply(responseCode: .noError, answers: answers, authorities: authorities)
    _ = try reply.answer(to: asked, counting: &steps)
    return steps
  }

  @Test func `the largest negative answer takes a few steps per record`() throws {
    // What fits into 64 KiB: 2,500 proofs, each at a name of its own or all at one.
    let asked = question("gone.example.com", dnssecOK: true)
    for owner in [{ "n\($0).example.com" }, { _ in "n.example.com" }] as [(Int) -> String] {
      let proofs = (0..<2500).map { nsec(owner($0), "n\($0 + 1).example.com") }
      #expect(try work(asked, [], [soa(60, minimum: 60)] + proofs) < 3 * 2501)
      let signatures = (0..<2500).map { signature(owner($0), covering: .nsec, tag: UInt8($0 & 0xFF)) }
      #expect(try work(asked, [], [soa(60, minimum: 60), nsec(owner(0))] + signatures) < 3 * 2502)
    }
  }

  @Test func `the longest chain among 5,000 strays takes a few steps a record`() throws {
    let links = (0..<16).map { cname("n\($0).example.com", 60, "n\($0 + 1).example.com") }
    let redirections = (0..<2500).map { dname("d\($0).example.com", 60, "t.example.net") }
    let strays = (0..<2500).map { cname("s\($0).example.com", 60, "t\($0).example.com") }
    let records = strays + links + redirections + [a("n16.example.com", 60, "192.0.2.1")]
    for dnssecOK in [false, true] {
      #expect(try work(question("n0.example.com", dnssecOK: dnssecOK), records) < 2 * records.count)
    }
  }

  @Test func `one name's thousand copies of a record take a few steps each`() throws {
    let copies = [ResourceRecord](repeating: cname("www.example.com", 60, "b.example.com"), count: 5000)
    let records = copies + [a("b.example.com", 60, "192.0.2.1")]
    #expect(try work(question("www.example.com"), records) < 4 * records.count)
  }
}
