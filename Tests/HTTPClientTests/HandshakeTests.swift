// HandshakeTests.swift -- whether a server is there, without a request: what shows it, what does not, and what follows.

import EventLoop
import Glibc
@testable import HTTPClient
import HTTPMessage
import Synchronization
import TLSTestSupport
import TestSupport
import Testing

/// 127.0.77.2, which has the port of every server at 127.0.0.1 free: no other test uses it, not even for clients.
private let secondHost: UInt32 = 0x7F00_4D02

@Suite(.onBothStacks) struct `A handshake` {
  @Test(arguments: [HTTPServerAddress.Scheme.http, .https])
  func `shows that a server is there, without a request`(_ scheme: HTTPServerAddress.Scheme) throws {
    let requests = Atomic<Int>(0)
    let server = TestServer(tls: scheme == .https, http2: true) { _ in
      requests.wrappingAdd(1, ordering: .relaxed)
      return .send(response("x"))
    }
    defer { server.stop() }
    let file = TemporaryFile(Certificates.authority)
    let (failures, heard) = try withOrigin(server, scheme: scheme) { options in
      options.caFile = file.path
    } body: { origin in
      var failures: [HTTPFailure?] = []
      let before = origin.heardAt
      for _ in 0..<3 { failures.append(await origin.handshake(timeout: longestStep)) }
      return (failures, origin.heardAt > before)
    }
    #expect(failures == [nil, nil, nil])
    #expect(heard)
    let count = requests.load(ordering: .relaxed)
    #expect(count == 0)
    // Without TLS the kernel connects before the server knows. Later on an octet on an older connection is as good.
    if scheme == .https { #expect((1...3).contains(server.accepted)) }
  }

  @Test func `fails if the connection is refused`() throws {
    let (descriptor, port) = listeningSocket(backlog: 1)
    close(descriptor)
    for scheme in [HTTPServerAddress.Scheme.http, .https] {
      let failure = try withOrigin(port: port, scheme: scheme) { await $0.handshake(timeout: longestStep) }
      #expect(failure?.kind == .refused)
    }
  }

  @Test func `fails if the certificate is not accepted`() throws {
    let server = TestServer(tls: true, http2: true) { _ in .stall }
    defer { server.stop() }
    let failure = try withOrigin(server, scheme: .https) { await $0.handshake(timeout: longestStep) }
    #expect(failure?.kind == .certificate)
  }

  @Test func `fails if a server takes the connection and says nothing`() throws {
    let listener = DeafListener()
    let failure = try withOrigin(port: listener.port, scheme: .https) {
      await $0.handshake(timeout: .milliseconds(100))
    }
    #expect(failure?.kind == .timeout && failure?.wasSent == false)
  }

  @Test func `replaces no connection whose request is only slow`() throws {
    guard Stack.current == .streams else { return }
    let isSlow = Atomic<Bool>(true)
    let requests = Atomic<Int>(0)
    // On a busy machine a whole handshake may be faster than the answer to the PING.
    let pingWasAnswered = Gate()
    let peer = HTTP2Peer(pingWasAnswered: pingWasAnswered)
    let ((result, failure), _) = try withHTTP2(peer: peer) { request in
      requests.wrappingAdd(1, ordering: .relaxed)
      if request.stream == 1, isSlow.exchange(false, ordering: .relaxed) { return .acts([.hold]) }
      return .acts([.respondToHeld("slow"), .respond("fast")])
    } body: { origin in
      async let slow = origin.get("/slow")
      _ = await origin.loop.until { requests.load(ordering: .relaxed) > 0 }
      let failure = await origin.handshake(timeout: longestStep)
      // The server's thread ends also where there was no PING.
      pingWasAnswered.open()
      _ = await origin.get()
      return (await slow, failure)
    }
    #expect(failure == nil)
    #expect(result.response?.timesSent == 1)
    let count = requests.load(ordering: .relaxed)
    #expect(count == 2)
  }

  @Test func `sends the requests of a dead connection once more, and counts them twice`() throws {
    guard Stack.current == .streams else { return }
    let peer = HTTP2Peer()
    let requests = Atomic<Int>(0)
    let ((results, failure, heard), connections) = try withHTTP2(peer: peer) { request in
      requests.wrappingAdd(1, ordering: .relaxed)
      if request.stream > 1, request.connection == 0 { peer.mute(0) }
      return .send("\(request.connection)")
    } body: { origin in
      _ = await origin.get()
      peer.mute(0)
      async let burst = origin.burst(5)
      let heard = origin.heardAt
      let failure = await origin.handshake(timeout: longestStep)
      return (await burst, failure, origin.heardAt > heard)
    }
    #expect(failure == nil && heard)
    #expect(results.map { $0.response?.text } == Array(repeating: "1", count: 5))
    #expect(results.map { $0.response?.timesSent } == Array(repeating: 2, count: 5))
    #expect(connections == 2)
  }

  @Test func `that replaces others forgets nothing that has ended on its own connection`() throws {
    guard Stack.current == .streams else { return }
    let peer = HTTP2Peer(maxStreams: 1, lateConnections: [1])
    let ((first, second, took), _) = try withHTTP2(peer: peer) { request in
      switch (request.connection, request.stream) {
      case (0, 1), (2..., _): .send("new")
      case (0, _): .stall
      // Settings, the end of the connection and the response come in one read.
      default: .acts([.cork, .allow(streams: 10), .goAway(last: 1, .none), .respond("late"), .uncork])
      }
    } body: { origin in
      _ = await origin.get()
      peer.mute(0)
      let begin = BootInstant.now
      async let first = origin.get(timeout: .seconds(20))
      await origin.loop.turn()
      async let failure = origin.handshake(timeout: longestStep)
      await origin.loop.turn()
      async let second = origin.get(timeout: .seconds(20))
      _ = await failure
      return (await first, await second, BootInstant.now - begin)
    }
    #expect(first.response?.text == "new" && second.response?.text == "late")
    #expect(took < longestStep)
  }

  @Test func `that gets no response leaves the requests to their time`() throws {
    let ((result, failure), _) = try withHTTP2(peer: HTTP2Peer(silentConnections: 2)) { _ in
      .stall
    } body: { origin in
      async let result = origin.get(timeout: .milliseconds(200))
      let failure = await origin.handshake(timeout: .milliseconds(100))
      return (await result, failure)
    }
    #expect(result.failure?.kind == .timeout)
    // TLS alone shows libcurl that the server is there.
    #expect(failure?.kind == (Stack.current == .streams ? .timeout : nil))
  }

  @Test func `over HTTP 1 leaves a silent connection alone`() throws {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    let (result, failure) = try withOrigin(server) { origin in
      async let result = origin.get(timeout: .milliseconds(300))
      let failure = await origin.handshake(timeout: longestStep)
      return (await result, failure)
    }
    #expect(failure == nil)
    #expect(result.failure?.kind == .timeout && result.failure?.timesSent == 1)
  }

  @Test func `may last as long as the origin, and ends with it`() throws {
    let listener = DeafListener()
    let ended = Atomic<Bool>(false)
    _ = try withOrigin(port: listener.port, scheme: .https) { origin in
      async let failure = origin.handshake(timeout: .seconds(20))
      origin.close()
      ended.store(await failure?.kind == .cancelled, ordering: .relaxed)
    }
    let hasEnded = ended.load(ordering: .relaxed)
    #expect(hasEnded)
  }
}

@Suite(.onBothStacks) struct `A server that cannot be reached` {
  @Test func `is abandoned with all requests, and the next one goes on a new connection`() throws {
    let requests = Atomic<Int>(0)
    let ((results, after), connections) = try withHTTP2 { request in
      requests.wrappingAdd(1, ordering: .relaxed)
      return request.connection == 0 ? .stall : .send("\(request.connection)")
    } body: { origin in
      async let burst = origin.burst(3)
      _ = await origin.loop.until { requests.load(ordering: .relaxed) > 0 }
      origin.abandon(HTTPFailure(.unreachable, "no sign of life"))
      return (await burst, await origin.get())
    }
    #expect(results.map { $0.failure?.kind } == [.unreachable, .unreachable, .unreachable])
    #expect(after.response?.text == "1")
    #expect(connections == 2)
  }

  @Test(arguments: [HTTPServerAddress.Scheme.http, .https])
  func `at one address is asked at the other one after the first failure, also later`(
    _ scheme: HTTPServerAddress.Scheme
  ) throws {
    let server = TestServer(tls: scheme == .https, http2: scheme == .https) { _ in
      .send(scheme == .https ? "x" : response("x"))
    }
    defer { server.stop() }
    let deaf = DeafListener(address: secondHost, port: server.port)
    let file = TemporaryFile(Certificates.authority)
    let results = try withOrigin(server, scheme: scheme, addresses: ["127.0.77.2", "127.0.0.1"]) { options in
      options.caFile = file.path
    } body: { origin in
      // On a busy machine a request may end before its connection begins, which says nothing about the address.
      var first: HTTPResult
      repeat { first = await origin.get(timeout: .milliseconds(200)) } while !deaf.wasAsked
      var results = [first]
      // Before the connection to that address is given up, which takes ten seconds.
      for _ in 0..<3 { results.append(await origin.get(timeout: .seconds(8))) }
      origin.renewConnections()
      results.append(await origin.get(timeout: longestStep))
      return results
    }
    #expect(results.map(\.said) == ["timeout: no response in time", "x", "x", "x", "x"])
    #expect(deaf.port == server.port)
  }

  @Test(arguments: [HTTPServerAddress.Scheme.http, .https])
  func `leads no other request to an address that says nothing, if its own has answered others`(
    _ scheme: HTTPServerAddress.Scheme
  ) throws {
    let gate = Gate()
    let numbers = Mutex(0)
    let server = TestServer(tls: scheme == .https, http2: scheme == .https) { _ in
      let number = numbers.withLock { number in
        number += 1
        return number
      }
      if scheme == .https { return (2...4).contains(number) ? .acts([]) : .send("x") }
      if (2...4).contains(number) { gate.wait() }
      return .send(response("x"))
    }
    defer { server.stop() }
    let deaf = DeafListener(address: secondHost, port: server.port)
    let file = TemporaryFile(Certificates.authority)
    let results = try withOrigin(server, scheme: scheme, addresses: ["127.0.0.1", "127.0.77.2"]) { options in
      options.caFile = file.path
    } body: { origin in
      var results = [await origin.get(timeout: longestStep)]
      for _ in 0..<3 { results.append(await origin.get(timeout: .milliseconds(200))) }
      results.append(await origin.get(timeout: longestStep))
      origin.renewConnections()
      results.append(await origin.get(timeout: longestStep))
      gate.open()
      return results
    }
    let late = "timeout: no response in time"
    #expect(results.map(\.said) == ["x", late, late, late, "x", "x"])
    #expect(deaf.port == server.port)
  }

  /// Two clients' requests to a server with a second address that says nothing; the first client's are for names that hang.
  private func afterHangingNames(
    _ count: Int, addresses: [String], isAlive: Bool = true
  ) throws -> (others: [String?], own: String?) {
    let server = TestServer { $0.head.hasPrefix("GET /hangs") ? .stall : .send(response("x")) }
    defer { server.stop() }
    let deaf = DeafListener(address: secondHost, port: server.port)
    defer { withExtendedLifetime(deaf) {} }
    return try withOrigin(server, addresses: addresses) { origin in
      let (greedy, other) = (TestOwner(client: 1), TestOwner(client: 2))
      for _ in 0..<count {
        _ = await origin.send(HTTPRequest(target: "/hangs"), for: greedy, timeout: .milliseconds(200))
      }
      var others: [String?] = []
      for _ in 0..<3 {
        let time = isAlive ? longestStep : .milliseconds(500)
        for result in await origin.burst(2, for: other, timeout: time) { others.append(result.response?.text) }
      }
      let own = await origin.send(HTTPRequest(target: "/"), for: greedy, timeout: longestStep)
      return (others, own.response?.text)
    }
  }

  @Test(arguments: 1...4)
  func `leads no other client's request to an address that says nothing, also if none has answered`(
    _ count: Int
  ) throws {
    let (others, own) = try afterHangingNames(count, addresses: ["127.0.0.1", "127.0.77.2"])
    #expect(others == Array(repeating: "x", count: 6) && own == "x")
  }

  @Test func `because its first address is silent goes to the other one at the second try of a client`() throws {
    let (others, own) = try afterHangingNames(3, addresses: ["127.0.77.2", "127.0.0.1"], isAlive: false)
    #expect(others[..<2] == [nil, nil] && others[2...].contains("x") && own == "x")
  }

  @Test func `with two equal addresses and without a client is repeated there`() throws {
    let server = TestServer { $0.head.hasPrefix("GET /hangs") ? .stall : .send(response("x")) }
    defer { server.stop() }
    let results = try withOrigin(server, addresses: ["127.0.0.1", "127.0.0.1"]) { origin in
      [await origin.get("/hangs", timeout: .milliseconds(200)), await origin.get(timeout: longestStep)]
    }
    #expect(results.map { $0.response?.text } == [nil, "x"])
  }

  @Test func `goes to no address for good that answers with an error`() throws {
    let server = TestServer { $0.head.hasPrefix("GET /hangs") ? .stall : .send(response("x")) }
    defer { server.stop() }
    let other = TestServer(address: secondHost, port: server.port) { _ in
      .send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
    }
    defer { other.stop() }
    let statuses = try withOrigin(server, addresses: ["127.0.0.1", "127.0.77.2"]) { origin in
      _ = await origin.get("/hangs", timeout: .milliseconds(200))
      return [await origin.get(timeout: longestStep), await origin.get(timeout: longestStep)].map {
        $0.response?.status
      }
    }
    #expect(statuses == [502, 200])
  }

  @Test func `because it allows no streams any more gets another connection after a second`() throws {
    guard Stack.current == .streams else { return }
    let began = BootInstant.now
    let (results, connections) = try withHTTP2 { request in
      request.connection == 0 ? .acts([.allow(streams: 0), .respond("0")]) : .send("\(request.connection)")
    } body: { origin in
      [await origin.get(), await origin.get()]
    }
    #expect(results.map { $0.response?.text } == ["0", "1"])
    #expect(connections == 2)
    #expect((Duration.milliseconds(900)...longestStep).contains(.now - began))
  }
}

@Suite(.onBothStacks) struct `A handshake that fails` {
  @Test func `makes the next one begin at another address`() throws {
    let server = TestServer(tls: true, http2: true) { _ in .send("x") }
    defer { server.stop() }
    let deaf = DeafListener(address: secondHost, port: server.port)
    let file = TemporaryFile(Certificates.authority)
    let (isFirst, second) = try withOrigin(server, scheme: .https, addresses: ["127.0.77.2", "127.0.0.1"]) { options in
      options.caFile = file.path
    } body: { origin in
      let first = await origin.handshake(timeout: .milliseconds(200))
      return (first != nil, await origin.handshake(timeout: longestStep))
    }
    #expect(isFirst && second == nil)
    #expect(deaf.port == server.port)
  }
}

@Suite(.onBothStacks) struct `A request that is repeated` {
  @Test func `by the HTTP client counts as often as it was sent`() throws {
    let server = TestServer { request in
      // The connection is closed with the second request on its way.
      request.connection == 0 && request.head.hasPrefix("GET /again") ? .sendAndClose("") : .send(response("x"))
    }
    defer { server.stop() }
    let results = try withOrigin(server) { origin in [await origin.get("/first"), await origin.get("/again")] }
    #expect(results.map { $0.response?.timesSent } == [1, 2])

    // libcurl repeats no request over HTTP/2.
    guard Stack.current == .streams else { return }
    let (streams, _) = try withHTTP2 { request in
      request.connection == 0 && request.stream > 1 ? .acts([.close]) : .send("x")
    } body: { origin in
      [await origin.get(), await origin.get()]
    }
    #expect(streams.map { $0.response?.timesSent } == [1, 2])
  }

  @Test func `that never left does not count`() throws {
    let (descriptor, port) = listeningSocket(backlog: 1)
    close(descriptor)
    let result = try withOrigin(port: port) { await $0.get() }
    #expect(result.failure?.timesSent == 0)
  }
}

@Suite(.onBothStacks) struct `A request that waits for a connection` {
  /// Answers requests for /slow when the gate opens for each of them, and others at once.
  private func gatedServer(_ gate: Gate) -> TestServer {
    TestServer { request in
      if request.head.hasPrefix("GET /slow") { gate.wait() }
      return .send(response("x"))
    }
  }

  @Test func `says so, and says when it has got one`() throws {
    let gate = Gate()
    let server = gatedServer(gate)
    defer { server.stop() }
    let (first, others) = try withOrigin(server) { options in
      options.maxConnections = 1
    } body: { origin in
      _ = await origin.get()
      let first = TestOwner(client: 1)
      let others = TestOwner(client: 2)
      async let one = origin.send(HTTPRequest(target: "/slow"), for: first, timeout: longestStep)
      async let many = origin.burst(3, for: others)
      _ = await origin.loop.until { others.waits == 3 }
      let connections = others.connections
      gate.open()
      _ = await (one, many)
      return ((first.waits, first.connections), (connections, others.connections))
    }
    #expect(first == (0, 0))
    #expect(others == (0, 3))
  }

  @Test func `takes a turn of any client that has joined`() throws {
    let gate = Gate()
    let server = gatedServer(gate)
    defer { server.stop() }
    let (waits, result) = try withOrigin(server) { options in
      options.maxConnections = 4
      options.usesHTTP2 = false
    } body: { origin in
      _ = await origin.get()
      let greedy = TestOwner(client: 1)
      let shared = TestOwner(client: 1)
      async let many = origin.burst(8, HTTPRequest(target: "/slow"), for: greedy, timeout: longestStep)
      _ = await origin.loop.until { greedy.waits >= 5 }
      async let one = origin.send(HTTPRequest(target: "/"), for: shared, timeout: longestStep)
      _ = await origin.loop.until { shared.waits == 1 }
      shared.transfers[0].isJoined(by: 2)
      let result = await one
      // The others wait for their own client.
      let waits = greedy.waits
      gate.open(8)
      _ = await many
      return (waits, result)
    }
    #expect(waits >= 5)
    #expect(result.response != nil)
  }

  @Test func `gets the place of one whose clients have been answered, and one of these stays`() throws {
    let gate = Gate()
    let server = gatedServer(gate)
    defer { server.stop() }
    let (results, late) = try withOrigin(server) { options in
      options.maxConnections = 3
      options.usesHTTP2 = false
    } body: { origin in
      _ = await origin.get()
      // The daemon's own transfers are not limited, and have all connections.
      let own = TestOwner(client: 0, domain: 0)
      let other = TestOwner(client: 1)
      async let many = origin.burst(3, HTTPRequest(target: "/slow"), for: own, timeout: longestStep)
      _ = await origin.loop.until { own.transfers.count == 3 }
      async let two = origin.burst(3, for: other, timeout: longestStep)
      _ = await origin.loop.until { other.waits == 3 }
      for transfer in own.transfers { transfer.isLate() }
      let results = await two
      gate.open(3)
      return (results, await many)
    }
    #expect(results.allSatisfy { $0.response != nil })
    #expect(late.count { $0.failure?.kind == .cancelled } == 2)
    #expect(late.count { $0.response != nil } == 1)
  }

  @Test func `that no client waits for does not begin, unless a connection is free`() throws {
    let gate = Gate()
    let server = gatedServer(gate)
    defer { server.stop() }
    let (first, second) = try withOrigin(server) { options in
      options.maxConnections = 2
      options.usesHTTP2 = false
    } body: { origin in
      _ = await origin.get()
      let late = TestOwner(client: 1)
      late.isLate = true
      let first = await origin.send(HTTPRequest(target: "/"), for: late, timeout: longestStep)
      let own = TestOwner(client: 0, domain: 0)
      async let many = origin.burst(3, HTTPRequest(target: "/slow"), for: own, timeout: longestStep)
      _ = await origin.loop.until { own.waits == 1 }
      let second = await origin.send(HTTPRequest(target: "/"), for: late, timeout: longestStep)
      gate.open(3)
      _ = await many
      return (first, second)
    }
    #expect(first.response != nil)
    #expect(second.failure?.kind == .cancelled)
  }

  @Test func `is told the end of each transfer, which carries another question afterwards`() throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let (ended, isSame) = try withOrigin(server) { origin in
      let owners = [TestOwner(client: 1), TestOwner(client: 2)]
      for owner in owners { _ = await origin.send(HTTPRequest(target: "/"), for: owner, timeout: longestStep) }
      return (owners.map(\.ended), owners[0].transfers[0] === owners[1].transfers[0])
    }
    #expect(ended == [1, 1] && isSame)
  }
}
