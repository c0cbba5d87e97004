// JSONServiceTests.swift -- services with JSON of their own form, behind the whole daemon.

import DNSWire
import Testing

@Suite(.blocking) struct JSONServiceTests {
  /// AdGuard's service, which the simulator knows by the host.
  private func settings(_ simulator: Simulator) throws -> String {
    let https = try #require(simulator.https)
    return Settings(
      Settings.provider(
        "json",
        """
        url = "https://dns.adguard-dns.com/resolve"
        servers = ["\(https.address)"]
        ca_file = "\(https.authority)"
        """)
    ).text
  }

  @Test func `AdGuard's answers of every type come through`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let daemon = try lab.daemon(try settings(simulator))
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try ask(daemon.address, "WWW.example.com", "AAAA").data == ["2001:db8::1"])
      #expect(try ask(daemon.address, "alias2.example.com").message.answers.count > 1)
      #expect(try ask(daemon.address, "example.com", "TXT").data.count == 1)
      #expect(try simulator.requests.allSatisfy { $0.dialect == "adguard" && $0.status == 200 })
    }
  }

  @Test func `a denial without an SOA record lives for max-age, at most half a minute`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let daemon = try lab.daemon(try settings(simulator))
      for (ttl, kept) in [(7, 7), (900, 30)] as [(Int, UInt32)] {
        try simulator.setZone(
          "zone\(ttl).example. \(ttl) SOA ns.zone\(ttl).example. h.zone\(ttl).example. 1 3600 600 86400 \(ttl)")
        for (type, code) in [("A", ResponseCode.nxDomain), ("MX", .nxDomain)] {
          let reply = try ask(daemon.address, "\(type).zone\(ttl).example", type)
          #expect(reply.code == code && reply.message.answers.isEmpty)
          #expect(reply.message.authorities.map(\.ttl) == [kept], "\(ttl) \(type)")
        }
      }
    }
  }
}
