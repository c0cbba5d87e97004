// ZoneTests.swift -- zone files, and what is answered from them.

import DNSWire
import Foundation
import Testing

@testable import httpdns_simulator

private let text = """
  ; a comment
  $TTL 120
  $ORIGIN example.com.
  @ 900 IN SOA ns1.example.com. hostmaster.example.com. (
      1 3600 600 604800 ; a comment inside
      60 )
  www A 192.0.2.1
      30 A 192.0.2.2  ; the owner name of the line before
  alias 600 CNAME www.example.com.
  deep.empty A 192.0.2.3
  *.wild A 192.0.2.4
  a.wild AAAA 2001:db8::4
  loop CNAME loop.example.com.
  nowhere CNAME missing.example.com.
  semi TXT "a;b" "c d"
  other.example.net. A 192.0.2.5
  """

private func answer(_ owner: String, _ type: RecordType = .a) throws -> ZoneAnswer {
  try ZoneParser.parse(text).answer(Question(name: name(owner), type: type))
}

private func lines(_ answer: ZoneAnswer) -> [String] {
  answer.records.map { "\($0.owner) \($0.ttl) \($0.type) \($0.text)" }
}

@Suite struct `A zone` {
  @Test func `records have their TTL, the default one, and the owner name of the line before`() throws {
    #expect(
      lines(try answer("WWW.example.com"))
        == ["WWW.example.com. 120 A 192.0.2.1", "WWW.example.com. 30 A 192.0.2.2"])
    #expect(lines(try answer("other.example.net")) == ["other.example.net. 120 A 192.0.2.5"])
  }

  @Test func `a chain is followed, its links first`() throws {
    let lines = lines(try answer("alias.example.com"))
    #expect(lines.count == 3)
    #expect(lines.first == "alias.example.com. 600 CNAME www.example.com.")
    #expect(try answer("alias.example.com", .cname).records.count == 1)
  }

  @Test func `a name that is not there is NXDOMAIN, with the SOA record's negative TTL`() throws {
    let answer = try answer("missing.example.com")
    #expect(answer.code == .nxDomain)
    #expect(answer.authority.map(\.ttl) == [60])
    #expect(answer.authority.first?.owner == name("example.com"))
  }

  @Test func `a chain that leads nowhere is NXDOMAIN with its link (RFC 6604)`() throws {
    let answer = try answer("nowhere.example.com")
    #expect(answer.code == .nxDomain)
    #expect(answer.records.count == 1)
  }

  @Test(arguments: [("www.example.com", RecordType.aaaa), ("empty.example.com", .a), ("a.wild.example.com", .a)])
  func `a name without records of the type is NODATA, even an empty one`(owner: String, type: RecordType) throws {
    let answer = try answer(owner, type)
    #expect(answer.code == .noError)
    #expect(answer.records.isEmpty)
    #expect(answer.authority.count == 1)
  }

  @Test func `a wildcard answers for what does not exist below it, under the name that was asked`() throws {
    #expect(lines(try answer("x.y.wild.example.com")) == ["x.y.wild.example.com. 120 A 192.0.2.4"])
    #expect(try answer("x.a.wild.example.com").code == .nxDomain)
  }

  @Test func `a loop is SERVFAIL`() throws {
    #expect(try answer("loop.example.com").code == .servFail)
  }

  @Test func `quotes keep semicolons and spaces`() throws {
    let rdata = [3] + Array("a;b".utf8) + [3] + Array("c d".utf8)
    #expect(try answer("semi.example.com", .txt).records.map(\.rdata) == [rdata])
  }

  @Test func `a name outside of every zone is NXDOMAIN from the root`() throws {
    let answer = try answer("www.example.invalid")
    #expect(answer.code == .nxDomain)
    #expect(answer.authority.first?.owner.isRoot == true)
  }

  @Test(arguments: [
    ("a.example. A 192.0.2.1\nb.example. A 192.0.2", 2, "\"192.0.2\" is no RDATA of type A"),
    ("a.example. CNAME b", 1, "\"b\" inside RDATA needs its final dot"),
    ("\n\n  A 192.0.2.1", 3, "the first record has no owner name"),
    ("a.example. 60", 1, "a record is: name [TTL] [IN] TYPE RDATA"),
    ("a.example. FOO bar", 1, "a record is: name [TTL] [IN] TYPE RDATA"),
    ("$INCLUDE other", 1, "$INCLUDE is not known: $ORIGIN and $TTL are"),
    ("$ORIGIN example.com", 1, "$ORIGIN takes one name with its final dot"),
    ("$TTL -1", 1, "$TTL takes a number of seconds, 0 to 2147483647"),
    ("a. TXT \"open", 1, "a quote is not closed"),
    ("a. SOA (", 1, "\"(\" without \")\""),
    ("a. SOA )", 1, "\")\" without \"(\""),
    ("a..b. A 192.0.2.1", 1, "\"a..b.\" is no domain name"),
  ])
  func `a mistake in a zone is reported with its line`(text: String, line: Int, reason: String) {
    #expect(throws: ZoneError(line: line, reason: reason)) { try ZoneParser.parse(text) }
  }

  @Test func `the built-in zone is Config/demo.zone, and is without mistakes`() throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Config/demo.zone")
    #expect(try readText(file.path) == defaultZoneText)
    let zone = try ZoneParser.parse(defaultZoneText)
    let alias = zone.answer(Question(name: name("alias2.example.com"), type: .aaaa))
    #expect(alias.records.map(\.type) == [.cname, .cname, .aaaa])
  }
}

@Suite struct `A synthetic name` {
  private func answer(_ owner: String, _ type: RecordType = .a, defaultTTL: UInt32 = 300) -> ZoneAnswer {
    Zone(defaultTTL: defaultTTL).answer(Question(name: name(owner), type: type))
  }

  @Test func `a number of the benchmark has its own address, and the default TTL`() {
    #expect(lines(answer("n1.bench.example")) == ["n1.bench.example. 300 A 198.18.0.1"])
    #expect(lines(answer("N70000.bench.example", defaultTTL: 5)) == ["N70000.bench.example. 5 A 198.19.17.112"])
    #expect(lines(answer("n258.bench.example", .aaaa)) == ["n258.bench.example. 300 AAAA 2001:2::102"])
    #expect(answer("n1.bench.example", .mx).authority.count == 1)
    #expect(answer("n1x.bench.example").code == .nxDomain)
    #expect(answer("n4294967296.bench.example").code == .nxDomain)
  }

  @Test func `synthetic names have the TTL, addresses, chain or text that they name`() {
    #expect(answer("ttl-0.example").records.map(\.ttl) == [0])
    #expect(answer("ttl-86400.example").records.map(\.ttl) == [86_400])
    #expect(Set(answer("many-60.example").records.map(\.text)).count == 60)
    #expect(answer("chain-5.example").records.map(\.type) == [.cname, .cname, .cname, .cname, .cname, .a])
    #expect(answer("chain-17.example").code == .servFail)
    #expect(answer("txt-600.example", .txt).records.map(\.rdata.count) == [603])
    #expect(answer("nodata.example").code == .noError)
    #expect(answer("servfail.example").code == .servFail)
    #expect(answer("refused.example").code == .refused)
  }
}
