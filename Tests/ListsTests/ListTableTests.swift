// ListTableTests.swift -- which uses of lists a name has.

import DNSWire
import Testing

@testable import Lists

@Suite struct ListTableTests {
  private let key = ListKey()

  private func list(_ text: String, blocks: Bool = false) throws -> ListNames {
    try ListNames(key, blocks: blocks, text: text)
  }

  private func uses(_ table: ListTable, _ name: String) -> UInt64 {
    let octets = DomainName(text: name)!.octets
    var starts = InlineArray<128, UInt8>(repeating: 0)
    var labels = 0
    var position = 0
    while octets[position] != 0 {
      starts[labels] = UInt8(position)
      labels += 1
      position += Int(octets[position]) + 1
    }
    return octets.withUnsafeBufferPointer { table.lookup.uses(of: $0.baseAddress!, starts, labels: labels) }
  }

  @Test func namesSelectThemselvesAndWhatIsBelow() throws {
    let lists = [
      try list("example.com\nfull:only.example\n@@||good.example.com^\n"), try list("||example.com^\ncom\n"),
    ]
    let table = ListTable(lists, uses: [ListUse(list: 0, blocks: false), ListUse(list: 1, blocks: false)], key)
    #expect(uses(table, "example.com") == 0b11)
    #expect(uses(table, "a.b.example.com") == 0b11)
    #expect(uses(table, "x.good.example.com") == 0b10)
    #expect(uses(table, "only.example") == 0b01)
    #expect(uses(table, "a.only.example") == 0)
    #expect(uses(table, "other.com") == 0b10)
    #expect(uses(table, ".") == 0)
    #expect(table.nameCounts == [3, 2])
  }

  @Test func aRuleThatBlocksLeavesPublicSuffixesOut() throws {
    let names = try list("com\ngithub.io\nevil.com\n", blocks: true)
    #expect(names.leftOut[.publicSuffix] == 2)
    let table = ListTable([names], uses: [ListUse(list: 0, blocks: true), ListUse(list: 0, blocks: false)], key)
    #expect(uses(table, "a.github.io") == 0b10)
    #expect(uses(table, "www.evil.com") == 0b11)
    #expect(uses(table, "good.com") == 0b10)
  }
}
