// HostCheckTests.swift -- which requests are meant for this machine.

import DNSWire
import EventLoop
import Testing

@testable import Dashboard

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

  // MARK: - The dashboard

  private func check(at address: String = "0.0.0.0:9353") throws -> HostCheck {
    var check = HostCheck(for: try #require(SocketAddress(text: address)), machine: "Desk.example.net")
    check.use(proxied: [try #require(DomainName(text: "dns.example.com"))])
    return check
  }

  @Test(arguments: [
    "127.0.0.1:9353", "192.0.2.1", "[2001:db8::1]:9353", "localhost:9353", "desk", "desk.example.net:9353",
    "dns.example.com",
    "DNS.example.com.:443",
  ])
  func `the dashboard is served under addresses, names of the machine and those of web.hosts`(_ field: String) throws {
    #expect(try check().admitsToDashboard(field))
    #expect(try check(at: "127.0.0.1:9353").admitsToDashboard(field))
  }

  @Test(arguments: [
    "", "attacker.example", "attacker.example:9353", "x.dns.example.com", "localhost:80@evil.example",
    "localhost:evil.example",
    "[::1]:80.evil.example", "example.com", "desk.evil",
  ])
  func `the dashboard is served under no other name, not even to the network`(_ field: String) throws {
    #expect(try !check().admitsToDashboard(field))
    #expect(try !check(at: "127.0.0.1:9353").admitsToDashboard(field))
  }

  @Test(arguments: [
    ("http://127.0.0.1:9353", "127.0.0.1:9353"), ("http://localhost:9353", "localhost:9353"),
    ("http://[::1]:9353", "[::1]:9353"), ("http://127.0.0.1:80", "127.0.0.1:80"),
    ("https://dns.example.com", "dns.example.com"), ("https://DNS.example.com:8443", "dns.example.com:8443"),
  ])
  func `a page of loopback, or of a proxy with TLS, may act`(origin: String, field: String) throws {
    #expect(try check().admits(origin: origin, of: field))
  }

  @Test(arguments: [
    ("http://127.0.0.1:9354", "127.0.0.1:9353"), ("http://127.0.0.1", "127.0.0.1:9353"),
    ("https://127.0.0.1:9353", "127.0.0.1:9353"), ("http://localhost:9353", "127.0.0.1:9353"),
    ("http://192.0.2.1:9353", "192.0.2.1:9353"), ("http://desk:9353", "desk:9353"),
    ("http://dns.example.com", "dns.example.com"), ("https://attacker.example", "dns.example.com"),
    ("http://localhost:80@evil.example", "localhost:80@evil.example"),
    ("null", "127.0.0.1:9353"), ("", "127.0.0.1:9353"), ("http://127.0.0.1:9353/", "127.0.0.1:9353"),
  ])
  func `no other page may: of another port or site, or over the network in clear`(
    origin: String, field: String
  ) throws {
    #expect(try !check().admits(origin: origin, of: field))
  }
}
