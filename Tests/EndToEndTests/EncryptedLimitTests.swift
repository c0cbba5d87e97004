// EncryptedLimitTests.swift -- what strangers and busy clients of the encrypted listeners may cost others.

import DNSWire
import Foundation
import TLSTestSupport
import Testing

@Suite(.blocking) struct EncryptedLimitTests {
  @Test func `a client that is not allowed is closed before any octet, and the log has one line`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "allow = [\"127.0.0.1/32\"]")
      for address in [scene.dot, scene.doh, scene.plain, scene.dot] {
        let connection = try ClientConnection(to: address, from: "127.0.0.2", nil)
        #expect(connection.waitForEnd() == .closed && connection.received.isEmpty)
      }
      #expect(throws: HandshakeFailure.closed) { try scene.overTLS(from: "127.0.0.3") }
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
      // Port 53 has a list of its own.
      #expect(
        try ask(scene.daemon.address, TestQuery("n1.bench.example"), over: .tcp, from: "127.0.0.2").code == .noError)
      try scene.daemon.waitForLog(": not in encrypted.allow\n")
      #expect(
        scene.daemon.log.contains(/INFO refused \d connections? from 127\.0\.0\.0\/24: not in encrypted\.allow\n/))
      #expect(scene.daemon.log.components(separatedBy: "not in encrypted.allow").count == 2)
    }
  }

  @Test func `a client that opens many connections is closed beyond the limit, and others are served`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "new_per_second = 1\nper_client = 100")
      var served = 0
      let (_, time) = timed {
        for _ in 0..<30 { if (try? scene.overTLS(from: "127.0.0.5")) != nil { served += 1 } }
      }
      // Ten at once, and one more each second.
      #expect((10...(11 + Int(time.components.seconds))).contains(served))
      #expect(try scene.overTLS(from: "127.0.0.6").ask("n1.bench.example").data == ["198.18.0.1"])
      let line = "a client in 127.0.0.0/24 opens more connections than encrypted.new_per_second allows"
      try scene.daemon.waitForLog(line)
      #expect(scene.daemon.log.components(separatedBy: line).count == 2)
    }
  }

  @Test func `a client's connections beyond its limit take the place of its own idle ones`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "per_client = 3")
      let other = try scene.overTLS(from: "127.0.0.2")
      // Over both protocols together.
      let first = try scene.overTLS()
      let (second, third) = (HTTP2Client(try scene.overHTTPS(.http2)), try scene.overHTTPS(.http1))
      let fourth = try scene.overTLS()
      #expect(first.waitForEnd() == .notified)
      let fifth = try scene.overTLS()
      #expect(second.waitForEnd() == .notified)
      try scene.daemon.waitForLog(
        "takes the place of an idle one of its client, which has 3; encrypted.per_client allows")
      let query = TestQuery("n1.bench.example")
      for connection in [other, fourth, fifth] { #expect(try connection.ask(query).data == ["198.18.0.1"]) }
      #expect(try third.fetch(.get(query)).status == 200)
    }
  }

  @Test func `a client whose connections all wait for answers gets no further one`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "per_client = 2")
      try scene.simulator.fault("kind=delay&ms=500")
      let queries = [TestQuery("n1.bench.example"), TestQuery("n2.bench.example")]
      let (first, second) = (try scene.overTLS(), HTTP2Client(try scene.overHTTPS(.http2)))
      first.send(queries[0])
      let stream = second.send(.get(queries[1]))
      try scene.simulator.waitForTransfers(2)
      #expect(throws: HandshakeFailure.closed) { try scene.overTLS() }
      #expect(try scene.overTLS(from: "127.0.0.2").ask("localhost").code == .noError)
      #expect(try first.replies(to: [queries[0]])[0].data == ["198.18.0.1"])
      #expect(try second.response(stream).message(to: queries[1]).data == ["198.18.0.2"])
      try scene.daemon.waitForLog(
        "is closed: its client has 2 with queries in flight; encrypted.per_client allows more")
      #expect(try scene.overTLS().ask(queries[0]).data == ["198.18.0.1"])
    }
  }

  @Test func `when all places are taken a newcomer takes that of an idle connection`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "connections = 3")
      let silent = try (0..<3).map { _ in try ClientConnection(to: scene.dot, nil) }
      // Places are taken in the order of connections.
      #expect(try scene.overTLS(from: "127.0.0.2").ask("n1.bench.example").data == ["198.18.0.1"])
      #expect(silent[0].waitForEnd() == .closed)
      try scene.daemon.waitForLog(
        "takes the place of another one: all 3 are taken, 3 of them by the client of 127.0.0.0/24")
    }
  }

  @Test func `a request that never becomes whole keeps no place from others`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "connections = 2")
      let query = TestQuery("n1.bench.example")
      // A body that does not come, a head that does not end, over both versions.
      let first = HTTP2Client(try scene.overHTTPS(.http2))
      first.send(HTTPAsk.post(query).with(\.body, nil), isWhole: false)
      #expect(try first.fetch(.get(query)).status == 200)
      let second = try scene.overHTTPS(.http1)
      second.send("POST /dns-query HTTP/1.1\r\nHost: dns.test\r\nContent-Type: application/dns-message\r\n")
      second.send("Content-Length: 100\r\n\r\n")
      let newcomers = try ["127.0.0.2", "127.0.0.3"].map { try scene.overTLS(from: $0) }
      for connection in newcomers { #expect(try connection.ask(query).data == ["198.18.0.1"]) }
      #expect(first.waitForEnd() == .notified)
      #expect(second.waitForEnd() == .notified)
    }
  }

  @Test func `a connection without activity ends, also one with a request that never becomes whole`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "idle = \"1s\"")
      let query = TestQuery("n1.bench.example")
      let (idle, idleHTTP) = (try scene.overTLS(), try scene.overHTTPS(.http1))
      idle.send([0])
      let first = HTTP2Client(try scene.overHTTPS(.http2))
      let second = HTTP2Client(try scene.overHTTPS(.http2))
      first.send(HTTPAsk.post(query).with(\.body, nil), isWhole: false)
      second.connection.send(second.frame(.headers, 0, 1, [0x82]))
      let third = try scene.overHTTP()
      third.send("GET / HTTP/1.1\r\n")
      #expect(idle.waitForEnd() == .notified)
      #expect(idleHTTP.waitForEnd() == .notified)
      #expect(first.waitForEnd() == .notified)
      #expect(second.waitForEnd() == .notified)
      #expect(third.waitForEnd() == .closed)
    }
  }

  @Test func `at 64 unanswered queries of a connection its further ones wait`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      try ask(scene.daemon.address, "n1.bench.example")
      try scene.simulator.fault("kind=delay&ms=700&name=n2.bench.example")
      let (slow, hit) = (TestQuery("n2.bench.example"), TestQuery("n1.bench.example"))
      func copies(_ count: Int) -> [TestQuery] { (0..<count).map { index in slow.with(\.id, UInt16(index)) } }
      let (full, roomy) = (try scene.overTLS(), try scene.overTLS())
      let last = hit.with(\.id, 1_000)
      full.send((copies(64) + [last]).flatMap { framed($0.octets) })
      roomy.send((copies(63) + [last]).flatMap { framed($0.octets) })
      // The hit overtakes 63 queries, and waits behind 64.
      #expect(try Reply(roomy.nextMessage(), to: last).data == ["198.18.0.1"])
      #expect(try scene.overTLS().ask(hit).data == ["198.18.0.1"])
      #expect(!full.receiveMore(within: .zero) && full.received.isEmpty)
      #expect(try full.replies(to: copies(64) + [last]).allSatisfy { $0.code == .noError })
      #expect(try roomy.replies(to: copies(63)).allSatisfy { $0.data == ["198.18.0.2"] })
    }
  }

  @Test func `answers for which a client of HTTP 2 opens no window end its connection when they are too many`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let client = HTTP2Client(try scene.overHTTPS(.http2))
      client.connection.send(client.frame(.settings, 0, 0, [0, 4, 0, 0, 0, 0]))
      let query = TestQuery("txt-60000.example", "TXT")
      try ask(scene.daemon.address, query, over: .tcp)
      // None is in the cache: they are in flight before the first answer, and then 2 MB.
      try scene.simulator.fault("kind=delay&ms=100")
      for length in 30_000..<30_064 { client.send(.get(TestQuery("txt-\(length).example", "TXT"))) }
      #expect(client.waitForEnd() != nil)
      // One that opens its window by and by gets all of them.
      let honest = HTTP2Client(try scene.overHTTPS(.http2))
      for _ in 0..<5 { #expect(try honest.fetch(.get(query)).message(to: query).octets.count > 60_000) }
    }
  }

  // MARK: - Floods

  /// A flood of frames, and what they are.
  struct Flood: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let octets: @Sendable (HTTP2Client) -> [UInt8]
  }

  private static let floods = [
    Flood(testDescription: "resets of streams") { client in
      (0..<4_000).flatMap { _ in
        let stream = client.nextStream()
        return client.frames(.get(TestQuery("n1.bench.example")), on: stream)
          + client.frame(.reset, 0, stream, HTTP2Client.octets(8))
      }
    },
    Flood(testDescription: "CONTINUATION") { client in
      client.frame(.headers, 1, client.nextStream(), HTTP2Client.block([(":method", "GET")]))
        + (0..<4_000).flatMap { _ in client.frame(.continuation, 0, 1, HTTP2Client.block([("x", "y")])) }
    },
    Flood(testDescription: "empty CONTINUATION") { client in
      client.frame(.headers, 1, client.nextStream(), HTTP2Client.block([(":method", "GET")]))
        + (0..<4_000).flatMap { _ in client.frame(.continuation, 0, 1) }
    },
    Flood(testDescription: "SETTINGS") { client in (0..<20_000).flatMap { _ in client.frame(.settings, 0, 0) } },
    Flood(testDescription: "many settings in a frame") { client in
      client.frame(.settings, 0, 0, (0..<1_000).flatMap { _ in [0, 4, 0, 0, 0xFF, 0xFF] })
    },
    Flood(testDescription: "PING") { client in
      (0..<20_000).flatMap { _ in client.frame(.ping, 0, 0, [UInt8](repeating: 7, count: 8)) }
    },
  ]

  @Test(arguments: floods)
  func `a flood over HTTP 2 ends its connection, and port 53 answers`(flood: Flood) throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let other = HTTP2Client(try scene.overHTTPS(.http2))
      let query = TestQuery("n1.bench.example")
      #expect(try other.fetch(.get(query)).status == 200)
      let client = HTTP2Client(try scene.overHTTPS(.http2))
      let octets = flood.octets(client)
      // As large as a record may be; the daemon may close the connection before the last one.
      for begin in stride(from: 0, to: octets.count, by: 16_384) {
        guard client.connection.send(Array(octets[begin..<min(octets.count, begin + 16_384)])) else { break }
      }
      for transport in Transport.allCases {
        #expect(try ask(scene.daemon.address, "n1.bench.example", over: transport).data == ["198.18.0.1"])
      }
      #expect(client.waitForEnd() != nil)
      #expect(try other.fetch(.get(query)).status == 200)
      #expect(try scene.overTLS().ask("n2.bench.example").data == ["198.18.0.2"])
    }
  }

  @Test func `2,000 connections that say nothing change nothing for port 53, and newcomers are served`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab, "name = \"dns.test\"\nnew_per_second = 10")
      try ask(scene.daemon.address, "n1.bench.example")
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      limit.rlim_cur = min(limit.rlim_max, max(limit.rlim_cur, 8_192))
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      var silent: [Socket] = []
      for index in 0..<2_000 {
        let address = [scene.dot, scene.doh, scene.plain][index % 3]
        silent.append(try Socket.stream(to: address, from: "127.1.\(index / 250).\(index % 250 + 1)"))
        guard index % 100 == 99 else { continue }
        for transport in Transport.allCases {
          #expect(try ask(scene.daemon.address, "n1.bench.example", over: transport).data == ["198.18.0.1"])
        }
        #expect(try ask(scene.daemon.address, "n\(index).bench.example").code == .noError)
      }
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
      #expect(try scene.fetch(.get(TestQuery("n1.bench.example")), over: .http2).status == 200)
      withExtendedLifetime(silent) {}
    }
  }

  @Test func `what is no TLS, and clients that reset at any moment, leave nothing behind`() throws {
    try withLab { lab in
      // Fewer than are opened, and more than can be in flight before their resets are read.
      let scene = try EncryptedScene(in: lab, "connections = 20")
      for octets in [[], [0x16], [0x16, 3, 1, 0xFF, 0xFF], Array("GET / HTTP/1.0\r\n\r\n".utf8)] as [[UInt8]] {
        for address in [scene.dot, scene.doh, scene.plain] {
          let socket = try Socket.stream(to: address)
          if !octets.isEmpty { socket.send(octets) }
          var linger = linger(l_onoff: 1, l_linger: 0)
          setsockopt(socket.descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        }
      }
      try scene.simulator.fault("kind=delay&ms=100")
      for index in 0..<12 {
        // With a query in flight.
        let connection = index % 2 == 0 ? try scene.overTLS() : try scene.overHTTPS(.http1)
        let query = TestQuery("n\(index).bench.example")
        if index % 2 == 0 { connection.send(query) } else { connection.send(HTTPAsk.get(query).octets) }
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
          connection.socket.descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
      }
      try scene.simulator.clearFaults()
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
      #expect(try scene.fetch(.get(TestQuery("n1.bench.example")), over: .http2).status == 200)
    }
  }
}

extension TestQuery {
  /// The same with another part.
  func with<Value>(_ part: WritableKeyPath<TestQuery, Value>, _ value: Value) -> TestQuery {
    var query = self
    query[keyPath: part] = value
    return query
  }
}
