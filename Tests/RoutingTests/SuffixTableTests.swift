// SuffixTableTests.swift -- the worst case of a look-up, because the hash has no seed.

import DNSWire
import Testing

@testable import Routing

@Suite struct SuffixTableTests {
  /// Names as in blocklists.
  private static let shapes: [@Sendable (Int) -> String] = [
    { "host\($0).example" },
    { "\($0).ads.example" },
    { "a\($0).b\($0 % 1000).example" },
    { "\(String(repeating: "0", count: 10 - String($0).count))\($0).example" },
    { String($0 &* 0x9E37_79B1, radix: 16) + ".example" },
  ]

  @Test(arguments: shapes.indices)
  func `the longest run of occupied slots is short for names with anything in common`(shape: Int) throws {
    var builder = SuffixTableBuilder()
    for number in 0..<100_000 { _ = builder.node(of: try #require(DomainName(text: Self.shapes[shape](number)))) }
    let table = builder.table
    var (longest, run, taken) = (0, 0, 0)
    // Twice around, to include the run across the end.
    for place in 0..<2 * (table.mask + 1) {
      let isTaken = table.edges[place & table.mask].child != 0
      run = isTaken ? run + 1 : 0
      taken += isTaken ? 1 : 0
      longest = max(longest, run)
    }
    #expect(taken <= table.mask + 1)
    #expect(longest < 200)
  }
}
