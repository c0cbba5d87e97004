// ListShapeTests.swift -- lists in the shapes of published ones, which a script writes that says what is in them.

import TestSupport
import Testing

@testable import Lists

@Suite struct `A list in the shape of a published one` {
  private static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
  private static let shapes = ["dnsmasq", "v2fly", "wildcard", "adblock", "plain", "hosts", "clash", "adguard"]

  @Test(arguments: shapes) func `all names are read, and what is left out has its reason`(shape: String) throws {
    let folder = TemporaryFolder()
    let script = "exec \"$0\" \"$1\" 5000 --seed \"$2\" --expect \"$3\" > \"$4\""
    let seed = "\(testSeed)"
    let status = try run([
      "sh", "-c", script, "\(Self.root)/Benchmarks/lists", shape, seed, folder.path(of: "expected"),
      folder.path(of: "list"),
    ])
    #expect(status == 0)
    let text = String(decoding: try #require(folder.read("list")), as: UTF8.self)
    let expected = String(decoding: try #require(folder.read("expected")), as: UTF8.self)

    let key = ListKey()
    let list = try ListNames(text, key)
    let table = ListTable([list], uses: [ListUse(list: 0, blocks: false)], key)
    let reasons = LeftOutReason.allCases.filter { list.leftOut[$0] > 0 }.map { "\($0) \(list.leftOut[$0])\n" }
    #expect("names \(table.nameCounts[0])\n" + reasons.sorted().joined() == expected, "seed \(seed)")
    #expect(table.nameCounts[0] >= 5000)
  }
}
