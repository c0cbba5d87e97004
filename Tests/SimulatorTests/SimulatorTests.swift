// SimulatorTests.swift -- the whole simulator in this process, over sockets.

import EventLoop
import Foundation
import HTTPServer
import HTTPTestSupport
import Testing

@testable import httpdns_simulator

/// A simulator on free ports, on a loop of its own thread.
private final class Fixture {
  let address: SocketAddress
  let tlsAddress: SocketAddress
  let caPath: String
  private let simulator: Simulator
  private let thread: LoopThread

  init(clockOffset: Int64 = 0) throws {
    let loop = try EventLoop()
    var service = Service(zone: try ZoneParser.parse(defaultZoneText))
    service.options.clockOffset = clockOffset
    simulator = Simulator(on: loop, service: service, faults: FaultTable(), recordLimit: 100)
    let loopback = SocketAddress(text: "127.0.0.1:0")!
    let authority = try CertificateAuthority()
    caPath = "\(NSTemporaryDirectory())/simulator-ca-\(UUID().uuidString).pem"
    try write(authority.caCertificate, to: caPath)
    let tls = try TLSServerContext(certificateChain: authority.certificate, privateKey: authority.privateKey)
    address = try simulator.serve(on: loopback)
    tlsAddress = try simulator.serve(on: loopback, tls: tls)
    thread = LoopThread(running: loop)
  }

  deinit {
    thread.join()
    unlink(caPath)
  }

  func connect() throws -> RawClient { try #require(RawClient(to: address)) }

  /// Asks for www.example.com on a connection of its own.
  func ask() throws -> RawResponse? { try connect().exchange("GET", "/resolve?name=www.example.com") }

  func addFault(_ query: String) throws {
    #expect(try connect().exchange("POST", "/_simulator/fault?\(query)")?.status == 204)
  }
}

@Suite struct `The simulator` {
  @Test func `pipelined requests of several dialects share a connection and are counted`() throws {
    let fixture = try Fixture()
    let client = try fixture.connect()
    let targets = ["/resolve?name=n1.bench.example", "/resolve?uid=1&name=n1.bench.example&short=1", "/nothing"]
    client.send(targets.map { "GET \($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined())
    #expect(client.response()?.text.contains("\"data\":\"198.18.0.1\"") == true)
    #expect(client.response()?.text == "[\"198.18.0.1\"]")
    #expect(client.response()?.status == 404)
    #expect(
      client.exchange("GET", "/_simulator/count")?.text
        == #"{"transfers":3,"connections":1,"questions":{"n1.bench.example. A":2},"units":{"alidns":1}}"#)
    let requests = try #require(client.exchange("GET", "/_simulator/requests")?.text)
    #expect(requests.contains(#""dialect":"alidns""#))
    #expect(requests.contains(#""parameters":{"uid":"1","name":"n1.bench.example","short":"1"}"#))
    #expect(client.exchange("DELETE", "/_simulator/requests")?.status == 204)
    #expect(
      client.exchange("GET", "/_simulator/count")?.text == #"{"transfers":0,"connections":1,"questions":{},"units":{}}"#
    )
  }

  @Test(arguments: ["dns.alidns.com", "dns.google", "cloudflare-dns.com", "doh.pub"])
  func `HTTPS is verified with the CA under every provider's name`(host: String) throws {
    let fixture = try Fixture()
    let result = try curl(
      "--cacert", fixture.caPath, "--connect-to", "\(host):443:\(fixture.tlsAddress)",
      "https://\(host)/resolve?name=www.example.com", "https://\(host)/resolve?name=v4only.example.com",
      "--write-out", "%{num_connects}")
    #expect(result.status == 0)
    #expect(result.output.contains("192.0.2.2"))
    #expect(result.output.contains("192.0.2.4"))
    #expect(result.output.hasSuffix("}0"), "the second transfer took the first one's connection")
  }

  @Test func `HTTPS is verified under an address, and not under a name that is not the service's`() throws {
    let fixture = try Fixture()
    let address = try curl(
      "--cacert", fixture.caPath, "https://\(fixture.tlsAddress)/resolve?name=www.example.com")
    #expect(address.status == 0)
    let stranger = try curl(
      "--cacert", fixture.caPath, "--connect-to", "www.example.com:443:\(fixture.tlsAddress)",
      "https://www.example.com/")
    #expect(stranger.status == 60)
  }

  @Test func `faults over a connection: a status, a delay, a reset, then nothing any more`() throws {
    let fixture = try Fixture()
    try fixture.addFault("kind=status&code=429&retry-after=7&count=1")
    try fixture.addFault("kind=delay&ms=30&count=1")
    try fixture.addFault("kind=reset&count=1&type=A")
    let refused = try fixture.ask()
    #expect(refused?.status == 429)
    #expect(refused?.field("Retry-After") == "7")
    let start = BootInstant.now
    #expect(try fixture.ask()?.status == 200)
    #expect(BootInstant.now - start >= .milliseconds(30))
    let client = try fixture.connect()
    client.send("GET /resolve?name=www.example.com HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(client.end() == .reset)
    #expect(try fixture.ask()?.status == 200)
    let count = try fixture.connect().exchange("GET", "/_simulator/count")?.text
    #expect(count?.contains("\"transfers\":4,") == true)
  }

  @Test func `a delay counts from the request, not from when the loop began to wait for it`() throws {
    let other = try Fixture()
    try other.addFault("kind=delay&ms=80")
    let fixture = try Fixture()
    try fixture.addFault("kind=delay&ms=50&count=1")
    let client = try fixture.connect()
    #expect(client.exchange("GET", "/_simulator/count")?.status == 200)
    #expect(try other.ask()?.status == 200)  // meanwhile the first loop waits
    let start = BootInstant.now
    #expect(client.exchange("GET", "/resolve?name=www.example.com")?.status == 200)
    #expect(BootInstant.now - start >= .milliseconds(50))
  }

  @Test func `a stalled request does not hold up another, and faults can be removed`() throws {
    let fixture = try Fixture()
    let body = #"{"kind":"stall","name":"www.example.com"}"#
    #expect(try fixture.connect().exchange("POST", "/_simulator/fault", body: body)?.status == 204)
    let stalled = try fixture.connect()
    stalled.send("GET /resolve?name=www.example.com HTTP/1.1\r\nHost: localhost\r\n\r\n")
    let client = try fixture.connect()
    #expect(client.exchange("GET", "/resolve?name=v4only.example.com")?.status == 200)
    #expect(client.exchange("GET", "/_simulator/fault")?.text == #"[{"kind":"stall","remaining":null,"ms":0}]"#)
    #expect(client.exchange("DELETE", "/_simulator/fault")?.status == 204)
    #expect(try fixture.ask()?.status == 200)
  }

  @Test func `a body of ten megabytes arrives whole`() throws {
    let fixture = try Fixture()
    try fixture.addFault("kind=big&count=1")
    #expect(try fixture.ask()?.body.count == 10_000_000)
  }

  @Test func `the zone can be replaced, and comes back`() throws {
    let fixture = try Fixture()
    let client = try fixture.connect()
    #expect(client.exchange("PUT", "/_simulator/zone", body: "www.example.com. 5 A 192.0.2.77")?.status == 204)
    #expect(try fixture.ask()?.text.contains("192.0.2.77") == true)
    let refused = client.exchange("PUT", "/_simulator/zone", body: "www.example.com. 5 A x")
    #expect(refused?.status == 400)
    #expect(refused?.text == "line 1: \"x\" is no RDATA of type A\n")
    #expect(client.exchange("DELETE", "/_simulator/zone")?.status == 204)
    #expect(try fixture.ask()?.text.contains("192.0.2.77") == false)
  }

  @Test func `unknown control paths and methods are told apart`() throws {
    let fixture = try Fixture()
    let client = try fixture.connect()
    #expect(client.exchange("GET", "/_simulator/other")?.status == 404)
    #expect(client.exchange("PUT", "/_simulator/fault")?.status == 405)
    #expect(client.exchange("POST", "/_simulator/fault?kind=nothing")?.status == 400)
  }

  @Test func `a clock that is ahead shows in the Date field`() throws {
    let fixture = try Fixture(clockOffset: 86_400 * 365)
    let date = try #require(try fixture.ask()?.field("Date"))
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
    let ahead = try #require(formatter.date(from: date)).timeIntervalSinceNow
    #expect(abs(ahead - 86_400 * 365) < 60)
  }
}
