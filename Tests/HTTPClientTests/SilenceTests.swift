// SilenceTests.swift -- a way that takes everything and brings nothing back, and what is not sent early over it.

import CCurl
import EventLoop
import Glibc
import HTTPClient
import HTTPMessage
import TLSTestSupport
import TestSupport
import Testing

@Suite(.onBothStacks) struct `A server that falls silent` {
  @Test(arguments: [1, 0])
  func `silence after the handshake or SETTINGS costs two timeouts and then a new connection`(
    silentFromTheStart: Int
  ) throws {
    let ((results, generations), connections) = try withHTTP2(peer: HTTP2Peer(silentConnections: silentFromTheStart)) {
      $0.connection == 0 ? .stall : .send("\($0.connection)")
    } body: { origin in
      var results: [HTTPResult] = []
      for _ in 0..<2 { results.append(await origin.get(timeout: .milliseconds(500))) }
      for _ in 0..<3 { results.append(await origin.get()) }
      return (results, origin.generationCount)
    }
    #expect(results.map { $0.failure?.kind } == [.timeout, .timeout, nil, nil, nil])
    #expect(results.map { $0.response?.text } == [nil, nil, "1", "1", "1"])
    #expect(generations == 2)
    #expect(connections == 2)
  }

  @Test func `silence in a burst costs one timeout, then answers continue`() throws {
    let ((first, burst, after), _) = try withHTTP2 {
      $0.connection == 0 && $0.stream > 1 ? .stall : .send("x")
    } body: { origin in
      let first = await origin.get()
      let burst = await origin.burst(30, timeout: .milliseconds(50))
      return (first, burst, await origin.burst(30))
    }
    #expect(first.response?.text == "x")
    #expect(burst.count { $0.failure?.kind == .timeout } == 30)
    #expect(after.count { $0.response?.text == "x" } == 30)
  }

  /// No FIN comes, and what is sent is never taken: the listener lets the kernel connect and reads nothing.
  @Test func `a silent host is given up after the TCP user timeout`() throws {
    let listener = DeafListener()
    let request = HTTPRequest(method: .post, target: "/", body: Array(repeating: 1, count: 16 << 20))
    let began = BootInstant.now
    let result = try withOrigin(port: listener.port) { options in
      options.userTimeout = .milliseconds(200)
    } body: {
      await $0.send(request, timeout: .seconds(20))
    }
    let took = BootInstant.now - began
    #expect(result.failure?.kind == .reset)
    #expect(took >= .milliseconds(150))
    #expect(took < longestStep)
  }

  @Test func `a silent connection is given up after five seconds by default`() throws {
    let (timeouts, _) = try withHTTP2 { _ in
      .send("x")
    } body: { origin in
      _ = await origin.get()
      return userTimeouts(to: origin.server.port)
    }
    #expect(timeouts == [5000])
  }

  @Test func `no request is sent before the handshake is over, also if early data is permitted`() throws {
    let server = TestServer(tls: true) { request in
      let early = request.earlyData
      return .sendAndClose(response("\(request.isResumed) \(early.isPermitted) \(early.wasSent)"))
    }
    defer { server.stop() }
    let file = TemporaryFile(Certificates.authority)
    let texts = try withOrigin(server, scheme: .https) { options in
      options.caFile = file.path
    } body: { origin in
      var texts: [String?] = []
      for _ in 0..<4 { texts.append(await origin.get().response?.text) }
      origin.renewConnections()
      texts.append(await origin.get().response?.text)
      return texts
    }
    #expect(texts == ["false true false"] + Array(repeating: "true true false", count: 4))
  }
}

/// `TCP_USER_TIMEOUT` in milliseconds of this process's descriptors that are connected to a port of 127.0.0.1.
private func userTimeouts(to port: UInt16) -> [UInt32] {
  connectedDescriptors(to: port).map { descriptor in
    var value: UInt32 = 0
    var length = socklen_t(MemoryLayout<UInt32>.size)
    getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &value, &length)
    return value
  }
}

/// Listens on loopback with little room and never reads.
final class DeafListener: Sendable {
  let port: UInt16
  private let descriptor: Int32

  init(address: UInt32 = 0x7F00_0001, port: UInt16 = 0) {
    (descriptor, self.port) = listeningSocket(backlog: 64, room: 4096, address: address, port: port)
  }

  deinit { close(descriptor) }

  /// Whether a client has connected.
  var wasAsked: Bool {
    var listener = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&listener, 1, 0) == 1
  }
}
