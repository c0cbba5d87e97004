// ListSearchTests.swift -- which line of a list decides about a name.

import DNSWire
import Testing

@testable import ListStore

@Suite struct `The line that decides` {
  private func find(_ text: String, _ name: String, blocks: Bool = false) throws -> ListFinding? {
    let octets = Array(text.utf8)
    let text = ListText(octets, ListText.Details(octets: octets.count, names: 1))
    return try text.find(#require(DomainName(text: name)), blocks: blocks)
  }

  private let list = """
    # names
    ||example.com^
    full:alone.example.org
    @@||good.example.com^
    ||bad.good.example.com^
    server=/cn.test/other.test/114.114.114.114
    @@||example.net^
    ||example.net^
    com
    """

  @Test(arguments: [
    ("example.com", 2, false), ("A.EXAMPLE.com", 2, false), ("good.example.com", 4, true),
    ("x.good.example.com", 4, true), ("x.bad.good.example.com", 5, false), ("alone.example.org", 3, false),
    ("a.other.test", 6, false), ("example.net", 7, true), ("notexample.com", 9, false),
  ])
  func `the deepest line decides, and an exception before the same name`(name: String, line: Int, out: Bool) throws {
    let found = try #require(try find(list, name))
    #expect(found.line == line && found.isException == out)
  }

  @Test func `the line is shown as it stands`() throws {
    #expect(try find(list, "cn.test")?.text == "server=/cn.test/other.test/114.114.114.114")
    #expect(try find("\u{FEFF}a.example \r\nb.example", "a.example")?.text == "\\xef\\xbb\\xbfa.example")
    let long = "a.example" + String(repeating: " @x", count: 100)
    #expect(try find(long, "a.example")?.text.count == 80)
  }

  @Test func `a name that no line selects is not found`() throws {
    #expect(try find(list, "below.alone.example.org") == nil && (try find(list, "example.org")) == nil)
    #expect(try find(list, ".") == nil)
  }

  @Test func `a rule that blocks does not see public suffixes`() throws {
    #expect(try find(list, "notexample.com", blocks: true) == nil)
    #expect(try find(list, "example.com", blocks: true)?.line == 2)
  }

  @Test func `a line of many pieces back is shown`() throws {
    let text = (0..<30_000).map { "\($0).example" }.joined(separator: "\n")
    #expect(try find(text, "x.23456.example") == ListFinding(line: 23_457, text: "23456.example", isException: false))
  }
}
