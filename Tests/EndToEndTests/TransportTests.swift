// TransportTests.swift -- how providers are reached: HTTP, HTTPS with the certificate checked, HTTP/2.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct TransportTests {
  @Test func `a question over UDP or TCP is answered by way of HTTP`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let daemon = try lab.daemon(Settings(Settings.json(simulator.http)).text)
      for transport in Transport.allCases {
        let reply = try ask(daemon.address, "example.com", over: transport)
        #expect(reply.code == .noError)
        #expect(reply.data == ["192.0.2.1"])
        #expect(reply.message.header.ra && reply.message.header.rd && !reply.message.header.aa)
      }
      #expect(try simulator.count.transfers == 1, "the second question is answered from the cache")
    }
  }

  @Test func `a server given by address is checked against tls_name`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let daemon = try lab.daemon(
        Settings(
          Settings.provider(
            "json",
            """
            url = "https://dns.google/resolve"
            servers = ["\(https.address)"]
            ca_file = "\(https.authority)"
            """)
        ).text)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try simulator.requests.map(\.transport) == ["https"])
    }
  }

  @Test func `a certificate for another name is refused`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let daemon = try lab.daemon(
        Settings(
          Settings.provider(
            "json",
            """
            url = "https://dns.google/resolve"
            servers = ["\(https.address)"]
            tls_name = "resolver.example.org"
            ca_file = "\(https.authority)"
            """)
        ).text)
      let reply = try ask(daemon.address, "example.com")
      #expect(reply.code == .servFail)
      #expect(reply.errors == [23])
      #expect(try simulator.count.transfers == 0)
      try daemon.waitForLog("certificate")
    }
  }

  @Test func `a certificate of an authority that nobody trusts is refused`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let daemon = try lab.daemon(
        Settings(
          Settings.provider("json", "url = \"https://dns.google/resolve\"\nservers = [\"\(https.address)\"]")
        ).text)
      let reply = try ask(daemon.address, "example.com")
      #expect(reply.code == .servFail)
      #expect(reply.errors == [23])
      #expect(try simulator.count.transfers == 0)
    }
  }

  @Test func `a hundred questions over HTTPS share a few connections`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let daemon = try lab.daemon(
        Settings(
          Settings.provider(
            "doh",
            """
            url = "https://dns.google/dns-query"
            servers = ["\(https.address)"]
            ca_file = "\(https.authority)"
            """)
        ).text)
      for index in 0..<100 {
        #expect(try ask(daemon.address, "n\(index).bench.example").data == ["198.18.0.\(index)"])
      }
      let count = try simulator.count
      #expect(count.transfers == 100)
      #expect(count.connections <= 2)
    }
  }

  @Test func `a hundred questions at once share one HTTP/2 connection`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let proxy = try HTTP2Proxy(in: lab, before: simulator.http)
      let daemon = try lab.daemon(
        Settings(
          Settings.provider(
            "doh",
            """
            url = "https://dns.google/dns-query"
            servers = ["\(proxy.address)"]
            ca_file = "\(proxy.authority)"
            """)
        ).text)
      for round in 0..<4 {
        let queries = (0..<25).map { TestQuery("n\(round * 25 + $0).bench.example") }
        for (index, answer) in try askAll(daemon.address, queries).enumerated() {
          #expect(answer.reply.data == ["198.18.0.\(round * 25 + index)"])
        }
      }
      let lines = try proxy.accessLog(lines: 100)
      #expect(lines.allSatisfy { $0.hasPrefix("h2 ") }, "\(lines.first ?? "")")
      #expect(Set(lines).count <= 2, "each line is a protocol and a client's port")
      #expect(try simulator.count.transfers == 100)
    }
  }
}
