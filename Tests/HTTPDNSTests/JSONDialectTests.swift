// JSONDialectTests.swift -- the JSON form carries what the wire form carries: every name, every type, signatures, errors.

import DNSWire
import HTTPMessage
import TestSupport
import Testing

@testable import HTTPDNS

@Suite struct `The JSON dialect` {
  private func asked(_ octets: [UInt8], _ type: RecordType = .a) -> HTTPDNSQuestion {
    HTTPDNSQuestion(name: DomainName(octets: octets)!, type: type)
  }

  /// The value of the parameter `name` with its percent-encoding undone.
  private func sentName(_ question: HTTPDNSQuestion) throws -> String {
    let target = generic.request(for: question, unixTime: 0).target
    let value = try #require(target.split(separator: "?name=").last?.split(separator: "&").first)
    var octets: [UInt8] = []
    var rest = Array(value.utf8)[...]
    while let octet = rest.popFirst() {
      guard octet == UInt8(ascii: "%") else {
        octets.append(octet)
        continue
      }
      octets.append(try #require(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)))
      rest = rest.dropFirst(2)
    }
    return String(decoding: octets, as: UTF8.self)
  }

  @Test func `the JSON dialect queries the root`() throws {
    let root = question(".", .ns)
    #expect(google.serves(root) && generic.serves(root))
    #expect(generic.request(for: root, unixTime: 0).target == "/dns-query?name=.&type=2")
    let record = ResourceRecord(
      owner: .root, type: .ns, ttl: 300, rdata: DomainName(text: "a.root-servers.net")!.octets)
    #expect(
      try google.answer(to: root, from: reply(".", 2, answer: [self.record(".", 2, "a.root-servers.net.")])).answers
        == [record])
    #expect(failure(of: reply("example.", 2), to: root) == .wrongQuestion)
  }

  private func record(_ name: String, _ type: Int, _ data: String) -> String {
    func quoted(_ text: String) -> String {
      text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }
    return #"{"name":"\#(quoted(name))","type":\#(type),"TTL":300,"data":"\#(quoted(data))"}"#
  }

  @Test func `the JSON dialect queries names of any octets and accepts only their records`() throws {
    for octet in UInt8.min...UInt8.max {
      let name = asked([3, 0x61, octet, 0x62, 3, 0x63, 0x6F, 0x6D, 0])
      #expect(google.serves(name) && cloudflare.serves(name) && generic.serves(name))
      let text = try sentName(name)
      #expect(DomainName(text: text) == name.name, "\(octet) \(text)")
      // It comes back as it was sent, or with the octet written in three digits, as other programs write more of them.
      let digits = String(octet)
      let spelled = "a\\" + String(repeating: "0", count: 3 - digits.count) + digits + "b.com."
      for spelling in [text, spelled] {
        let escaped = spelling.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        let response = reply(escaped, answer: [record(spelling, 1, "192.0.2.1")])
        #expect(try google.answer(to: name, from: response).answers.map(\.owner) == [name.name], "\(octet)")
      }
    }
    // A service that takes an escaped dot for one between labels has answered another question.
    let dotted = asked([3, 0x61, 0x2E, 0x62, 0])
    #expect(failure(of: reply("a.b"), to: dotted) == .wrongQuestion)
    #expect(failure(of: reply("a.b", answer: [record("a.b.", 1, "192.0.2.1")]), to: dotted) == .wrongQuestion)
    let unquestioned = json(#"{"Status":0,"Answer":[\#(record("a.b.", 1, "192.0.2.1"))]}"#)
    #expect(failure(of: unquestioned, to: dotted, with: generic) == .unreadable(.chain))
  }

  @Test func `a name cannot add a parameter of its own`() throws {
    let target = google.request(for: asked([6, 0x26, 0x63, 0x64, 0x3D, 0x31, 0x23, 0]), unixTime: 0).target
    #expect(target.hasPrefix("/resolve?name=%26cd%3D1%23&type=1&random_padding="))
  }

  /// Records of a signed zone as miekg's and dnspython's text has them.
  private static let signed: [(Int, String)] = [
    (1, "192.0.2.1"), (46, "A 13 3 300 20300101000000 20250101000000 12345 example.com. AAECAwQFBgcICQ=="),
    (46, "A 8 3 300 20300101000000 20250101000000 54321 example.com. AAEC AwQF BgcI CQ=="),
  ]
  private static let denial: [(String, Int, String)] = [
    ("example.com.", 6, "ns.example.com. h.example.com. 1 3600 600 604800 60"),
    ("example.com.", 46, "SOA 13 2 300 20300101000000 20250101000000 12345 example.com. AAEC"),
    ("a.example.com.", 47, "z.example.com. A RRSIG NSEC"),
    ("a.example.com.", 46, "NSEC 13 3 300 20300101000000 20250101000000 12345 example.com. AAEC"),
    ("2t7b4g4vsa5smi47k61mv5bv1a22bojr.example.com.", 50, "1 0 0 - 2T7B4G4VSA5SMI47K61MV5BV1A22BOJS A RRSIG"),
    (
      "2t7b4g4vsa5smi47k61mv5bv1a22bojr.example.com.", 46,
      "NSEC3 13 3 300 20300101000000 20250101000000 12345 example.com. AAEC"
    ),
  ]

  @Test func `signatures and proofs go from text to wire as they are`() throws {
    let www = question("www.example.com", dnssecOK: true)
    let positive = try google.answer(
      to: www,
      from: reply("www.example.com", answer: `The JSON dialect`.signed.map { record("www.example.com.", $0.0, $0.1) }))
    #expect(positive.answers.map(\.type) == [.a, .rrsig, .rrsig] && positive.isAuthenticated)
    let gone = question("gone.example.com", dnssecOK: true)
    let negative = try google.answer(
      to: gone,
      from: reply("gone.example.com", status: 3, authority: `The JSON dialect`.denial.map { record($0.0, $0.1, $0.2) }))
    #expect(negative.authorities.map(\.type) == [.soa, .rrsig, .nsec, .rrsig, RecordType(50), .rrsig])
    #expect(negative.isAuthenticated)
    // A validating client gets the octets: they are those that dnspython makes of the same text.
    let texts = `The JSON dialect`.signed.map { ($0.0, $0.1) } + `The JSON dialect`.denial.map { ($0.1, $0.2) }
    let expected = try IndependentParser.rdata(of: texts.map { (type: UInt16($0.0), text: $0.1) })
    var message = Message.query(Question(name: gone.name, type: .a), id: 0)
    (message.answers, message.authorities) = (positive.answers, negative.authorities)
    let onWire = try Message.parse(message.compose())
    #expect((onWire.answers + onWire.authorities).map { IndependentParser.hexadecimal($0.rdata) } == expected)
  }

  @Test func `a redirection comes along without DO`() throws {
    let response = reply(
      "www.d.example",
      answer: [
        record("d.example.", 39, "t.example."), record("www.d.example.", 5, "www.t.example."),
        record("www.t.example.", 1, "192.0.2.1"),
      ])
    #expect(
      try google.answer(to: question("www.d.example"), from: response).answers.map(\.type) == [.dname, .cname, .a])
  }

  @Test(arguments: [
    (#""Comment":["EDE(9): DNSKEY Missing (no SEP matching the DS found)","EDE(22): x"]"#, 9),
    (#""Comment":["EDE(22): No Reachable Authority","EDE(6): DNSSEC Bogus"]"#, 6),
    (#""Comment":"EDE(23): Network Error""#, 23), (#""Comment":"DNSSEC validation failure.""#, nil),
    (#""extended_dns_errors":[{"info_code":22,"extra_text":"At delegation example"}]"#, 22),
    (#""extended_dns_errors":[{"info_code":0},{"info_code":"7"}],"Comment":"x""#, 7),
    (#""extended_dns_errors":{"info_code":6}"#, nil), (#""Comment":["EDE(): x","EDE(x)","EDE(99999)",6,null]"#, nil),
  ])
  func `the service's extended error stays beside its response code`(member: String, code: UInt16?) throws {
    let body = json(#"{"Status":2,"Question":[{"name":"www.example.com.","type":1}],\#(member)}"#)
    let answer = try google.answer(to: question("www.example.com"), from: body)
    #expect(answer.responseCode == .servFail && answer.extendedError == code.map { ExtendedError(rawValue: $0) })
  }

  @Test func `a body may hold what a DNS message holds, and no more records`() throws {
    func body(_ count: Int, expires: String = "") -> HTTPResponse {
      reply(
        "www.example.com",
        answer: (0..<count).map {
          #"{"name":"www.example.com.","type":1,"TTL":300,"Expires":"Mon, 23 Nov 2026 15:54:07 UTC","data":"10.0.\#($0 >> 8).\#($0 & 255)"}"#
        })
    }
    let largest = body(4000)
    #expect(largest.body.count > 400_000 && largest.body.count < JSONDialect.mostOctets)
    #expect(try generic.answer(to: question("www.example.com"), from: largest).answers.count == 4000)
    #expect(failure(of: body(5000), to: question("www.example.com")) == .unreadable(.tooLarge))
    let small = (0..<6000).map { _ in #"{"name":".","type":1,"TTL":1,"data":"192.0.2.1"}"# }
    #expect(failure(of: reply(".", answer: small), to: question(".")) == .unreadable(.tooLarge))
    #expect(failure(of: largest, to: question("www.example.com"), with: alidns) == .unreadable(.tooLarge))
  }

  @Test func `similar members are distinguished in any number`() throws {
    func object(_ names: [String]) -> HTTPResponse {
      json(#"{"Status":0,"Question":{"name":"a","type":1},\#(names.map { "\"\($0)\":1" }.joined(separator: ","))}"#)
    }
    let alike = (0..<200).map { "x\($0 / 100)\($0 / 10 % 10)\($0 % 10)x" }
    for count in [10, 200] {
      let names = Array(alike.prefix(count))
      #expect(failure(of: object(names), to: question("a")) == nil)
      #expect(failure(of: object(names + [names[count / 2]]), to: question("a")) == .unreadable(.syntax))
    }
  }

  @Test func `a referral in JSON is not an answer`() throws {
    let asked = question("www.example.com")
    let servers = record("example.com.", 2, "ns.example.net.")
    for dialect in [google, cloudflare, generic] {
      #expect(throws: HTTPDNSFailure.unreadable(.referral)) {
        try dialect.answer(to: asked, from: reply("www.example.com.", authority: [servers]))
      }
    }
    let zone = record("example.com.", 6, "ns.example.com. hostmaster.example.com. 1 3600 600 86400 60")
    #expect(try google.answer(to: asked, from: reply("www.example.com.", authority: [servers, zone])).isNegative)
    // Data counts beside any other member, readable or not.
    for data in ["ns.example.net.", "?"] {
      let address = record("www.example.com.", 1, "192.0.2.1")
      let body = reply("www.example.com.", answer: [address], authority: [record("example.com.", 2, data)])
      #expect(try google.answer(to: asked, from: body).isAuthenticated)
    }
  }
}
