// StreamFaultTests.swift -- HTTP/2: what servers do wrong or late, and what waits meanwhile; the same by both stacks.

import EventLoop
import Glibc
import HTTPMessage
import TestSupport
import Testing

@testable import HTTPClient

@Suite(.serialized, .onBothStacks) struct `Faults of streams` {
  @Test func `a timeout gives its stream to a transfer that waits`() throws {
    let ((first, second, took), _) = try withHTTP2(peer: HTTP2Peer(maxStreams: 1)) {
      $0.maxConnections = 1
    } react: { request in
      request.stream == 3 ? .stall : .send("x")
    } body: { origin in
      _ = await origin.get()
      async let first = origin.get(timeout: .milliseconds(200))
      await origin.loop.turn()
      let began = BootInstant.now
      let second = await origin.get(timeout: .seconds(20))
      return (await first, second, BootInstant.now - began)
    }
    #expect(first.failure?.kind == .timeout)
    #expect(second.response?.text == "x")
    #expect(took < longestStep)
  }

  @Test func `a response that is refused gives its stream to a transfer that waits`() throws {
    let long = String(repeating: "x", count: 70_000)
    let ((results, took), _) = try withHTTP2(peer: HTTP2Peer(maxStreams: 1)) {
      $0.maxConnections = 1
    } react: { request in
      request.stream == 3 ? .acts([.begin(long)]) : .send("x")
    } body: { origin in
      _ = await origin.get()
      let began = BootInstant.now
      return (await origin.burst(2, timeout: .seconds(20)), BootInstant.now - began)
    }
    #expect(results.compactMap { $0.failure?.kind } == [.tooLarge])
    #expect(results.compactMap { $0.response?.text } == ["x"])
    #expect(took < longestStep)
  }

  @Test(arguments: [
    [HTTP2Act.frame(type: 4, flags: 0, stream: 0, [0, 0, 0, 0, 1])],
    [
      .frame(type: 1, flags: 4, stream: 3, [0x88]),
      .frame(type: 0, flags: 1, stream: 3, Array(repeating: 1, count: 20_000)),
    ],
    [.breakRules],
  ])
  func `an error of the connection ends it, whatever the server does then`(acts: [HTTP2Act]) throws {
    // libcurl from 8 on lets the request wait to its end, with newer versions of nghttp2.
    let timeout = Stack.current == .streams ? Duration.seconds(20) : .seconds(2)
    let ((results, took), _) = try withHTTP2 { request in
      guard request.connection == 0 else { return .send("x") }
      return request.stream == 1 ? .send("x") : request.stream == 3 ? .acts(acts) : .stall
    } body: { origin in
      _ = await origin.get()
      let began = BootInstant.now
      var results: [HTTPResult] = []
      for _ in 0..<3 { results.append(await origin.get(timeout: timeout)) }
      return (results, BootInstant.now - began)
    }
    #expect(results.dropFirst().allSatisfy { $0.response?.text == "x" })
    #expect(took < longestStep)
  }

  @Test func `what is in flight survives a connection that chooses HTTP/1.1`() throws {
    let gate = Gate()
    let peer = HTTP2Peer(maxStreams: 2, http1Connections: Set(1..<100))
    let ((results, took), _) = try withHTTP2(peer: peer) { request in
      if request.stream == 0 { return .send(response("1")) }
      if request.stream > 1 { gate.wait() }
      return .send("2")
    } body: { origin in
      _ = await origin.get()
      let began = BootInstant.now
      async let results = origin.burst(6, timeout: .seconds(20))
      await origin.loop.turn()
      gate.open(100)
      return (await results, BootInstant.now - began)
    }
    #expect(results.count { $0.response != nil } == 6)
    #expect(took < longestStep)
  }

  @Test func `a transfer is not forgotten when a connection fails beside one that leaves`() throws {
    let peer = HTTP2Peer(refusedConnections: [1])
    let ((result, took), _) = try withHTTP2(peer: peer) { request in
      guard request.connection == 0, request.stream == 3 else { return .send("x") }
      return .acts([.goAway(last: 3, .none), .hold])
    } body: { origin in
      _ = await origin.get()
      async let held = origin.get(timeout: .seconds(25))
      _ = await origin.loop.until { origin.connectionCount == 1 }
      for _ in 0..<20 { await origin.loop.turn() }
      let began = BootInstant.now
      let result = await origin.get(timeout: .seconds(20))
      let took = BootInstant.now - began
      origin.close()
      _ = await held
      return (result, took)
    }
    #expect(took < longestStep)
    #expect(result.failure.map { $0.kind != .busy } ?? true)
  }

  @Test func `connections that leave count against the maximum`() throws {
    let (most, _) = try withHTTP2(peer: HTTP2Peer(maxStreams: 10)) {
      $0.maxConnections = 2
    } react: { request in
      if request.stream == 1, request.connection == 0 { return .send("x") }
      return .acts([.goAway(last: request.stream, .none), .hold])
    } body: { origin in
      _ = await origin.get()
      async let results = origin.burst(30, timeout: .milliseconds(500))
      var most = 0
      _ = await origin.loop.until(.milliseconds(450), every: .milliseconds(5)) {
        most = max(most, origin.connectionCount)
        return false
      }
      _ = await results
      return most
    }
    // Two more, so that transfers do not wait for those that leave.
    #expect(most <= 4)
  }

  @Test func `a server that allows no stream gets no further connections`() throws {
    let (results, connections) = try withHTTP2(peer: HTTP2Peer(maxStreams: 0)) { _ in
      .send("x")
    } body: { origin in
      await origin.burst(100, timeout: .milliseconds(300))
    }
    // The first stream begins before the server has said so.
    let failures = results.compactMap { $0.failure?.kind }
    #expect(failures.count >= 98 && failures.allSatisfy { $0 == .timeout || $0 == .busy }, "\(results.map(\.said))")
    #expect(connections <= 2)
  }

  @Test func `what the server said is read before its connection is given up`() throws {
    // libcurl does not read on.
    guard Stack.current == .streams else { return }
    let (first, _) = try withHTTP2 { request in
      switch (request.connection, request.stream) {
      case (0, 3): .acts([.hold])
      case (0, 5): .acts([.respondToHeld("late"), .resetAtEnd, .close])
      default: .send("x")
      }
    } body: { origin in
      _ = await origin.get()
      async let first = origin.get(timeout: .seconds(20))
      await origin.loop.turn()
      async let second = origin.get(timeout: .seconds(20))
      for _ in 0..<20 { await Task.yield() }
      // This thread is busy until the server has reset the connection; then it writes first.
      _ = comes { connectedDescriptors(to: origin.server.port).isEmpty }
      async let third = origin.get(timeout: .seconds(20))
      _ = await (second, third)
      return await first
    }
    #expect(first.response?.text == "late")
  }
}
