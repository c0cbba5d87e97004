// RouteTests.swift -- where a connection really goes, and that nothing is ever looked up on the way.

import CCurl
import EventLoop
import Glibc
import HTTPMessage
import Synchronization
import TestSupport
import Testing

@testable import HTTPClient

@Suite struct `A connection` {
  @Test func `a connection to address literals looks no name up`() throws {
    let server = TestServer { .send(response($0.head.contains("Host: dns.test:") ? "dns.test" : $0.head)) }
    defer { server.stop() }
    let texts = try withOrigin(server) { origin in
      let first = await origin.get().response?.text
      origin.renewConnections()
      return [first, await origin.get().response?.text]
    }
    #expect(texts == ["dns.test", "dns.test"])
  }

  @Test func `no connection is made to a host that needs a look-up`() throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let address = try #require(HTTPServerAddress(scheme: .http, name: "dns.test", addresses: ["127.0.0.1"]))
    let settings = try OriginSettings(address, HTTPClientOptions())
    let order = ConnectionOrder(address, settings.addresses, hasProxy: false)
    let carrier = try CurlCarrier(settings, order, on: try EventLoop())
    defer { carrier.close() }
    let easy = try #require(curl_easy_init())
    defer { curl_easy_cleanup(easy) }
    configure(easy, settings, order, carrier: Unmanaged.passUnretained(carrier).toOpaque())
    // libcurl asks before it connects to an address, also to a literal: so the refusal differs from a name
    // that does not exist.
    easy.set(CURLOPT_CURLU, nil as UnsafeRawPointer?)
    easy.set(CURLOPT_URL, "http://127.0.0.1:\(server.port)/")
    #expect(curl_easy_perform(easy) == CURLE_COULDNT_RESOLVE_HOST)
    #expect(server.accepted == 0)
  }

  @Test(arguments: [["127.0.0.1"], ["::1", "127.0.0.1"], ["127.0.0.1", "::1"]])
  func `a connection uses the address that answers, of either family`(addresses: [String]) throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let result = try withOrigin(server, addresses: addresses) { await $0.get() }
    #expect(result.response?.remoteAddress == "127.0.0.1")
  }

  @Test func `the other family joins after 250 ms when one hangs`() throws {
    let requests = Atomic(0)
    let server = TestServer { _ in
      requests.add(1, ordering: .relaxed)
      return .send(response("x"))
    }
    defer { server.stop() }
    let full = try #require(FullListener(port: server.port), "no IPv6 loopback")
    let result = try withOrigin(server, addresses: ["::1", "127.0.0.1"]) { origin in
      let began = BootInstant.now
      let result = await origin.get(timeout: longestStep)
      return (result.response?.remoteAddress, BootInstant.now - began)
    }
    #expect(result.0 == "127.0.0.1")
    #expect(result.1 >= .milliseconds(250))
    #expect(requests.load(ordering: .relaxed) == 1)
    withExtendedLifetime(full) {}
  }

  @Test func `a connection at its maximum age takes no more transfers`() throws {
    let server = TestServer { .send(response("\($0.connection)")) }
    defer { server.stop() }
    let texts = try withOrigin(server) {
      $0.maxAge = .seconds(1)
    } body: { origin in
      // libcurl counts whole seconds of the machine's clock: the connection that comes then is waited for.
      var texts: [String?] = []
      _ = await origin.loop.until(every: .milliseconds(50)) {
        texts.append(await origin.get().response?.text)
        return texts.last != "0"
      }
      return texts
    }
    #expect(texts.first == "0" && texts.last == "1" && texts.count > 2)
    #expect(texts.dropLast().allSatisfy { $0 == "0" })
  }

  @Test func `a connection goes to the given addresses, also if its name is an IPv6 literal`() throws {
    let server = TestServer { .send(response(String($0.head.split(separator: "\r\n")[1]))) }
    defer { server.stop() }
    for (name, host) in [("2001:db8::1", "[2001:db8::1]"), ("192.0.2.1", "192.0.2.1"), ("a.test", "a.test")] {
      let result = try withOrigin(server, name: name) { await $0.get() }
      #expect(result.response?.text == "Host: \(host):\(server.port)")
    }
  }

  @Test func `a proxy gets the server's address and not its name`() throws {
    let seen = Mutex<[String]>([])
    let proxy = TestServer { request in
      seen.withLock { $0.append(String(request.head.split(separator: "\r\n")[0])) }
      return .send(
        request.head.hasPrefix("CONNECT") ? "HTTP/1.1 200 Connected\r\n\r\n" : response("through the tunnel"))
    }
    defer { proxy.stop() }
    let result = try withOrigin(port: 8053, name: "dns.test", addresses: ["192.0.2.7"]) { options in
      options.proxy = "http://127.0.0.1:\(proxy.port)"
    } body: {
      await $0.get("/x")
    }
    #expect(result.response?.text == "through the tunnel")
    #expect(seen.withLock { $0 } == ["CONNECT 192.0.2.7:8053 HTTP/1.1", "GET /x HTTP/1.1"])
  }

  @Test(arguments: [103, 403, 407, 502])
  func `a proxy that makes no tunnel is named with its status`(status: Int) throws {
    let proxy = TestServer { _ in .send("HTTP/1.1 \(status) No\r\nContent-Length: 4\r\n\r\nsad\n") }
    defer { proxy.stop() }
    let result = try withOrigin(port: 8053, name: "dns.test", addresses: ["192.0.2.7"]) { options in
      options.proxy = "http://127.0.0.1:\(proxy.port)"
    } body: {
      await $0.get("/x")
    }
    #expect(result.failure?.kind == .proxy && result.failure?.reason.contains(" \(status)") == true, "\(result)")
  }

  @Test func `a host name is resolved by the proxy, and fails without one`() throws {
    let seen = Mutex<[String]>([])
    let proxy = TestServer { request in
      seen.withLock { $0.append(String(request.head.split(separator: "\r\n")[0])) }
      return .send(request.head.hasPrefix("CONNECT") ? "HTTP/1.1 200 Connected\r\n\r\n" : response("x"))
    }
    defer { proxy.stop() }
    let place = try #require(
      HTTPServerAddress(scheme: .http, name: "dns.test", proxiedHost: "host.test.", port: 8053))
    #expect(HTTPServerAddress(scheme: .http, proxiedHost: "192.0.2.1") == nil)
    #expect(HTTPServerAddress(scheme: .http, proxiedHost: "a b") == nil)
    let loop = try EventLoop()
    var options = HTTPClientOptions()
    let without = try HTTPOrigin(place, options: options, on: loop)
    options.proxy = "http://127.0.0.1:\(proxy.port)"
    let with = try HTTPOrigin(place, options: options, on: loop)
    var results: [HTTPResult] = []
    loop.startTask {
      for origin in [without, with] {
        results.append(await origin.get("/x"))
        origin.close()
      }
      loop.stop()
    }
    loop.schedule(after: .seconds(30)) { loop.stop() }
    loop.run()
    #expect(results.map { $0.failure?.kind } == [.unreachable, nil])
    #expect(seen.withLock { $0 } == ["CONNECT host.test:8053 HTTP/1.1", "GET /x HTTP/1.1"])
  }

  @Test func `a proxy of the environment is not used`() throws {
    let server = TestServer { _ in .send(response("direct")) }
    defer { server.stop() }
    setenv("http_proxy", "http://127.0.0.1:1", 1)
    defer { unsetenv("http_proxy") }
    let result = try withOrigin(server) { await $0.get() }
    #expect(result.response?.text == "direct")
  }
}

/// Listens on a port of [::1] whose queue is full: connections to it neither succeed nor fail.
final class FullListener {
  private var descriptors: [Int32] = []

  /// Nil where the port cannot be had.
  init?(port: UInt16) {
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    address.sin6_addr = in6addr_loopback
    let length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    func make(_ use: (Int32, UnsafePointer<sockaddr>) -> Bool) -> Bool {
      let descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
      guard descriptor >= 0 else { return false }
      descriptors.append(descriptor)
      return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { use(descriptor, $0) }
      }
    }
    let isListening = make { bind($0, .init(__sockaddr__: $1), length) == 0 && listen($0, 0) == 0 }
    guard isListening else { return nil }
    for _ in 0..<4 { _ = make { connect($0, .init(__sockaddr__: $1), length) == 0 } }
  }

  deinit { for descriptor in descriptors { close(descriptor) } }
}
