// HandOverTests.swift -- transfers that wait for a free connection: how many are at the server, in which order, for how long.

import EventLoop
import Glibc
import HTTPClient
import HTTPMessage
import Synchronization
import TLSTestSupport
import TestSupport
import Testing

@Suite struct `A transfer without a free connection` {
  @Test(arguments: [1, 3]) func `a transfer beyond the connections waits while the others are at the server`(most: Int)
    throws
  {
    let count = 30
    let meeting = Meeting(of: most)
    let server = TestServer { request in
      meeting.attend(request.target)
      return .send(response("x"))
    }
    defer { server.stop() }
    let results = try withOrigin(server) { options in
      options.maxConnections = most
    } body: {
      await $0.gets((0..<count).map { "/\($0)" }, timeout: .seconds(10))
    }
    #expect(results.count { $0.response?.text == "x" } == count)
    // Each meeting has the next ones in the order of their requests, and no others.
    let expected = stride(from: 0, to: count, by: most).map { first in Set((first..<(first + most)).map { "/\($0)" }) }
    #expect(meeting.all == expected)
    #expect(meeting.missed == 0)
    #expect(meeting.mostPresent == most)
    #expect(server.accepted <= most)
  }

  @Test func `a transfer that times out before it gets a connection was never sent, and does not delay the next`()
    throws
  {
    let gate = Gate()
    let seen = Mutex<[String]>([])
    let server = TestServer { request in
      seen.withLock { $0.append(request.target) }
      if request.target == "/first" { gate.wait() }
      return .send(response(request.target))
    }
    defer { server.stop() }
    let (first, never, next) = try withOrigin(server) { options in
      options.maxConnections = 1
    } body: { origin in
      async let first = origin.get("/first")
      async let never = origin.get("/never", timeout: .milliseconds(20))
      async let next = origin.get("/next")
      let result = await never
      gate.open()
      return (await first, result, await next)
    }
    #expect(first.response?.text == "/first")
    // The server had said nothing at all meanwhile.
    #expect(never.failure == HTTPFailure(.timeout, "no response in time"))
    #expect(next.response?.text == "/next")
    #expect(seen.withLock { $0 } == ["/first", "/next"])
  }

  @Test func `those whose time is up together are not sent in its last moment, over HTTP/1.1`() throws {
    let requests = Atomic(0)
    let server = TestServer { _ in
      requests.add(1, ordering: .relaxed)
      return .stall
    }
    defer { server.stop() }
    let results = try withOrigin(server) { options in
      options.maxConnections = 2
    } body: {
      await $0.burst(20, timeout: .milliseconds(100))
    }
    #expect(results.allSatisfy { $0.failure?.kind == .timeout })
    #expect(results.reduce(0) { $0 + $1.timesSent } == 2)
    #expect(requests.load(ordering: .relaxed) == 2)
  }

  @Test(.onBothStacks)
  func `those whose time is up together are not sent in its last moment, over HTTP/2`() throws {
    let peer = HTTP2Peer(maxStreams: 2)
    let (results, _) = try withHTTP2(peer: peer) { options in
      options.maxConnections = 1
    } react: {
      $0.stream == 1 ? .send("x") : .stall
    } body: { origin in
      _ = await origin.get()
      return await origin.burst(20, timeout: .milliseconds(100))
    }
    #expect(results.allSatisfy { $0.response == nil })
    #expect(results.reduce(0) { $0 + $1.timesSent } == 2)
    #expect(peer.requests == 3)
  }

  @Test func `transfers of one owner that hang leave another owner a connection`() throws {
    let server = TestServer { request in request.target == "/slow" ? .stall : .send(response("x")) }
    defer { server.stop() }
    let (slow, quick) = try withOrigin(server) { options in
      options.maxConnections = 8
    } body: { origin in
      async let slow = origin.burst(
        40, HTTPRequest(target: "/slow"), for: TestOwner(client: 1), timeout: .milliseconds(1500))
      async let quick = origin.burst(
        40, HTTPRequest(target: "/quick"), for: TestOwner(client: 2), timeout: .milliseconds(1400))
      return (await slow, await quick)
    }
    #expect(quick.count { $0.response?.text == "x" } == 40)
    // Three quarters of eight connections are a client's, and three quarters of those a domain's.
    let sent = slow.count { $0.failure?.wasSent == true }
    #expect((4...6).contains(sent), "\(sent)")
    #expect(slow.count { $0.failure?.wasSent == false } == 40 - sent)
  }

  @Test func `a transfer that waited mostly for the server fails by the server's timeout`() throws {
    let results = try shareConnection(first: .milliseconds(20), second: .milliseconds(400))
    #expect(results.map { $0.failure?.kind } == [.timeout, .timeout])
    #expect(results.allSatisfy { $0.failure?.wasSent == true })
  }

  /// The results of two transfers, the second of which gets the connection when the first has run out of time.
  private func shareConnection(first: Duration, second: Duration) throws -> [HTTPResult] {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    return try withOrigin(server) { options in
      options.maxConnections = 1
    } body: { origin in
      async let one = origin.get(timeout: first)
      async let two = origin.get(timeout: second)
      return [await one, await two]
    }
  }

  @Test(arguments: [true, false]) func `a waiting transfer ends with its origin`(hasStarted: Bool) throws {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    let results = try withOrigin(server) { options in
      options.maxConnections = 1
    } body: { origin in
      async let results = origin.burst(20)
      while origin.inFlight < 20 || hasStarted && origin.connectionCount == 0 { await Task.yield() }
      origin.close()
      return await results
    }
    #expect(results.count { $0.failure?.kind == .cancelled } == 20)
    #expect(server.accepted <= 1)
  }

  @Test func `a waiting transfer gets an old connection when connections are renewed`() throws {
    let gate = Gate()
    let server = TestServer { request in
      if request.target == "/0" { gate.wait() }
      return .send(response("\(request.connection)"))
    }
    defer { server.stop() }
    let (old, new, open) = try withOrigin(server) { options in
      options.maxConnections = 1
    } body: { origin in
      async let old = origin.gets((0..<10).map { "/\($0)" }, timeout: .seconds(10))
      while origin.inFlight < 10 || origin.connectionCount == 0 { await Task.yield() }
      origin.renewConnections()
      let new = await origin.get("/new")
      gate.open()
      return (await old, new, origin.connectionCount)
    }
    #expect(old.map { $0.response?.text } == Array(repeating: "0", count: 10))
    #expect(new.response?.text == "1")
    #expect(open == 1)
  }

  @Test func `transfers over TLS wait for connections once the server is known to lack HTTP/2`() throws {
    let server = TestServer(tls: true) { .send(response("\($0.connection)")) }
    defer { server.stop() }
    let file = TemporaryFile(Certificates.authority)
    let results = try withOrigin(server, scheme: .https) { options in
      options.caFile = file.path
      options.maxConnections = 2
    } body: { origin in
      let first = await origin.burst(40)
      let second = await origin.burst(40)
      return first + second
    }
    #expect(results.count { $0.response?.httpVersion == 1 } == 80)
    // One connection finds out, which closes without a request.
    #expect((2...3).contains(server.accepted))
  }

  @Test func `all transfers share one connection over HTTP/2`() throws {
    // Responds only when all of them are at the server.
    let server = TestServer(tls: true, http2: true) { request in
      request.stream == 1 ? .send("first") : .respondTogether(count: 50, "x")
    }
    defer { server.stop() }
    let file = TemporaryFile(Certificates.authority)
    let results = try withOrigin(server, scheme: .https) { options in
      options.caFile = file.path
      options.maxConnections = 1
    } body: { origin in
      _ = await origin.get()
      let first = await origin.burst(50)
      let second = await origin.burst(50)
      return first + second
    }
    #expect(results.count { $0.response?.text == "x" } == 100)
    #expect(server.accepted == 1)
  }
}

extension ReceivedRequest {
  /// The target of an HTTP/1.1 request.
  fileprivate var target: String { head.split(separator: " ").dropFirst().first.map { String($0) } ?? "" }
}

extension HTTPOrigin {
  /// Sends requests for these targets at the same time; their results in this order.
  fileprivate func gets(_ targets: [String], timeout: Duration) async -> [HTTPResult] {
    await withTaskGroup(of: (Int, HTTPResult).self) { group in
      for (index, target) in targets.enumerated() {
        group.addTask { (index, await self.get(target, timeout: timeout)) }
      }
      let results = await group.reduce(into: [Int: HTTPResult]()) { $0[$1.0] = $1.1 }
      return targets.indices.compactMap { results[$0] }
    }
  }
}

/// A barrier for `size` threads, used again and again: each thread waits until all have arrived.
private final class Meeting: Sendable {
  private struct State {
    var complete: [Set<String>] = []
    var present: Set<String> = []
    var gates: [Gate] = []
    var inside = 0
    var mostInside = 0
    var missed = 0
  }

  private let size: Int
  private let state = Mutex(State())

  init(of size: Int) { self.size = size }

  /// Who was there, meeting by meeting.
  var all: [Set<String>] { state.withLock { $0.complete } }
  /// How many were there at once, those included who had not left yet.
  var mostPresent: Int { state.withLock { $0.mostInside } }
  /// How many waited for others without success.
  var missed: Int { state.withLock { $0.missed } }

  func attend(_ name: String) {
    let own = Gate()
    state.withLock { state in
      state.inside += 1
      state.mostInside = max(state.mostInside, state.inside)
      state.present.insert(name)
      state.gates.append(own)
      guard state.gates.count == size else { return }
      for gate in state.gates { gate.open() }
      state.complete.append(state.present)
      state.present = []
      state.gates = []
    }
    let hasMet = own.wait()
    state.withLock { state in
      state.inside -= 1
      if !hasMet { state.missed += 1 }
    }
  }
}
