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
      let daemon = try lab.daemon(Settings(Settings.secure("json", https.address, https.authority)).text)
      #expect(try ask(daemon.address, "example.com").data == ["192.0.2.1"])
      #expect(try simulator.requests.map(\.transport) == ["https"])
    }
  }

  @Test func `a certificate for another name is refused`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let provider = Settings.secure(
        "json", https.address, https.authority, "tls_name = \"resolver.example.org\"")
      let daemon = try lab.daemon(Settings(provider).text)
      let reply = try ask(daemon.address, "example.com")
      #expect(reply.code == .servFail)
      #expect(reply.errors == [23])
      #expect(try simulator.count.transfers == 0)
      try daemon.waitForLog("certificate")
    }
  }

  @Test func `a certificate of an unknown authority is refused`() throws {
    try withLab { lab in
      let simulator = try lab.simulator(https: true)
      let https = try #require(simulator.https)
      let daemon = try lab.daemon(Settings(Settings.secure("json", https.address, nil)).text)
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
      let daemon = try lab.daemon(Settings(Settings.secure("doh", https.address, https.authority)).text)
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
      let daemon = try lab.daemon(Settings(proxy.provider()).text)
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

  @Test func `questions at once on a first connection are answered by a server of one stream at a time`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      // It refuses what is above, also before the client can know (RFC 9113 section 5.1.2).
      let proxy = try HTTP2Proxy(in: lab, before: simulator.http, "--frontend-http2-max-concurrent-streams=1")
      let daemon = try lab.daemon(Settings(proxy.provider()).text)
      let queries = (0..<50).map { TestQuery("n\($0).bench.example") }
      for (index, answer) in try askAll(daemon.address, queries).enumerated() {
        #expect(answer.reply.data == ["198.18.0.\(index)"])
      }
      #expect(try simulator.count.transfers == 50, "what was refused was not charged")
      #expect(Set(try proxy.accessLog(lines: 50)).count <= 64, "provider.connections")
    }
  }
}
