// AccessTests.swift -- where the daemon listens, which clients it allows, and what it refuses to all.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct AccessTests {
  @Test(arguments: [("0.0.0.0", ["127.0.0.1", "127.0.0.2", "127.0.0.3"]), ("[::]", ["::1"])])
  func `an answer leaves from the address that was asked`(_ wildcard: String, _ hosts: [String]) throws {
    guard !wildcard.hasPrefix("[") || hasIPv6Loopback else { return }
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["\(wildcard):0"]
      let daemon = try lab.daemon(settings.text)
      for (index, host) in hosts.enumerated() {
        let server = daemon.address.at(host)
        // Not connected, so that an answer from elsewhere would come in, too.
        let socket = try Socket(SOCK_DGRAM, family: server.family)
        // From the provider, and then from the cache: two ways to send.
        for _ in 0..<2 {
          let query = TestQuery("n\(index).bench.example")
          socket.send(query.octets, to: server)
          let (octets, sender) = try #require(socket.receiveFrom())
          #expect(sender == server)
          #expect(try Reply(octets, to: query).data == ["198.18.0.\(index)"])
        }
        #expect(try ask(server, "n\(index).bench.example", over: .tcp).code == .noError)
      }
    }
  }

  @Test func `several addresses are served at once`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["127.0.0.1:0", "127.0.0.2:0"] + (hasIPv6Loopback ? ["[::1]:0"] : [])
      let daemon = try lab.daemon(settings.text)
      #expect(daemon.addresses.map(\.host) == ["127.0.0.1", "127.0.0.2"] + (hasIPv6Loopback ? ["::1"] : []))
      for address in daemon.addresses {
        for transport in Transport.allCases {
          #expect(try ask(address, "example.com", over: transport).data == ["192.0.2.1"])
        }
      }
    }
  }

  @Test func `a client that is not on the access list is refused`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.json(simulator.http))
      settings.addresses = ["0.0.0.0:0"]
      settings.listen = "allow = [\"127.0.0.2/32\"]"
      let daemon = try lab.daemon(settings.text)
      for transport in Transport.allCases {
        let server = daemon.address.at("127.0.0.1")
        let refused = try ask(server, TestQuery("example.com"), over: transport)
        #expect(refused.code == .refused)
        #expect(refused.errors == [18])
        try daemon.waitForLog("INFO refused 1 query from 127.0.0.0/24: not in listen.allow\n")
        #expect(try simulator.count.transfers == (transport == .udp ? 0 : 1))
        let answered = try ask(server, TestQuery("example.com"), over: transport, from: "127.0.0.2")
        #expect(answered.data == ["192.0.2.1"])
      }
    }
  }

  @Test(arguments: Dig.allCases)
  func `transfers of zones and questions about the server are refused`(_ program: Dig) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let server = try lab.daemon(Settings(Settings.json(simulator.http)).text).address
      for name in ["version.bind", "id.server", "hostname.bind"] {
        #expect(try program.ask(server, "-c", "CH", "-t", "TXT", name).status == "REFUSED")
      }
      for transport in Transport.allCases {
        #expect(try ask(server, "example.com", "AXFR", over: transport).code == .refused)
        #expect(try ask(server, "example.com", "IXFR", over: transport).code == .refused)
      }
      #expect(try simulator.count.transfers == 0)
    }
  }

  @Test func `a question for everything is answered with HINFO`() throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      let server = try lab.daemon(Settings(Settings.json(simulator.http)).text).address
      let reply = try ask(server, "example.com", "ANY")
      #expect(reply.message.answers.map(\.text) == ["\"RFC8482\" \"\""])
      #expect(try simulator.count.transfers == 0)
    }
  }
}

/// Whether this machine has ::1.
let hasIPv6Loopback = (try? Socket(SOCK_DGRAM, boundTo: Address("::1", 0))) != nil
