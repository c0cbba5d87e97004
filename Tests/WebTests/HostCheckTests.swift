// HostCheckTests.swift -- which requests are meant for this machine.

import EventLoop
import Testing

@testable import Web

@Suite struct HostCheckTests {
  private func admits(_ field: String?, at address: String = "127.0.0.1:9353") throws -> Bool {
    HostCheck(for: try #require(SocketAddress(text: address)), machine: "Desk.example.net").admits(field)
  }

  @Test(arguments: [
    "127.0.0.1", "127.0.0.1:9353", "10.0.0.1:80", "[::1]", "[::1]:9353", "localhost", "LOCALHOST:9353", "localhost.",
    "metrics.localhost:1", "desk", "Desk:9353", "desk.example.net", "DESK.example.net.:9353",
  ])
  func `addresses and names of this machine are answered`(_ field: String) throws {
    #expect(try admits(field))
    #expect(try admits(field, at: "[::1]:9353"))
  }

  @Test(arguments: [
    "attacker.example", "attacker.example:9353", "localhost.attacker.example", "", ":9353", "desk.evil",
    "[attacker.example]", "[attacker.example]:9353", "[", "user@127.0.0.1.attacker.example",
  ])
  func `a foreign name that points to a loopback address is refused`(_ field: String) throws {
    #expect(try !admits(field))
    #expect(try !admits(field, at: "[::1]:9353"))
  }

  @Test func `a request without a Host field is answered, since no browser sends it`() throws {
    #expect(try admits(nil))
  }

  @Test(arguments: ["192.0.2.1:9353", "0.0.0.0:9353", "[::]:9353", "[2001:db8::1]:9353"])
  func `any name is accepted on an address that the network may read`(_ address: String) throws {
    #expect(try admits("dns.example.net:9353", at: address))
  }
}
