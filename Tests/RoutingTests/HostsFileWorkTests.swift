// HostsFileWorkTests.swift -- the work for a hosts file is linear in its size for any contents.

import Routing
import TestSupport
import Testing

@Suite struct HostsFileWorkTests {
  /// Files of about that many octets that would make a naive reader compare each line, name or address with all others.
  private static let shapes: [@Sendable (Int) -> String] = [
    { size in (0..<size / 32).map { "10.\($0 >> 16).\($0 >> 8 & 255).\($0 & 255) host\($0).example\n" }.joined() },
    { size in (0..<size / 24).map { "10.\($0 >> 16).\($0 >> 8 & 255).\($0 & 255) one.example\n" }.joined() },
    { size in "192.0.2.1 " + (0..<size / 16).map { "h\($0).example" }.joined(separator: " ") },
    { size in
      (0..<size / 150).map { "0.0.0.0 \(String(repeating: "a.", count: 60))h\($0)\n" }.joined()
    },
    { size in String(repeating: "not-an-address x\n", count: size / 17) },
  ]

  @Test(arguments: shapes.indices) func `the time to read a hosts file is linear in its size`(shape: Int) throws {
    let (small, large) = (Array(Self.shapes[shape](100_000).utf8), Array(Self.shapes[shape](1_000_000).utf8))
    let times = try (
      cpuTime { _ = try HostsFile(octets: small) }, cpuTime { _ = try HostsFile(octets: large) }
    )
    // Quadratic work would take a hundred times as long.
    #expect(times.1 < 30 * times.0)
  }

  @Test func `the time to compile a table is linear in the number of names`() throws {
    func hosts(_ count: Int) throws -> HostsFile {
      try HostsFile(octets: Array((0..<count).map { "10.0.\($0 >> 8).\($0 & 255) h\($0).example\n" }.joined().utf8))
    }
    let (small, large) = (try hosts(2_000), try hosts(20_000))
    let times = (
      cpuTime { _ = RouteTable(rules: [], hosts: small, settings: settings) },
      cpuTime { _ = RouteTable(rules: [], hosts: large, settings: settings) }
    )
    #expect(times.1 < 30 * times.0)
  }

  private var settings: SpecialNamesSettings {
    SpecialNamesSettings(searchDomains: [], searchRoute: 4, networkRoute: 1, portalRoute: 2)
  }
}
