// StaleTests.swift -- stale data is served within its limits (RFC 8767).

import DNSWire
import Foundation
import Testing

/// Stale Answer (RFC 8914 section 4.4).
private let staleAnswer: [UInt16] = [3]

@Suite(.blocking) struct StaleTests {
  /// A daemon whose cache has `ttl-1.example`, expired.
  private func withExpired(
    _ cache: String, provider: String = "", _ body: (Address, Simulator, Daemon) throws -> Void
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http, provider))
      settings.more = "[cache]\n\(cache)\n[refresh]\nhot_hits = 0"
      let daemon = try lab.daemon(settings.text)
      try expire("ttl-1.example", daemon.address, simulator)
      try body(daemon.address, simulator, daemon)
    }
  }

  /// Asks for a name with a TTL of one second, and waits until it has expired: another one like it is fetched after that, and
  /// then once more.
  private func expire(_ name: String, _ server: Address, _ simulator: Simulator) throws {
    #expect(try ask(server, name).errors.isEmpty)
    var fetches: Int { get throws { try simulator.count.questions["ttl-1.example. AAAA"] ?? 0 } }
    let before = try fetches
    try eventually("\(name) has expired", within: .seconds(20)) {
      try ask(server, "ttl-1.example", "AAAA")
      return try fetches >= before + 2 ? true : nil
    }
  }

  @Test func `during an outage expired answers are served at once, with one attempt`() throws {
    try withExpired("stale = \"on-failure\"") { server, simulator, _ in
      simulator.process.end()
      for _ in 0..<10 {
        let (reply, duration) = try timed { try ask(server, "ttl-1.example") }
        #expect(reply.code == .noError && reply.data.count == 1)
        #expect(reply.errors == staleAnswer)
        #expect((1...30).contains(reply.ttl ?? 0))
        #expect(duration < .milliseconds(1_500))
      }
      // A name that never was in the cache: nothing is made up.
      #expect(try ask(server, "n1.bench.example").code == .servFail)
    }
  }

  @Test func `an expired name is tried once in half a minute, not once a query`() throws {
    try withExpired("stale = \"on-failure\"") { server, simulator, _ in
      try simulator.fault("kind=status&code=500")
      #expect(try ask(server, "ttl-1.example").errors == staleAnswer)
      let attempts = try simulator.count.transfers
      for _ in 0..<50 { #expect(try ask(server, "ttl-1.example").errors == staleAnswer) }
      #expect(try simulator.count.transfers == attempts)
      try simulator.clearFaults()
      try eventually("a fresh answer", within: .seconds(40)) {
        try ask(server, "ttl-1.example").errors.isEmpty ? true : nil
      }
    }
  }

  @Test func `a slow provider costs stale data once, and its late answer is cached`() throws {
    try withExpired("stale = \"on-failure\"\nstale_wait = \"500ms\"", provider: "timeout = \"5s\"") {
      server, simulator, _ in
      try simulator.setZone("ttl-1.example. 60 A 192.0.2.77")
      try simulator.fault("kind=delay&ms=1500")
      let (reply, duration) = try timed { try ask(server, "ttl-1.example") }
      #expect(reply.errors == staleAnswer && reply.data != ["192.0.2.77"])
      #expect(duration >= .milliseconds(490) && duration < .milliseconds(1_400))
      try eventually("the fresh answer") {
        let reply = try ask(server, "ttl-1.example")
        guard reply.errors.isEmpty else { return nil as Bool? }
        #expect(reply.data == ["192.0.2.77"])
        return true
      }
      #expect(try simulator.count.questions["ttl-1.example. A"] == 2)
    }
  }

  @Test func `stale = "immediate" serves stale data at once and refreshes it`() throws {
    try withExpired("stale = \"immediate\"") { server, simulator, _ in
      try simulator.setZone("ttl-1.example. 60 A 192.0.2.77")
      try simulator.fault("kind=delay&ms=1500")
      let (reply, duration) = try timed { try ask(server, "ttl-1.example") }
      #expect(reply.errors == staleAnswer && reply.data != ["192.0.2.77"])
      #expect(duration < .milliseconds(1_400))
      try eventually("the fresh answer") {
        let reply = try ask(server, "ttl-1.example")
        return reply.errors.isEmpty && reply.data == ["192.0.2.77"] ? true : nil
      }
      #expect(try simulator.count.questions["ttl-1.example. A"] == 2)
    }
  }

  @Test func `stale = "off" serves no expired data`() throws {
    try withExpired("stale = \"off\"") { server, simulator, _ in
      try simulator.fault("kind=status&code=500")
      #expect(try ask(server, "ttl-1.example").code == .servFail)
    }
  }

  @Test func `NXDOMAIN replaces the former address`() throws {
    try withExpired("stale = \"on-failure\"") { server, simulator, _ in
      try simulator.setZone("gone.example. 1 A 192.0.2.1")
      try expire("gone.example", server, simulator)
      try simulator.setZone("other.example. 1 A 192.0.2.1")
      #expect(try ask(server, "gone.example").code == .nxDomain)
      try simulator.fault("kind=status&code=500")
      #expect(try ask(server, "gone.example").code == .nxDomain)
    }
  }
}
