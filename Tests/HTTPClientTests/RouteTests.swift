// RouteTests.swift -- where a connection really goes, and that nothing is ever looked up on the way.

import CCurl
import EventLoop
import Glibc
import Synchronization
import Testing

@testable import HTTPClient

@Suite struct `A connection` {
  @Test func `goes to the literals without a name being looked up`() throws {
    let server = TestServer { .send(response($0.head.contains("Host: dns.test:") ? "dns.test" : $0.head)) }
    defer { server.stop() }
    let texts = try withOrigin(server) { origin in
      let first = await origin.get().response?.text
      origin.renewConnections()
      return [first, await origin.get().response?.text]
    }
    #expect(texts == ["dns.test", "dns.test"])
  }

  @Test func `is not made to a place that would have to be looked up`() throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let address = try #require(HTTPServerAddress(scheme: .http, name: "dns.test", addresses: ["127.0.0.1"]))
    let loop = try EventLoop()
    let origin = try HTTPOrigin(address, on: loop)
    let settings = try OriginSettings(address, HTTPClientOptions())
    let generation = try Generation(settings, on: loop, of: origin)
    defer { generation.close(HTTPFailure(.cancelled, "")) }
    let easy = try #require(curl_easy_init())
    defer { curl_easy_cleanup(easy) }
    configure(easy, settings, generation: Unmanaged.passUnretained(generation).toOpaque())
    // libcurl asks before it takes any way to an address, also that of a literal: so the refusal can be told from a name
    // that does not exist.
    easy.set(CURLOPT_CURLU, nil as UnsafeRawPointer?)
    easy.set(CURLOPT_URL, "http://127.0.0.1:\(server.port)/")
    #expect(curl_easy_perform(easy) == CURLE_COULDNT_RESOLVE_HOST)
    #expect(server.accepted == 0)
  }

  @Test(arguments: [["127.0.0.1"], ["::1", "127.0.0.1"], ["127.0.0.1", "::1"]])
  func `takes the address that answers, of either family`(addresses: [String]) throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let result = try withOrigin(server, addresses: addresses) { await $0.get() }
    #expect(result.response?.remoteAddress == "127.0.0.1")
  }

  @Test func `goes elsewhere than its name, also where that is an IPv6 literal`() throws {
    let server = TestServer { .send(response(String($0.head.split(separator: "\r\n")[1]))) }
    defer { server.stop() }
    for (name, host) in [("2001:db8::1", "[2001:db8::1]"), ("192.0.2.1", "192.0.2.1"), ("a.test", "a.test")] {
      let result = try withOrigin(server, name: name) { await $0.get() }
      #expect(result.response?.text == "Host: \(host):\(server.port)")
    }
  }

  @Test func `goes through a proxy, which is told the address and not the name`() throws {
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

  @Test func `leaves a name to the proxy, and goes nowhere without one`() throws {
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
    let results = Mutex<[HTTPResult]>([])
    Task(executorPreference: loop) {
      for origin in [without, with] {
        let result = await origin.get("/x")
        results.withLock { $0.append(result) }
        origin.close()
      }
      loop.stop()
    }
    loop.schedule(after: .seconds(30)) { loop.stop() }
    loop.run()
    #expect(results.withLock { $0.map { $0.failure?.kind } } == [.unreachable, nil])
    #expect(seen.withLock { $0 } == ["CONNECT host.test:8053 HTTP/1.1", "GET /x HTTP/1.1"])
  }

  @Test func `does not go through a proxy of the environment`() throws {
    let server = TestServer { _ in .send(response("direct")) }
    defer { server.stop() }
    setenv("http_proxy", "http://127.0.0.1:1", 1)
    defer { unsetenv("http_proxy") }
    let result = try withOrigin(server) { await $0.get() }
    #expect(result.response?.text == "direct")
  }
}
