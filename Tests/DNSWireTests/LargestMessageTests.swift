// LargestMessageTests.swift -- the work for a message is linear in its length, up to the largest legal one.

import DNSWire
import TestSupport
import Testing

@Suite struct LargestMessageTests {
  /// Queries of that length, filled with repeated parts of every kind.
  private static let queries: [@Sendable (Int) -> [UInt8]] = [
    { size in RawQuery { $0.records = [opt([UInt8](repeating: 0, count: size / 4 * 4))] }.octets },
    { size in
      RawQuery { $0.records = [opt((0..<size / 8).flatMap { option(UInt16(65_001 + $0 % 500), [1, 2, 3, 4]) })] }.octets
    },
    { size in RawQuery { $0.records = [opt()] + [[UInt8]](repeating: record(type: 1), count: size / 12) }.octets },
    { size in
      RawQuery { $0.records = [opt()] + [[UInt8]](repeating: record(owner: [0], type: 1), count: size / 11) }.octets
    },
  ]

  /// Responses whose records lead to long names.
  private static let responses: [@Sendable (Int) -> [UInt8]] = [
    { size in response(name: RawQuery.name(labels(127)), size) { _ in [0xC0, 12] } },
    { size in response(name: RawQuery.name(labels(20)), size) { number in [0xC0, UInt8(12 + number % 20 * 2)] } },
    // Each name is one label longer than the previous one, until it is too long.
    { size in
      response(name: RawQuery.name("a"), size) { number in number % 100 == 0 ? [0xC0, 12] : [1, 97, 0xC0, 12] }
    },
  ]

  private static func labels(_ count: Int) -> String { [String](repeating: "a", count: count).joined(separator: ".") }

  private static func response(name: [UInt8], _ size: Int, _ owner: (Int) -> [UInt8]) -> [UInt8] {
    RawQuery {
      $0.name = name
      $0.flags = 0x8180
      $0.records = (0..<size / 18).map { record(owner: owner($0), type: 1, [192, 0, 2, 1]) }
      $0.counts = [1, UInt16($0.records.count), 0, 0]
    }.octets
  }

  @Test(arguments: queries.indices) func `the largest query is parsed`(shape: Int) {
    let (small, large) = (Self.queries[shape](6_400), Self.queries[shape](64_000))
    #expect((60_000...65_535).contains(large.count))
    func read(_ octets: [UInt8]) {
      var query = Query()
      for _ in 0..<20 { _ = QueryReader.read(octets.span, into: &query) }
    }
    let times = (cpuTime { read(small) }, cpuTime { read(large) })
    // Quadratic work would take a hundred times as long; times too short to measure are not quadratic.
    #expect(times.1 < 30 * times.0 + 1_000_000)
  }

  @Test(arguments: responses.indices) func `the largest response is parsed`(shape: Int) {
    let (small, large) = (Self.responses[shape](6_400), Self.responses[shape](64_000))
    #expect((55_000...65_535).contains(large.count))
    let times = (cpuTime { _ = try? Message.parse(small) }, cpuTime { _ = try? Message.parse(large) })
    #expect(times.1 < 30 * times.0 + 1_000_000)
  }
}
