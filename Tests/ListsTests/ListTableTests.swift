// ListTableTests.swift -- which uses of lists a name has.

import DNSWire
import Testing

@testable import Lists

@Suite struct `A table of lists` {
  private let key = ListKey()

  @Test func `names select themselves and what is below, except what the list takes out`() throws {
    let lists = [
      try ListNames("example.com\nfull:only.example\n@@||good.example.com^\n", key),
      try ListNames("||example.com^\ncom\n", key),
    ]
    let table = ListTable(lists, uses: [ListUse(list: 0, blocks: false), ListUse(list: 1, blocks: false)], key)
    #expect(table.uses("example.com") == 0b11)
    #expect(table.uses("a.b.example.com") == 0b11)
    #expect(table.uses("x.good.example.com") == 0b10)
    #expect(table.uses("only.example") == 0b01)
    #expect(table.uses("a.only.example") == 0)
    #expect(table.uses("other.com") == 0b10)
    #expect(table.uses(".") == 0)
    #expect(table.nameCounts == [3, 2])
  }

  @Test func `a rule that blocks leaves public suffixes out`() throws {
    let names = try ListNames("com\ngithub.io\nevil.com\n", key, blocks: true)
    #expect(names.leftOut[.publicSuffix] == 2)
    let table = ListTable([names], uses: [ListUse(list: 0, blocks: true), ListUse(list: 0, blocks: false)], key)
    #expect(table.uses("a.github.io") == 0b10)
    #expect(table.uses("www.evil.com") == 0b11)
    #expect(table.uses("good.com") == 0b10)
  }
}
