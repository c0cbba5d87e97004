// TextKindTests.swift -- services of plain text: what they are asked, and what is no reply of theirs.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct TextKindTests {
  private func provider(_ servers: [Address], _ dialect: String, _ more: String = "") -> String {
    Settings.provider(
      "text",
      """
      url = "http://text.example/text"
      servers = \(quoted(servers.map(\.description)))
      dialect = "\(dialect)"
      \(more)
      """)
  }

  @Test func `Tencent's old form has IPv4 alone, and AAAA goes on without a transfer`() throws {
    try withLab { lab in
      let first = try lab.simulator()
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(provider([first.http], "dnspod"), Settings.json(second.http)).text)
      #expect(try ask(daemon.address, "Example.com").data == ["192.0.2.1"])
      #expect(try ask(daemon.address, "example.com", "AAAA").data == ["2001:db8::1"])
      #expect(try ask(daemon.address, "v4only.example.com").data == ["192.0.2.4"])
      #expect(
        try first.requests.map(\.parameters) == [
          ["dn": "example.com", "ttl": "1"], ["dn": "v4only.example.com", "ttl": "1"],
        ])
      #expect(try second.count.questions == ["example.com. AAAA": 1])
    }
  }

  @Test func `114DNS's form has both families and the client's address`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(
        Settings(provider([simulator.http], "114", "client_subnet = \"203.0.113.0/24\"")).text)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try ask(daemon.address, "example.com", "AAAA").data == ["2001:db8::1"])
      #expect(
        try simulator.requests.map(\.parameters) == [
          ["dn": "example.com", "type": "a", "ttl": "y", "ip": "203.0.113.0"],
          ["dn": "example.com", "type": "aaaa", "ttl": "y", "ip": "203.0.113.0"],
        ])
    }
  }

  @Test func `a reply that is no list of addresses leads on, and the provider stays in use`() throws {
    try withLab { lab in
      let first = try lab.simulator()
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(provider([first.http], "114"), Settings.json(second.http)).text)
      let faults =
        ["Service unavailable", "{}", "0", "192.0.2.1:80", "\"192.0.2.1\"", "<p>", "192.0.2.7;x", ""].map { text in
          let escaped = text.utf8.map { "%" + String(Int($0) + 256, radix: 16).dropFirst() }.joined()
          return "body&code=200&text=\(escaped)"
        } + ["html", "status&code=403", "status&code=404", "status&code=429", "garble", "big"]
      for (number, fault) in faults.enumerated() {
        try first.fault("kind=\(fault)")
        #expect(try ask(daemon.address, "n\(number).bench.example").data == ["198.18.0.\(number)"], "\(fault)")
        try first.clearFaults()
        #expect(try second.count.transfers == number + 1, "\(fault)")
      }
      #expect(try ask(daemon.address, "n\(faults.count).bench.example").data == ["198.18.0.\(faults.count)"])
      #expect(try second.count.transfers == faults.count)
    }
  }

  @Test(arguments: [("\"1d\"", UInt32(600)), ("\"5m\"", 300)])
  func `addresses without a TTL live for ten minutes, and no longer than cache's max_ttl`(most: String, ttl: UInt32)
    throws
  {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(provider([simulator.http], "dnspod"))
      settings.more = "[cache]\nmax_ttl = \(most)"
      let daemon = try lab.daemon(settings.text)
      for text in ["192.0.2.1", "192.0.2.1,x"] {
        try simulator.fault("kind=body&code=200&text=\(text)")
        let reply = try ask(daemon.address, "n\(text.utf8.count).bench.example")
        #expect(reply.data == ["192.0.2.1"] && reply.ttl == ttl, "\(text)")
        try simulator.clearFaults()
      }
    }
  }

  @Test func `a dead first server costs nothing, and words in place of addresses lead to the second`() throws {
    try withLab { lab in
      let servers = try (0..<2).map { _ in try lab.simulator() }
      let dead = Address(text: "127.0.0.1:1")!
      let daemon = try lab.daemon(Settings(provider([dead] + servers.map(\.http), "dnspod")).text)
      #expect(try ask(daemon.address, "n0.bench.example").data == ["198.18.0.0"])
      for (number, fault) in ["body&code=200&text=Unavailable", "status&code=503"].enumerated() {
        try servers[0].fault("kind=\(fault)")
        #expect(try ask(daemon.address, "n\(number + 1).bench.example").data == ["198.18.0.\(number + 1)"], "\(fault)")
        try servers[0].clearFaults()
      }
      #expect(try servers.map { try $0.count.transfers } == [3, 2])
    }
  }

  @Test func `429 with Retry-After is a pause once three domains got it`() throws {
    try withLab { lab in
      let first = try lab.simulator()
      let second = try lab.simulator()
      let daemon = try lab.daemon(Settings(provider([first.http], "114"), Settings.json(second.http)).text)
      try first.fault("kind=status&code=429&retry-after=60")
      for name in ["n0.bench.example", "example.com", "example.org", "n1.bench.example"] {
        #expect(try ask(daemon.address, name).code != .servFail)
      }
      #expect(try first.count.transfers == 3)
      try daemon.waitForLog("pausing for 60 s; set requests_per_second")
    }
  }
}
