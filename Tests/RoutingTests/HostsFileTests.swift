// HostsFileTests.swift -- the parsing of hosts files, and the answers from them.

import DNSWire
import Files
import Glibc
import Routing
import Testing

@Suite struct `A hosts file` {
  private func parse(_ text: String) throws -> HostsFile { try HostsFile(octets: Array(text.utf8)) }

  private let sample = """
    # comment
    127.0.0.1\tlocalhost
    127.0.1.1 box.example.  Box # the machine

    ::1       localhost ip6-localhost
    \t 192.0.2.7 \t multi.example other.example\r
    192.0.2.8 multi.example
    2001:db8::8 multi.example
    192.0.2.7 multi.example late.example
    """

  @Test func `a byte order mark in front is skipped`() throws {
    let file = try HostsFile(octets: Array("\u{FEFF}192.0.2.1 a.example\n\u{FEFF}192.0.2.2 b.example\n".utf8))
    #expect(file.hosts.map(\.name.text) == ["a.example."])
    #expect(file.skippedLines == 1)
  }

  @Test func `loopback addresses of one name can be left out`() throws {
    let file = try parse("127.0.1.1 dns.example box.example\n192.0.2.7 dns.example\n127.0.1.1 only.example\n")
    func text(_ file: HostsFile) -> [String] { file.hosts.map { "\($0.name) \($0.addresses)" } }
    #expect(
      text(file.withoutLoopback(of: DomainName(text: "dns.example")!)) == [
        "dns.example. [192.0.2.7]", "box.example. [127.0.1.1]", "only.example. [127.0.1.1]",
      ])
    #expect(file.withoutLoopback(of: DomainName(text: "only.example")!).hosts.count == 2)
    #expect(text(file.withoutLoopback(of: DomainName(text: "other.example")!)) == text(file))
  }

  @Test func `addresses keep their order, and names are in lower case`() throws {
    let file = try parse(sample)
    #expect(file.skippedLines == 0)
    let texts = file.hosts.map { "\($0.name) \($0.addresses.map(\.description).joined(separator: " "))" }
    #expect(
      texts == [
        "localhost. 127.0.0.1 ::1", "box.example. 127.0.1.1", "box. 127.0.1.1", "ip6-localhost. ::1",
        "multi.example. 192.0.2.7 192.0.2.8 2001:db8::8", "other.example. 192.0.2.7", "late.example. 192.0.2.7",
      ])
    #expect(
      file.pointers.map { "\($0.address) \($0.name)" } == [
        "127.0.0.1 localhost.", "127.0.1.1 box.example.", "::1 localhost.", "192.0.2.7 multi.example.",
        "192.0.2.8 multi.example.", "2001:db8::8 multi.example.",
      ])
  }

  @Test func `a name is answered in both families, and its addresses have PTR records`() {
    let table = RouteTable([], hosts: sample)
    #expect(table.ask("MULTI.example", .a) == .records(["192.0.2.7", "192.0.2.8"]))
    #expect(table.ask("multi.example", .aaaa) == .records(["2001:db8::8"]))
    #expect(table.ask("box.example", .aaaa) == .noData("QNAME"))
    #expect(table.ask("box.example", .https) == .noData("QNAME"))
    #expect(table.ask("box.example", .mx) == .route(0))
    #expect(table.ask("x.box.example", .a) == .route(0))
    #expect(table.ask("7.2.0.192.in-addr.arpa", .ptr) == .records(["multi.example."]))
    let reverse = "8.0.0.0." + String(repeating: "0.", count: 20) + "8.b.d.0.1.0.0.2.ip6.arpa"
    #expect(table.ask(reverse, .ptr) == .records(["multi.example."]))
    #expect(table.localAnswers.flatMap(\.records).allSatisfy { $0.ttl == LocalAnswer.ttl })
  }

  @Test func `no type of a name in the file is NXDOMAIN`() throws {
    let rules = [
      RouteRule(names: [.subtree(DomainName(text: "rule.example")!)], action: .route(7)),
      RouteRule(names: [.subtree(DomainName(text: "blocked.example")!)], action: .nxDomain),
      RouteRule(names: [.exact(DomainName(text: "gone.example")!)], action: .nxDomain),
    ]
    let text = """
      192.0.2.7 box.example box.rule.example box.blocked.example gone.example box.test
      """
    let table = RouteTable(
      rules: rules, hosts: try parse(text), settings: SpecialNamesSettings(), hostsRoutes: [0: 10, 7: 17])
    for type in [RecordType.mx, .txt, .ptr] {
      #expect(table.ask("box.example", type) == .route(10))
      #expect(table.ask("other.example", type) == .route(0))
      #expect(table.ask("x.box.example", type) == .route(0))
      #expect(table.ask("box.rule.example", type) == .route(17))
      #expect(table.ask("other.rule.example", type) == .route(7))
      #expect(table.ask("box.blocked.example", type) == .noData("QNAME"))
      #expect(table.ask("other.blocked.example", type) == .blocked)
      #expect(table.ask("box.test", type) == .noData("QNAME"))
      #expect(table.ask("other.test", type) == .nxDomain("test."))
      // A rule for the name overrides the file.
      #expect(table.ask("gone.example", type) == .blocked)
    }
    #expect(table.ask("gone.example", .a) == .blocked)
    // The name of an address exists as well, in the middle of a zone that has no names.
    #expect(table.ask("7.2.0.192.in-addr.arpa", .txt) == .noData("QNAME"))
    #expect(table.ask("8.2.0.192.in-addr.arpa", .txt) == .nxDomain("2.0.192.in-addr.arpa."))
  }

  @Test func `a blocklist's entries are answered, and share their answers`() {
    let list = (0..<1000).map { "0.0.0.0 ads\($0).example" }.joined(separator: "\n") + "\n:: six.example\n"
    let table = RouteTable([], hosts: list)
    #expect(table.ask("ads7.example", .a) == .records(["0.0.0.0"]))
    #expect(table.ask("ads7.example", .aaaa) == .noData("QNAME"))
    #expect(table.ask("six.example", .aaaa) == .records(["::"]))
    #expect(table.ask("0.0.0.0.in-addr.arpa", .ptr) == .route(0))
    #expect(table.localAnswers.count == 3)
  }

  @Test func `invalid lines of a hosts file are skipped and counted`() throws {
    let file = try parse(
      """
      nonsense
      192.0.2.1
      192.0.2 short.example
      fe80::1%lo0 zone.example
      192.0.2.1 good.example bad..example a\u{FC}.example b\\046c.example .
      192.0.2.1 \(String(repeating: "a", count: 64)).example
      192.0.2.2 fine.example
      """)
    #expect(file.skippedLines == 6)
    #expect(file.firstSkipped?.description == "line 1: \"nonsense\" is not an address")
    #expect(file.hosts.map(\.name.text) == ["good.example.", "fine.example."])
  }

  @Test(arguments: [
    ("192.0.2.1 good.example\n\n# remark\n 192.0.2 short.example\n", 4, "\"192.0.2\" is not an address"),
    ("fe80::1%lo0 zone.example\r\n", 1, "\"fe80::1%lo0\" is not an address"),
    ("\n192.0.2.1\t# none\n", 2, "no name after \"192.0.2.1\""),
    ("::1 good.example bad..example a\u{FC}.example", 1, "\"bad..example\" is not a name"),
    ("::1 a\u{FC}\u{1B}[2J\"\\.example", 1, "\"a\\xc3\\xbc\\x1b[2J\\x22\\x5c.example\" is not a name"),
    (String(repeating: "x", count: 61), 1, "\"\(String(repeating: "x", count: 60))…\" is not an address"),
  ])
  func `the first invalid line has its number and a reason without control characters`(
    text: String, number: Int, reason: String
  ) throws {
    let file = try parse(text)
    #expect(file.skippedLines == 1)
    #expect(file.firstSkipped?.number == number)
    #expect(file.firstSkipped?.reason == reason)
  }

  @Test func `octets that are not text are safe`() throws {
    let file = try HostsFile(octets: [0, 255, 10, 49, 46, 50, 46, 51, 46, 52, 32, 200, 10, 10, 32, 10])
    #expect(file.skippedLines == 2)
    #expect(file.hosts.isEmpty)
  }

  @Test func `one name has at most 64 addresses`() throws {
    let file = try parse((0..<200).map { "10.0.0.\($0) many.example" }.joined(separator: "\n"))
    #expect(file.hosts[0].addresses.count == HostsFile.maximumAddresses)
  }

  @Test func `a hosts file that is too large or missing is refused`() {
    #expect(throws: FileFault.tooLarge(limit: HostsFile.maximumSize)) {
      try HostsFile(octets: [UInt8](repeating: 35, count: HostsFile.maximumSize + 1))
    }
    #expect(throws: FileFault.unreadable(ENOENT)) { try HostsFile(path: "/nonexistent/hosts") }
    #expect(throws: FileFault.tooLarge(limit: HostsFile.maximumSize)) { try HostsFile(path: "/dev/zero") }
  }

  @Test func `an empty device is an empty hosts file`() throws {
    #expect(try HostsFile(path: "/dev/null").hosts.isEmpty)
  }

  @Test(.enabled(if: access("/etc/hosts", R_OK) == 0, "a minimal root has none"))
  func `the machine's own hosts file can be read`() throws { _ = try HostsFile(path: "/etc/hosts") }
}
