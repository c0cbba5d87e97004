// SetupTests.swift -- what an origin is made of, and what is refused before anything is sent.

import EventLoop
import HTTPClient
import TLSTestSupport
import TestSupport
import Testing

@Suite struct `An origin is made` {
  @Test func `an origin accepts address literals only`() {
    for text in ["dns.test", "", "192.0.2", "192.0.2.1:53", "[2001:db8::1]", "fe80::1%lo"] {
      #expect(HTTPServerAddress(scheme: .https, addresses: [text]) == nil, "\(text)")
    }
    #expect(HTTPServerAddress(scheme: .https, addresses: []) == nil)
    #expect(HTTPServerAddress(scheme: .https, addresses: ["192.0.2.1", "2001:db8::1"]) != nil)
  }

  @Test(arguments: ["a/b", "user@host", "a b", "a?b", "a:b", "ä.test", "a\r\nb"])
  func `an origin accepts only names that cannot break out of a URL`(name: String) {
    #expect(HTTPServerAddress(scheme: .https, name: name, addresses: ["192.0.2.1"]) == nil)
  }

  @Test func `an origin without a name uses its first address`() {
    let address = HTTPServerAddress(scheme: .https, addresses: ["2001:db8::1", "192.0.2.1"])
    #expect(address?.description == "https://[2001:db8::1]/")
    #expect(
      HTTPServerAddress(scheme: .http, name: "a.test.", addresses: ["::1"], port: 81)?.description
        == "http://a.test:81/")
  }

  private func mistake(_ adjust: (inout HTTPClientOptions) -> Void) throws -> String? {
    var options = HTTPClientOptions()
    adjust(&options)
    let address = try #require(HTTPServerAddress(scheme: .https, name: "dns.test", addresses: ["127.0.0.1"]))
    let loop = try EventLoop()
    do {
      _ = try HTTPOrigin(address, options: options, on: loop)
      return nil
    } catch {
      return error.description
    }
  }

  @Test func `an origin requires readable certificates`() throws {
    #expect(
      try mistake { $0.caFile = "/nonexistent/ca.pem" } == "certificates /nonexistent/ca.pem: No such file or directory"
    )
    let empty = TemporaryFile("nothing")
    let mistake = try mistake { $0.caFile = empty.path }
    #expect(mistake == "certificates \(empty.path): no certificate (PEM) in it")
  }

  @Test(arguments: ["", "sha256//short=", "/etc/key.pem", "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA;A="])
  func `an origin requires pins that are digests`(pin: String) throws {
    let mistake = try mistake { $0.pins = [Certificates.serverPin, pin] }
    #expect(mistake?.hasPrefix("pin \(pin)") == true)
  }

  @Test func `an origin requires a proxy with an address`() throws {
    for proxy in ["http://192.0.2.1:3128", "socks5h://[2001:db8::1]:1080"] {
      let mistake = try mistake { $0.proxy = proxy }
      #expect(mistake == nil, "\(proxy)")
    }
    for proxy in ["http://proxy.test:3128", "socks5h://localhost", "http://", "192.0.2.1 80"] {
      let mistake = try mistake { $0.proxy = proxy }
      #expect(mistake != nil, "\(proxy)")
    }
  }

  @Test func `an origin without an address of its family fails its transfers`() throws {
    let result = try withOrigin(port: 1, addresses: ["127.0.0.1"]) {
      $0.family = .ipv6
    } body: {
      await $0.get()
    }
    #expect(result.failure?.kind == .unreachable)
  }
}
