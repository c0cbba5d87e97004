// LoopHoldTests.swift -- how long one input of a hostile server holds the loop, and what its records do to the connection.

import CTLS
import EventLoop
import Synchronization
import TLSTestSupport
import TestSupport
import Testing

@testable import HTTPClient

@Suite(.serialized) struct `One input of a server` {
  /// Debug code is slow, and OpenSSL's is not.
  private static let most = Duration.milliseconds(10)

  @Test(.onBothStacks) func `any number of new keys holds the loop for no time, and ends the connection`() throws {
    let watch = TurnWatch()
    let ((first, second), connections) = try withHTTP2 { request in
      switch (request.connection, request.stream) {
      case (0, 1): .send("x")
      case (0, _): .acts([.updateKeys(4_000)])
      default: .send("y")
      }
    } body: { origin in
      let first = await origin.get()
      watch.watch(origin.loop)
      return (first, await origin.get(timeout: .seconds(5)))
    }
    #expect(first.response?.text == "x")
    #expect(watch.longest < Self.most)
    guard Stack.current == .streams else { return #expect(second.failure?.kind == .reset) }
    // The request is sent once more.
    #expect(second.response?.text == "y" && connections == 2)
  }

  @Test(arguments: [(0x0303, 4_000), (0x0304, 30), (0x0304, 4_000)])
  func `messages without content over HTTP/1.1 hold the loop for no time, and many end the connection`(
    version: Int, count: Int
  ) throws {
    let connection = Mutex<Int?>(nil)
    let server = TestServer(tls: true, highestTLS: version) { request in
      let first = connection.withLock { first in
        first = first ?? request.connection
        return first
      }
      return request.connection == first ? .sendAfterEmptyRecords(count, response("x")) : .send(response("y"))
    }
    defer { server.stop() }
    let file = TemporaryFile(Certificates.authority)
    let watch = TurnWatch()
    let results = try withOrigin(server, scheme: .https) {
      $0.caFile = file.path
    } body: { origin in
      watch.watch(origin.loop)
      return [await origin.get(timeout: .seconds(5)), await origin.get(timeout: .seconds(5))]
    }
    #expect(watch.longest < Self.most)
    if count == 30 {
      #expect(results.map { $0.response?.text } == ["x", "x"])
    } else {
      #expect(results[0].failure?.kind == .reset && results[1].response?.text == "y", "\(results)")
    }
  }

  @Test(.onBothStacks) func `a server that asks for keys and reads nothing keeps the loop at rest`() throws {
    let isReading = Gate()
    let turns = Mutex(0)
    let ((first, second, during), connections) = try withHTTP2(peer: HTTP2Peer(room: 2048)) { request in
      switch request.stream {
      case 1: .send("x")
      case 3: .acts([.askForKeys(6000), .run { isReading.wait() }, .respond("y")])
      default: .send("z")
      }
    } body: { origin in
      _ = await origin.get()
      origin.loop.everyTurn { turns.withLock { $0 += 1 } }
      let first = await origin.get(timeout: .seconds(1))
      let during = turns.withLock { $0 }
      isReading.open()
      return (first, await origin.get(timeout: .seconds(20)), during)
    }
    #expect(first.failure?.kind == .timeout)
    #expect(during < 2000, "\(Stack.current)")
    // On a machine that is busy, what was given up takes the connection with it.
    #expect(second.response?.text == (connections == 1 ? "z" : "x"))
  }

  @Test func `a few new keys are nothing special`() throws {
    let (texts, connections) = try withHTTP2 { request in
      .acts([.updateKeys(30), .respond("\(request.stream)")])
    } body: { origin in
      var texts: [String?] = []
      for _ in 0..<20 { texts.append(await origin.get().response?.text) }
      return texts
    }
    #expect(texts == (0..<20).map { "\(2 * $0 + 1)" })
    #expect(connections == 1)
  }

  @Test(.onBothStacks, arguments: [("ffdhe8192", 0), (nil, 200)] as [(String?, Int)])
  func `no handshake holds the loop`(groups: String?, copies: Int) throws {
    let server = TestServer(tls: true, http2: true, groups: groups, copies: copies) { _ in .send("x") }
    defer { server.stop() }
    let watch = TurnWatch()
    // The server's certificate is not signed by a known authority.
    let result = try withOrigin(server, scheme: .https) { origin in
      watch.watch(origin.loop)
      return await origin.get()
    }
    #expect(result.failure?.kind == .tls)
    #expect(watch.longest < Self.most)
  }

  @Test func `no suite is offered whose key exchange a server can make long`() throws {
    let context = try #require(SSL_CTX_new(TLS_client_method()))
    defer { SSL_CTX_free(context) }
    ctls_bound_work(UnsafeMutableRawPointer(context))
    let suites = SSL_CTX_get_ciphers(context)
    let exchanges = (0..<OPENSSL_sk_num(suites)).map {
      SSL_CIPHER_get_kx_nid(OpaquePointer(OPENSSL_sk_value(suites, $0)))
    }
    #expect(exchanges.contains(NID_kx_ecdhe))
    #expect(!exchanges.contains(NID_kx_dhe) && !exchanges.contains(NID_kx_dhe_psk))
  }

  /// What comes after a proxy's status line.
  private static let endless = [
    "Content-Length: 9999999\r\n\r\n" + String(repeating: "x", count: 4_000_000),
    "Transfer-Encoding: chunked\r\n\r\n" + String(repeating: "1\r\nx\r\n", count: 600_000),
    String(repeating: "x: y\r\n", count: 600_000),
  ]

  @Test(arguments: [(407, 0), (407, 1), (407, 2), (200, 2)])
  func `no response of a proxy holds the loop`(status: Int, rest: Int) throws {
    let proxy = TestServer { _ in .sendAndClose("HTTP/1.1 \(status) x\r\n" + Self.endless[rest]) }
    defer { proxy.stop() }
    let watch = TurnWatch()
    let results = try withOrigin(port: 8053, name: "dns.test", addresses: ["192.0.2.7"]) {
      $0.proxy = "http://127.0.0.1:\(proxy.port)"
    } body: { origin in
      watch.watch(origin.loop)
      // A turn is measured when the next one begins.
      return [await origin.get(timeout: .seconds(5)), await origin.get(timeout: .seconds(5))]
    }
    #expect(results.allSatisfy { $0.failure?.kind == .proxy && $0.failure?.wasSent == false }, "\(results)")
    #expect(watch.longest < Self.most)
  }

  @Test func `a proxy's response holds the loop as little when a request is sent once more`() throws {
    let proxy = TestServer { request in
      switch (request.connection, request.head.hasPrefix("CONNECT"), request.head.contains("/first")) {
      case (0, true, _): .send("HTTP/1.1 200 Connected\r\n\r\n")
      case (0, _, true): .send(response("x"))
      case (0, _, _): .sendAndClose("")
      default: .sendAndClose("HTTP/1.1 407 x\r\n" + Self.endless[0])
      }
    }
    defer { proxy.stop() }
    let watch = TurnWatch()
    let results = try withOrigin(port: 8053, name: "dns.test", addresses: ["192.0.2.7"]) {
      $0.proxy = "http://127.0.0.1:\(proxy.port)"
    } body: { origin in
      let first = await origin.get("/first")
      watch.watch(origin.loop)
      return [first, await origin.get(timeout: .seconds(5)), await origin.get(timeout: .seconds(5))]
    }
    #expect(results[0].response?.text == "x" && results[1].failure?.kind == .proxy, "\(results)")
    #expect(watch.longest < Self.most)
  }

  @Test(arguments: [4_000, 80_000])
  func `chunks of an octet hold the loop for no time, and a few thousand are read`(count: Int) throws {
    let chunks = String(repeating: "1\r\nx\r\n", count: count)
    let server = TestServer { _ in .send("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)0\r\n\r\n") }
    defer { server.stop() }
    let watch = TurnWatch()
    let results = try withOrigin(server) {
      $0.maxBody = 1 << 20
    } body: { origin in
      watch.watch(origin.loop)
      return [await origin.get(timeout: .seconds(5)), await origin.get(timeout: .seconds(5))]
    }
    for result in results where result.failure?.kind != .badHTTP || count == 4_000 {
      #expect(result.response?.body.count == count, "\(result)")
    }
    // A few thousand calls of debug code take more than in a release, and a second without a bound.
    #expect(watch.longest < Self.most * 10)
  }

  @Test func `the size of the header list that is read is announced`() throws {
    let peer = HTTP2Peer()
    let (result, _) = try withHTTP2(peer: peer) { _ in
      .send("x")
    } body: {
      await $0.get()
    }
    // SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113 section 6.5.2).
    #expect(result.response?.text == "x" && peer.settings[6] == UInt32(ResponseHeaders.limit))
  }

  /// One field of 4,000 octets that HPACK keeps, and then 16,000 references to it, an octet each, in every frame.
  private static func bomb(_ stream: UInt32, frames: Int) -> [HTTP2Act] {
    var value: [UInt8] = [0x40, 1, UInt8(ascii: "x"), 127, 0xA1, 0x1E]
    value += [UInt8](repeating: UInt8(ascii: "x"), count: 127 + 0x21 + 0x1E << 7)
    let references = [UInt8](repeating: 0xBE, count: 16_000)
    return [.frame(type: 1, flags: 0, stream: stream, [0x88] + value)]
      + (1...frames).map { .frame(type: 9, flags: $0 == frames ? 4 : 0, stream: stream, references) }
  }

  @Test func `a header section of any number of fields holds the loop for no time`() throws {
    let watch = TurnWatch()
    let (results, _) = try withHTTP2 { request in
      request.connection == 0 && request.stream == 3 ? .acts(Self.bomb(3, frames: 7)) : .send("x")
    } body: { origin in
      _ = await origin.get()
      watch.watch(origin.loop)
      return [await origin.get(), await origin.get()]
    }
    #expect(results[0].failure?.kind == .badHTTP && results[1].response?.text == "x")

    #expect(watch.longest < Self.most)
  }

  @Test(.onBothStacks) func `header sections of streams that have ended hold the loop for no time`() throws {
    let watch = TurnWatch()
    let (results, _) = try withHTTP2 { request in
      guard request.connection == 0, request.stream == 3 else { return .send("x") }
      return .acts([.respond("x")] + (0..<8).flatMap { _ in Self.bomb(3, frames: 7) })
    } body: { origin in
      _ = await origin.get()
      watch.watch(origin.loop)
      return [await origin.get(), await origin.get()]
    }
    #expect(results.map { $0.response?.text } == ["x", "x"])
    #expect(watch.longest < Self.most)
  }

  @Test func `fields after the content are no more`() throws {
    let watch = TurnWatch()
    let (result, _) = try withHTTP2 { request in
      guard request.connection == 0, request.stream == 3 else { return .send("x") }
      return .acts(
        [.begin("x")]
          + Self.bomb(3, frames: 7).map { act in
            guard case .frame(1, let flags, let stream, let octets) = act else { return act }
            return .frame(type: 1, flags: flags | 1, stream: stream, Array(octets.dropFirst()))
          })
    } body: { origin in
      _ = await origin.get()
      watch.watch(origin.loop)
      return await origin.get()
    }
    #expect(result.failure?.kind == .badHTTP)

    #expect(watch.longest < Self.most)
  }

  @Test func `many records and a reset at once end nothing but the connection`() throws {
    let ping = HTTP2Act.frame(type: 6, flags: 0, stream: 0, [UInt8](repeating: 1, count: 8))
    let (texts, connections) = try withHTTP2 { request in
      let isLast = request.stream == 3 && request.connection < 20
      return .acts(isLast ? [.resetAtEnd] + Array(repeating: ping, count: 200) + [.close] : [.respond("x")])
    } body: { origin in
      var texts: [String?] = []
      for _ in 0..<20 {
        texts.append(await origin.get().response?.text)
        _ = await origin.burst(3)
      }
      return texts
    }
    #expect(texts.count { $0 == "x" } >= 10 && connections >= 10)
  }
}
