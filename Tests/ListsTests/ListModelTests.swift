// ListModelTests.swift -- the table against dictionaries of strings.
//
// With HTTPDNSD_TEST_LONG in the environment the lists have 1,000,000 lines, and 10,000,000 names are looked up.

import Glibc
import TestSupport
import Testing

@testable import Lists

@Suite struct `A table of lists and its model` {
  private static let factor = getenv("HTTPDNSD_TEST_LONG") == nil ? 1 : 100

  @Test func `a table selects the same names as dictionaries of strings`() throws {
    // Many small worlds, in which all names meet, and a large one.
    for round in 0..<20 { try compare(lines: 50, queries: 500, seed: testSeed &+ UInt64(round)) }
    try compare(
      lines: 10_000 * Self.factor, queries: 100_000 * Self.factor, seed: testSeed &+ 20)
  }

  private func compare(lines: Int, queries: Int, seed: UInt64) throws {
    var lists = RandomLists(lines: lines, seed: seed)
    let key = ListKey()
    let names = try lists.texts.indices.map {
      try ListNames(lists.texts[$0], key, blocks: lists.isBlocking($0), piece: 1000)
    }
    let table = ListTable(names, uses: lists.uses, key)
    #expect(table.nameCounts == names.indices.map { lists.model.names(of: $0) }, "seed \(seed)")
    var selected = 0
    for _ in 0..<queries {
      let name = lists.query()
      let (found, expected) = (table.uses(name), lists.model.uses(name))
      if found != 0 { selected += 1 }
      if found != expected {
        Issue.record("seed \(seed): \(name): \(String(found, radix: 2)) instead of \(String(expected, radix: 2))")
        return
      }
    }
    // A small world may select nothing.
    #expect(selected > queries / 20 || lines < 100, "seed \(seed)")
  }

  @Test func `a look-up looks at few slots`() throws {
    let count = 20_000 * Self.factor
    let key = ListKey()
    let names = try ListNames((0..<count).map { "name\($0).example\n" }.joined(), key)
    let table = ListTable([names], uses: [ListUse(list: 0, blocks: false)], key)
    // Which slots are taken does not depend on the order in which names are added.
    var isTaken = [Bool](repeating: false, count: table.size / 8)
    for hash in names.names[0] {
      var place = firstSlot(of: hash, among: isTaken.count)
      while isTaken[place] { place = (place + 1) % isTaken.count }
      isTaken[place] = true
    }
    var (run, longest, sum) = (0, 0, 0)
    // A name that is missing is looked for up to the next free slot.
    for place in isTaken.indices.reversed() {
      run = isTaken[place] ? run + 1 : 0
      longest = max(longest, run)
      sum += run + 1
    }
    #expect(longest < 500, "\(longest)")
    #expect(Double(sum) / Double(isTaken.count) < 7)
  }
}
