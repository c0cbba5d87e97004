// ListCountTests.swift -- how many names a table has, how many its predecessor had, and what it takes.

import TestSupport
import Testing

@testable import Lists

@Suite struct `The counts of a table of lists` {
  private let key = ListKey()
  private let use = [ListUse(list: 0, blocks: false)]

  private func table(_ texts: String..., uses: [ListUse]? = nil, after previous: ListTable.Previous? = nil) throws
    -> ListTable
  {
    let lists = try texts.map { try ListNames($0, key) }
    let uses = uses ?? lists.indices.map { ListUse(list: $0, blocks: false) }
    return ListTable(lists, uses: uses, key, after: previous)
  }

  private func text(_ names: some Sequence<Int>) -> String { names.map { "name\($0).example\n" }.joined() }

  @Test func `a name counts once for each list, whatever number of lines and forms it has`() throws {
    let lines = "a.example\n||a.example^\nfull:a.example\n0.0.0.0 a.example\nA.example.\n@@||a.example^\nb.example\n"
    let table = try table(lines, "a.example\nfull:c.example\n", "a.example\nb.example\nfull:b.example\n")
    #expect(table.nameCounts == [2, 2, 2] && table.keptCounts == [0, 0, 0])
  }

  @Test func `a list that no rule uses has no names`() throws {
    let table = try table("a.example\n", "b.example\n", uses: [ListUse(list: 1, blocks: false)])
    #expect(table.nameCounts == [0, 1])
    #expect(table.uses("a.example") == 0 && table.uses("b.example") == 1)
  }

  @Test func `the names that came and went are known after a change`() throws {
    let before = try table(text(0..<1000))
    let previous = ListTable.Previous(before, uses: use, lists: [0])
    let after = try table(text(Array(3..<1000) + Array(2000..<2012)), after: previous)
    #expect(after.nameCounts[0] - after.keptCounts[0] == 12)
    #expect(before.nameCounts[0] - after.keptCounts[0] == 3)
    let other = try table(text(0..<1000) + "full:name1.example\n@@||name2.example^\n", after: previous)
    #expect(other.nameCounts == [1000] && other.keptCounts == [1000])
  }

  @Test func `names are compared with those of the same list`() throws {
    let before = try table(text(0..<10), text(5..<20))
    let uses = [0, 1].map { ListUse(list: $0, blocks: false) }
    let previous = ListTable.Previous(before, uses: uses, lists: [nil, 1, 0])
    let after = try table(text(0..<20), text(0..<7), text(0..<7), after: previous)
    #expect(after.nameCounts == [20, 7, 7] && after.keptCounts == [0, 2, 7])
  }

  @Test(arguments: [10_000, 100_000]) func `a table takes at most 11.5 octets a name`(count: Int) throws {
    let table = try table(text(0..<count))
    #expect(table.nameCounts == [count])
    #expect(Double(table.size) <= 11.5 * Double(count), "\(table.size)")
  }

  @Test func `names that stand in many lists take the room of one`() throws {
    let names = text(0..<10_000)
    let table = try table(names + names, names, names, text(0..<10_100))
    #expect(table.nameCounts == [10_000, 10_000, 10_000, 10_100])
    #expect(Double(table.size) <= 11.5 * 10_100, "\(table.size)")
    #expect(table.uses("x.name9999.example") == 0b1111 && table.uses("name10099.example") == 0b1000)
  }

  @Test func `more effects than 65,535 leave the names out that would need them, and no others`() throws {
    // Name N stands in the lists whose bits N has.
    let names = 1..<70_000
    var texts = [String](repeating: "", count: 18)
    for name in names {
      for list in 0..<17 where name & 1 << list != 0 { texts[list] += "n\(name).example\n" }
    }
    texts[17] = "last.example\n"
    let lists = try texts.map { try ListNames($0, key) }
    let table = ListTable(lists, uses: lists.indices.map { ListUse(list: $0, blocks: false) }, key)
    let found = names.map { ($0, Int(table.uses("n\($0).example"))) }
    #expect(found.allSatisfy { $1 & ~$0 == 0 && $1 != 0 })
    #expect(found.allSatisfy { $0.nonzeroBitCount > 1 || $0 == $1 })
    let incomplete = found.count { $0 != $1 }
    #expect(0 < incomplete && incomplete < 10_000, "\(incomplete)")
    #expect(table.uses("last.example") == 1 << 17)
    #expect(table.nameCounts[17] == 1)
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `a look-up does not allocate`() throws {
    let table = try table(text(0..<1000) + "@@||name1.example^\n")
    let queries = ["name1.example", "a.b.c.name2.example", "missing.example", "example"].map { Query($0) }
    var selected = 0
    // No `for`: without optimisation its iterator allocates.
    let looks = {
      var index = 0
      while index < 4 {
        if queries[index].uses(table) != 0 { selected += 1 }
        index += 1
      }
    }
    looks()
    #expect(selected == 1)
    #expect(AllocationTrap.run(looks) == .clean)
    #expect(AllocationTrap.run { _ = Query("a.example") } == .allocated)
  }
}
