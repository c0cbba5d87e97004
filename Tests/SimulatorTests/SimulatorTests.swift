// SimulatorTests.swift -- the whole simulator in this process, over sockets.

import EventLoop
import Foundation
import HTTPServer
import HTTPTestSupport
import Streams
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
    let tls = TLSServer(authority.pair, protocols: ["http/1.1"], on: loop)
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

  @Test(arguments: ["dns.alidns.com", "dns.google", "cloudflare-dns.com", "doh.pub", "119.29.29.99"])
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

  @Test func `faults on a connection are a status, a delay, a reset and silence`() throws {
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

  @Test func `the zone can be replaced and restored`() throws {
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

  @Test func `settings can be changed and restored, including the clock`() throws {
    let fixture = try Fixture()
    let client = try fixture.connect()
    #expect(
      client.exchange("POST", "/_simulator/settings?clock-offset=-86400", body: #"{"table-enable":false}"#)?.status
        == 204)
    #expect(client.exchange("GET", "/_simulator/settings")?.text.hasPrefix(#"{"clock-offset":"-86400","#) == true)
    #expect(client.exchange("GET", "/table")?.text == #"{"service":"ISP-A","enable":0,"domainlist":[]}"#)
    let refused = client.exchange("POST", "/_simulator/settings?emas-age=x")
    #expect(refused?.status == 400)
    #expect(refused?.text == "\"x\" is no value for emas-age: 0 to 2147483647\n")
    #expect(client.exchange("PUT", "/_simulator/settings")?.status == 405)
    #expect(client.exchange("DELETE", "/_simulator/settings")?.status == 204)
    #expect(client.exchange("GET", "/table")?.text.contains("192.0.2.1") == true)
  }

  @Test func `the clock that signatures are checked by is the one of the Date field`() throws {
    let fixture = try Fixture(clockOffset: -3_600)
    let client = try fixture.connect()
    let now = Int64(Date().timeIntervalSince1970)
    func status(expiry: Int64) -> Int? {
      let signature = EMASAccount().version1Signature(
        host: Array("www.example.com".utf8), expiry: Array("\(expiry)".utf8))
      return client.exchange("GET", "/100000/sign_d?host=www.example.com&t=\(expiry)&s=\(signature)")?.status
    }
    #expect(status(expiry: now - 3_000) == 200)
    #expect(status(expiry: now - 4_000) == 403)
    #expect(client.exchange("POST", "/_simulator/settings?clock-offset=0")?.status == 204)
    #expect(status(expiry: now - 3_000) == 403)
  }

  @Test func `the scheduling call names the simulator's own addresses, and the record has every question`() throws {
    let fixture = try Fixture()
    let client = try fixture.connect()
    let plain = "{\"service_ip\":[\"127.0.0.1\"],\"service_ip_port\":[\(fixture.address.port)],\"service_ipv6\":[]}"
    #expect(client.exchange("GET", "/100000/ss")?.text == plain)
    let secure = try curl(
      "--cacert", fixture.caPath, "--connect-to", "resolvers.httpdns.aliyuncs.com:443:\(fixture.tlsAddress)",
      "https://resolvers.httpdns.aliyuncs.com/100000/ss",
      "https://resolvers.httpdns.aliyuncs.com/100000/resolve?host=www.example.com,v4only.example.com&query=4,6")
    #expect(secure.output.contains("\"service_ip_port\":[\(fixture.tlsAddress.port)]"))
    let requests = try #require(client.exchange("GET", "/_simulator/requests")?.text)
    #expect(requests.contains(#""host":"resolvers.httpdns.aliyuncs.com","dialect":"emas","name":"www.example.com.""#))
    #expect(
      requests.contains(
        #""questions":["www.example.com. A","www.example.com. AAAA","v4only.example.com. A","v4only.example.com. AAAA"]"#
      ))
    #expect(client.exchange("GET", "/_simulator/count")?.text.contains(#""units":{"emas":15}"#) == true)
  }

  @Test func `an unchanged table is 304 without a body, and faults hit it`() throws {
    let fixture = try Fixture()
    let client = try fixture.connect()
    let tag = try #require(client.exchange("GET", "/table")?.field("ETag"))
    let again = client.exchange("GET", "/table", header: "If-None-Match: \(tag)\r\n")
    #expect(again?.status == 304)
    #expect(again?.body.isEmpty == true)
    try fixture.addFault("kind=error&error=InternalError&dialect=table&count=1")
    #expect(client.exchange("GET", "/table")?.status == 500)
    #expect(client.exchange("GET", "/table")?.status == 200)
  }

  @Test func `unknown control paths and methods are distinguished`() throws {
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
