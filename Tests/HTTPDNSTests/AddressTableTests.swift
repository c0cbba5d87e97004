// AddressTableTests.swift -- self-built tables: what they say, and which ones are refused.

import DNSWire
import TestSupport
import Testing

@testable import HTTPDNS

@Suite struct AddressTableTests {
  private func table(_ entries: String...) throws -> AddressTable {
    try AddressTable(text: Array(text(entries).utf8))
  }

  private func text(_ entries: [String]) -> String {
    #"{"service":"ISP-A","enable":1,"domainlist":[\#(entries.joined(separator: ","))]}"#
  }

  private func entry(_ domain: String, _ addresses: String...) -> String {
    #"{"domain":"\#(domain)","ips":[\#(addresses.map { "\"\($0)\"" }.joined(separator: ","))]}"#
  }

  private func fault(_ text: String) -> AddressTableFault? {
    do throws(AddressTableFault) {
      _ = try AddressTable(text: Array(text.utf8))
      return nil
    } catch {
      return error
    }
  }

  @Test func `addresses of the asked family come in order of preference, once each`() throws {
    let table = try table(
      entry("A.example.com.", "192.0.2.2", "2001:db8::2", "192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:DB8:0::2"))
    let name = "a.EXAMPLE.com"
    #expect(
      table.answer(to: question(name), ttl: 7)
        == HTTPDNSAnswer(responseCode: .noError, answers: [a(name, 7, "192.0.2.2"), a(name, 7, "192.0.2.1")]))
    let ipv6 = table.answer(to: question(name, .aaaa), ttl: 7)
    #expect(ipv6?.answers == [a(name, 7, "2001:db8::2"), a(name, 7, "2001:db8::1")])
    #expect(ipv6?.answers.first?.owner.text == "a.EXAMPLE.com.")
  }

  @Test func `a byte-order mark before a table is skipped, and nothing else`() throws {
    let text = text([entry("a.example", "192.0.2.1")])
    let table = try AddressTable(text: [0xEF, 0xBB, 0xBF] + Array(text.utf8))
    #expect(table.answer(to: question("a.example"), ttl: 60)?.answers.count == 1)
    #expect(fault("\u{FEFF}\u{FEFF}" + text) != nil)
  }

  @Test func `a listed name without an address of the family is NODATA`() throws {
    let table = try table(entry("a.example", "192.0.2.1"), entry("b.example"))
    let expected = HTTPDNSAnswer(responseCode: .noError, isNegative: true)
    #expect(!expected.isEmptyAmbiguous)
    #expect(table.answer(to: question("a.example", .aaaa), ttl: 60) == expected)
    #expect(table.answer(to: question("b.example"), ttl: 60) == expected)
  }

  @Test func `names that are not listed and other types are not answered`() throws {
    let table = try table(entry("a.example", "192.0.2.1"))
    for name in ["example", "b.a.example", "b.example", "."] {
      #expect(table.answer(to: question(name), ttl: 60) == nil)
    }
    for type in [RecordType.txt, .https, .cname] {
      #expect(table.answer(to: question("a.example", type), ttl: 60) == nil)
    }
  }

  @Test func `of a name that is listed twice the first entry counts`() throws {
    let table = try table(entry("a.example", "192.0.2.1"), entry("A.example", "192.0.2.2", "2001:db8::1"))
    #expect(table.count == 1)
    #expect(table.answer(to: question("a.example"), ttl: 60)?.answers == [a("a.example", 60, "192.0.2.1")])
    #expect(table.answer(to: question("a.example", .aaaa), ttl: 60)?.answers == [])
  }

  @Test func `a table that is switched off answers nothing`() throws {
    for body in [
      #"{"enable":0}"#, #"{"enable":"0","domainlist":7}"#,
      #"{"enable":0,"domainlist":[\#(entry("a.example", "192.0.2.1"))]}"#,
    ] {
      let table = try AddressTable(text: Array(body.utf8))
      #expect(!table.isEnabled && table.answer(to: question("a.example"), ttl: 60) == nil)
    }
    #expect(try self.table().isEnabled)
  }

  @Test(arguments: [
    (#"{"domain":"a..b","ips":[]}"#, HTTPDNSFailure.unreadable(.name)),
    (#"{"domain":"","ips":[]}"#, .unreadable(.name)),
    (#"{"domain":".","ips":[]}"#, .unreadable(.name)), (#"{"domain":"*.example","ips":[]}"#, .unreadable(.name)),
    (#"{"domain":"ä.example","ips":[]}"#, .unreadable(.name)),
    (#"{"domain":7,"ips":[]}"#, .unreadable(.shape("domain"))),
    (#"{"domain":"a.example"}"#, .unreadable(.shape("ips"))),
    (#"{"domain":"a.example","ips":"192.0.2.1"}"#, .unreadable(.shape("ips"))),
    (#"{"domain":"a.example","ips":[7]}"#, .unreadable(.shape("ips[]"))),
    (#"{"ips":[]}"#, .unreadable(.shape("domain"))), ("7", .unreadable(.shape("domain"))),
    (#"{"domain":"a.example","ips":["192.0.2.256"]}"#, .unreadable(.rdata)),
    (#"{"domain":"a.example","ips":["192.0.2.1:80"]}"#, .unreadable(.rdata)),
    (#"{"domain":"a.example","ips":["b.example"]}"#, .unreadable(.rdata)),
  ])
  func `a bad entry refuses the whole table, even of a name that is listed before`(
    entry: String, failure: HTTPDNSFailure
  ) {
    let good = self.entry("a.example", "192.0.2.1")
    let fault = fault(text([good, entry, good]))
    #expect(fault?.failure == failure && fault?.entry == 1)
  }

  @Test func `a name has 64 addresses at most`() throws {
    func list(_ count: Int) -> String {
      #"{"domain":"a.example","ips":[\#((1...count).map { #""192.0.2.\#($0)""# }.joined(separator: ","))]}"#
    }
    #expect(fault(text([list(65)])) == AddressTableFault(.unreadable(.tooLarge), entry: 0))
    #expect(try table(list(64)).answer(to: question("a.example"), ttl: 1)?.answers.count == 64)
  }

  @Test(arguments: [
    ("", HTTPDNSFailure.unreadable(.syntax)), ("<html>", .unreadable(.syntax)), ("[]", .unreadable(.shape("enable"))),
    ("{}", .unreadable(.shape("enable"))), (#"{"domainlist":[]}"#, .unreadable(.shape("enable"))),
    (#"{"enable":1}"#, .unreadable(.shape("domainlist"))),
    (#"{"enable":2,"domainlist":[]}"#, .unreadable(.shape("enable"))),
    (#"{"enable":true,"domainlist":[]}"#, .unreadable(.shape("enable"))),
    (#"{"enable":1,"domainlist":{}}"#, .unreadable(.shape("domainlist"))),
    (#"{"enable":1,"enable":1}"#, .unreadable(.syntax)),
  ])
  func `a body that is not a table is refused`(text: String, failure: HTTPDNSFailure) {
    let fault = fault(text)
    #expect(fault?.failure == failure && fault?.entry == nil)
  }

  @Test(arguments: [
    ("{\n\"enable\": 1,\n}\n", "invalid JSON at line 3, column 1"),
    ("{\n\"enable\": 1,\n \"domainlist\": [\n", "invalid JSON: unexpected end in line 4"),
    ("", "invalid JSON: unexpected end in line 1"), ("<html>", "invalid JSON at line 1, column 1"),
    (#"{"enable":1,"enable":1}"#, "JSON with a member twice or invalid characters"),
  ])
  func `the message about a table that is not JSON names the place`(text: String, message: String) {
    #expect(fault(text)?.description == "unreadable: \(message)")
  }

  @Test func `a table comes with status 200 and not as a page`() {
    let good = text([entry("a.example", "192.0.2.1")])
    for (response, failure) in [
      (json(good, status: 404), HTTPDNSFailure.status(404)), (json(good, status: 304), .status(304)),
      (json(good, status: 500), .status(500)), (json(good, contentType: "text/html"), .unreadable(.mediaType)),
    ] {
      #expect(throws: AddressTableFault(failure)) { try AddressTable(response) }
    }
    #expect(throws: Never.self) { try AddressTable(json(good, contentType: nil)) }
  }

  @Test func `a table of 4 MiB is read, one of an octet more is not`() throws {
    let good = text([entry("a.example", "192.0.2.1")])
    let full = good + String(repeating: " ", count: AddressTable.mostOctets - good.utf8.count)
    #expect(fault(full) == nil && AddressTable.mostOctets == 4_194_304)
    #expect(fault(full + " ") == AddressTableFault(.unreadable(.tooLarge)))
    #expect(throws: AddressTableFault(.unreadable(.tooLarge))) { try AddressTable(json(full + " ")) }
    // Answers keep their own limit, on the thread that has just read a table as well.
    let answer = #"{"host":"www.example.com","ips":[]}"# + String(repeating: " ", count: 65_536)
    #expect(failure(of: json(answer), to: question("www.example.com"), with: emas) == .unreadable(.tooLarge))
  }

  @Test func `fifty thousand names are read and each is found`() throws {
    let entries = (0..<50_000).map { entry("host\($0).example.com", "10.0.\($0 / 256).\($0 % 256)") }
    let table = try AddressTable(text: Array(text(entries).utf8))
    #expect(table.count == 50_000)
    let isEachFound = (0..<50_000).allSatisfy {
      let octets = [10, 0, UInt8($0 / 256), UInt8($0 % 256)]
      return table.answer(to: question("HOST\($0).example.com"), ttl: 60)?.answers.map(\.rdata) == [octets]
    }
    #expect(isEachFound)
    #expect(table.answer(to: question("host50000.example.com"), ttl: 60) == nil)
  }

  @Test(arguments: [
    (#"{"domain":"b.example","ips":["192.0.2.1","192.0.2.256"]}"#, #""192.0.2.256" is not an address, at #.ips"#),
    (#"{"domain":"b..example","ips":[]}"#, #""b..example" is not a domain name, at #.domain"#),
    (#"{"domain":"b.example","ips":["192.0.2.1\n"]}"#, "a text is not an address, at #.ips"),
    (#"{"domain":"ä.example","ips":[]}"#, "a text is not a domain name, at #.domain"),
    (
      #"{"domain":"b.example","ips":["\#(String(repeating: "1", count: 61))"]}"#, "a text is not an address, at #.ips"
    ),
    (#"{"domain":"b.example"}"#, "JSON in which ips is missing or is not what it has to be, at #"),
  ])
  func `a fault names its position, from 1, and a wrong value that is short and plain`(entry: String, message: String) {
    let shown = fault(text([self.entry("a.example", "192.0.2.1"), entry])).map { "\($0)" }
    #expect(shown == "unreadable: \(message.replacing("#", with: "domainlist[#2]"))")
  }

  @Test(arguments: [false, true]) func `ten times the names take ten times as long`(isOneName: Bool) throws {
    func octets(_ count: Int) -> [UInt8] {
      Array(text((0..<count).map { entry(isOneName ? "one.example" : "host\($0).example", "192.0.2.1") }).utf8)
    }
    let (small, large) = (octets(1_000), octets(10_000))
    let times = try (
      cpuTime { _ = try AddressTable(text: small) }, cpuTime { _ = try AddressTable(text: large) }
    )
    // The square of it would be a hundred times.
    #expect(times.1 < 30 * times.0)
  }
}
