// HTTPServerTests.swift -- the server over real sockets, one test a property.

import EventLoop
import Glibc
import HTTPMessage
import HTTPTestSupport
import Synchronization
import TestSupport
import Testing

@testable import HTTPServer

private let loopback = SocketAddress(text: "127.0.0.1:0")!

/// A server on a loop of its own thread.
private final class Fixture {
  let loop: EventLoop
  let server: HTTPServer
  let address: SocketAddress
  private var thread: LoopThread?

  init(
    limits: HTTPServer.Limits = .init(), handler: @escaping (HTTPServerRequest, HTTPServerReply) -> Void
  ) throws {
    loop = try EventLoop()
    server = HTTPServer(on: loop, limits: limits, handler: handler)
    address = try server.listen(on: loopback)
    thread = LoopThread(running: loop)
  }

  deinit { stop() }

  func connect() throws -> RawClient { try #require(RawClient(to: address)) }

  func stop() { thread?.join() }
}

private func echo(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
  let fields = request.fields.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
  let text = "\(request.method.rawValue) \(request.path) \(request.query ?? "-") \(fields) "
  reply.send(status: 200, fields: [HTTPField("X-Test", "yes")], body: Array(text.utf8) + request.body)
}

@Suite struct `An HTTP server` {
  @Test func `the handler sees method, path, query, fields and body as they were sent`() throws {
    let fixture = try Fixture(handler: echo)
    let response = try #require(
      try fixture.connect().exchange("POST", "/a%20b?x=%2f&y", header: "Accept: */*\r\n", body: "hello"))
    #expect(response.status == 200)
    #expect(response.field("X-Test") == "yes")
    #expect(response.field("Date") != nil)
    #expect(response.text == "POST /a%20b x=%2f&y Host=localhost,Accept=*/*,Content-Length=5 hello")
  }

  @Test(arguments: [
    ("http://dns.test:80/metrics?x=1", "/metrics", "x=1", "dns.test:80"), ("HTTP://dns.test", "/", nil, "dns.test"),
    ("http://dns.test?x", "/", "x", "dns.test"), ("/metrics", "/metrics", nil, "localhost"),
    ("/http://a/b", "/http://a/b", nil, "localhost"), ("//a/b", "//a/b", nil, "localhost"),
  ]) func `a target in absolute form has its path and its host`(
    target: String, path: String, query: String?, host: String
  ) throws {
    let fixture = try Fixture { request, reply in
      let parts = [request.path, request.query ?? "-", request.host ?? "-"]
      reply.send(status: 200, body: Array(parts.joined(separator: " ").utf8))
    }
    #expect(try fixture.connect().exchange("GET", target)?.text == "\(path) \(query ?? "-") \(host)")
  }

  @Test func `two Host fields are refused with 400`() throws {
    let fixture = try Fixture(handler: echo)
    #expect(try fixture.connect().exchange("GET", "/", header: "host: other\r\n")?.status == 400)
  }

  @Test func `pipelined requests are answered in their order on one connection`() throws {
    let fixture = try Fixture { request, reply in reply.send(status: 200, body: Array(request.path.utf8)) }
    let client = try fixture.connect()
    client.send((0..<50).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
    for number in 0..<50 { #expect(client.response()?.text == "/\(number)") }
    fixture.stop()
    #expect(fixture.server.connectionCount == 1)
  }

  @Test func `a request in small pieces is put together`() throws {
    let fixture = try Fixture(handler: echo)
    let client = try fixture.connect()
    let pieces = ["PO", "ST / HT", "TP/1.1\r\nHo", "st: x\r\nContent-Length: 3\r", "\n\r\na", "bc"]
    for piece in pieces { client.send(piece) }
    #expect(client.response()?.text.hasSuffix("abc") == true)
  }

  @Test func `HEAD gets the length without the body`() throws {
    let fixture = try Fixture { _, reply in reply.send(status: 200, body: Array("twelve chars".utf8)) }
    let client = try fixture.connect()
    let response = try #require(client.exchange("HEAD", "/"))
    #expect(response.field("Content-Length") == "12")
    #expect(client.exchange("GET", "/")?.text == "twelve chars")
  }

  @Test func `a reply may be given later, by a timer`() throws {
    let loop = try EventLoop()
    let server = HTTPServer(on: loop) { _, reply in
      loop.schedule(after: .milliseconds(5)) { reply.send(status: 202) }
    }
    let address = try server.listen(on: loopback)
    let thread = LoopThread(running: loop)
    let client = try #require(RawClient(to: address))
    #expect(client.exchange("GET", "/")?.status == 202)
    thread.join()
    #expect(server.pendingCount == 0)
  }

  @Test func `a released reply answers 500, and the connection continues`() throws {
    let fixture = try Fixture { request, reply in if request.path == "/kept" { reply.send(status: 200) } }
    let client = try fixture.connect()
    #expect(client.exchange("GET", "/dropped")?.status == 500)
    #expect(client.exchange("GET", "/kept")?.status == 200)
  }

  @Test func `a second answer to one request is ignored`() throws {
    let fixture = try Fixture { _, reply in
      reply.send(status: 200)
      reply.send(status: 404)
      reply.reset()
    }
    let client = try fixture.connect()
    #expect(client.exchange("GET", "/")?.status == 200)
    #expect(client.exchange("GET", "/")?.status == 200)
  }

  @Test func `a reset is seen as a reset, not as an orderly end`() throws {
    let loop = try EventLoop()
    let server = HTTPServer(on: loop) { _, reply in loop.schedule(after: .zero) { reply.reset() } }
    let address = try server.listen(on: loopback)
    let thread = LoopThread(running: loop)
    let client = try #require(RawClient(to: address))
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.end() == .reset)
    thread.join()
    #expect(server.pendingCount == 0)
  }

  @Test func `a held reply is freed when the client closes`() throws {
    let loop = try EventLoop()
    var server: HTTPServer?
    server = HTTPServer(on: loop) { request, reply in
      guard request.path == "/count" else { return reply.holdUntilPeerCloses() }
      reply.send(status: 200, body: Array("\(server!.pendingCount)".utf8))
    }
    let address = try server!.listen(on: loopback)
    let thread = LoopThread(running: loop)
    let counter = try #require(RawClient(to: address))
    var stalled: RawClient? = RawClient(to: address)
    stalled?.send("GET /stall HTTP/1.1\r\nHost: x\r\n\r\n")
    // The request for the count is itself one of those that wait.
    #expect((0..<100_000).contains { _ in counter.exchange("GET", "/count")?.text == "2" })
    stalled = nil
    #expect((0..<100_000).contains { _ in counter.exchange("GET", "/count")?.text == "1" })
    thread.join()
    server = nil
  }

  @Test func `a server that ends takes the requests that wait with it`() throws {
    let loop = try EventLoop()
    var kept: HTTPServerReply?
    var server: HTTPServer? = HTTPServer(on: loop) { request, reply in
      if request.path == "/keep" { kept = reply } else { reply.send(status: kept == nil ? 404 : 200) }
    }
    let address = try server!.listen(on: loopback)
    let thread = LoopThread(running: loop)
    let waiting = try #require(RawClient(to: address))
    waiting.send("GET /keep HTTP/1.1\r\nHost: x\r\n\r\n")
    let other = try #require(RawClient(to: address))
    #expect((0..<100_000).contains { _ in other.exchange("GET", "/")?.status == 200 })
    thread.join()
    server = nil
    #expect(kept?.isPending == false)
    kept?.send(status: 200)
    #expect(waiting.end() == .closed)
  }

  @Test func `a header section beyond the limit is refused`() throws {
    var limits = HTTPServer.Limits()
    limits.headerOctets = 512
    let fixture = try Fixture(limits: limits, handler: echo)
    let statuses = try [300, 600].map { count in
      try fixture.connect().exchange("GET", "/", header: "X: \(String(repeating: "x", count: count))\r\n")?.status
    }
    #expect(statuses == [200, 431])
  }

  @Test func `a body beyond the limit is refused with 413`() throws {
    var limits = HTTPServer.Limits()
    limits.bodyOctets = 100
    let fixture = try Fixture(limits: limits, handler: echo)
    #expect(try fixture.connect().exchange("POST", "/", body: String(repeating: "x", count: 100))?.status == 200)
    #expect(try fixture.connect().exchange("POST", "/", body: String(repeating: "x", count: 101))?.status == 413)
  }

  @Test func `a refused body is left unread, and its client still gets the answer`() throws {
    let fixture = try Fixture(handler: echo)
    let client = try fixture.connect()
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n")
    client.send(String(repeating: "x", count: 1_000_000))
    let response = try #require(client.response())
    #expect(response.status == 413 && response.text == "the body exceeds 65536 octets\n")
    #expect(response.field("Connection") == "close")
    #expect(client.end() == .closed)
  }

  @Test func `a client that closes its direction still gets all answers, then the end`() throws {
    let fixture = try Fixture { request, reply in
      reply.send(status: 200, body: [UInt8](repeating: UInt8(ascii: "x"), count: 300_000) + request.path.utf8)
    }
    let client = try fixture.connect()
    for number in 0..<10 { client.send("GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n") }
    client.endInput()
    for number in 0..<10 { #expect(client.response()?.text.hasSuffix("x/\(number)") == true) }
    #expect(client.end() == .closed)
  }

  @Test func `a client that closes its direction is answered when the answer comes later`() throws {
    let loop = try EventLoop()
    let server = HTTPServer(on: loop) { _, reply in
      loop.schedule(after: .milliseconds(20)) { reply.send(status: 202) }
    }
    let address = try server.listen(on: loopback)
    let thread = LoopThread(running: loop)
    let client = try #require(RawClient(to: address))
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    client.endInput()
    #expect(client.response()?.status == 202)
    #expect(client.end() == .closed)
    thread.join()
  }

  @Test func `an answer is followed by the end where the client asks for it, or speaks HTTP 1_0`() throws {
    let fixture = try Fixture(handler: echo)
    for head in ["GET / HTTP/1.1\r\nHost: x\r\nConnection: Close", "GET / HTTP/1.0"] {
      let client = try fixture.connect()
      client.send("\(head)\r\n\r\n")
      #expect(client.response()?.field("Connection") == "close")
      #expect(client.end() == .closed)
    }
    let client = try fixture.connect()
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    #expect(client.response()?.field("Connection") == "keep-alive")
    #expect(client.exchange("GET", "/")?.status == 200)
  }

  @Test func `a client that asks for more than it reads holds neither memory nor others`() throws {
    let handled = Atomic<Int>(0)
    let fixture = try Fixture { _, reply in
      handled.add(1, ordering: .relaxed)
      reply.send(status: 200, body: [UInt8](repeating: 0, count: 50_000))
    }
    let client = try fixture.connect()
    client.sendWhatFits(String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: 100_000))
    #expect(try fixture.connect().exchange("GET", "/")?.status == 200)
    // What the kernel's buffers hold, far less than was asked for.
    #expect(handled.load(ordering: .relaxed) < 1_000)
  }

  @Test func `a connection without a request ends after the idle time, also within one`() throws {
    var limits = HTTPServer.Limits()
    limits.idle = .milliseconds(150)
    let fixture = try Fixture(limits: limits, handler: echo)
    let silent = try fixture.connect()
    let slow = try fixture.connect()
    slow.send("GET / HTT")
    let used = try fixture.connect()
    #expect(used.exchange("GET", "/")?.status == 200)
    for client in [silent, slow, used] { #expect(client.end() == .closed) }
  }

  @Test func `a client that reads nothing of its answer is cut off`() throws {
    var limits = HTTPServer.Limits()
    limits.idle = .milliseconds(500)
    let fixture = try Fixture(limits: limits) { request, reply in
      reply.send(status: 200, body: [UInt8](repeating: 0, count: request.path == "/" ? 20_000_000 : 0))
    }
    let client = try fixture.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    let other = try fixture.connect()
    #expect(other.exchange("GET", "/busy")?.status == 200)
    #expect((0..<1_000_000).contains { _ in other.exchange("GET", "/busy")?.status == 200 && client.isReset })
  }

  @Test func `a streamed answer comes in chunks, and the connection continues`() throws {
    let fixture = try Fixture { request, reply in
      guard request.path == "/stream" else { return reply.send(status: 200) }
      reply.startStream(status: 200, patience: .seconds(10)) {}
      reply.write(Array("hello".utf8))
      reply.write([])
      reply.write(Array(repeating: UInt8(ascii: "x"), count: 20))
      reply.endStream()
    }
    let client = try fixture.connect()
    client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
    let head = try #require(client.response())
    #expect(head.status == 200 && head.field("Transfer-Encoding") == "chunked" && head.field("Content-Length") == nil)
    #expect(client.read("5\r\nhello\r\n14\r\n\(String(repeating: "x", count: 20))\r\n0\r\n\r\n"))
    #expect(client.exchange("GET", "/")?.status == 200)
    client.send("GET /stream HTTP/1.0\r\n\r\n")
    #expect(client.response()?.field("Transfer-Encoding") == nil)
    #expect(client.read("hello\(String(repeating: "x", count: 20))"))
    #expect(client.end() == .closed)
  }

  @Test func `a client that sends too much behind a streamed answer is disconnected, so that its end is noticed`()
    throws
  {
    let closed = Mutex(0)
    let fixture = try Fixture { _, reply in
      // The connection holds the closure, and so the reply.
      reply.startStream(status: 200, patience: .seconds(10)) {
        withExtendedLifetime(reply) { closed.withLock { $0 += 1 } }
      }
      reply.write(Array("hello".utf8))
    }
    let client = try fixture.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response()?.status == 200 && client.read("5\r\nhello\r\n"))
    client.send(String(repeating: "x", count: 1000))
    client.sendWhatFits(String(repeating: "x", count: 8000))
    #expect(client.end() != .timeout)
    #expect(comes { closed.withLock { $0 == 1 } })
  }

  @Test func `a method that the server does not know is refused with 501`() throws {
    let fixture = try Fixture(handler: echo)
    #expect(try fixture.connect().exchange("BREW", "/")?.status == 501)
    #expect(try fixture.connect().exchange("TRACE", "/")?.status == 501)
  }

  @Test func `two servers cannot have one address`() throws {
    let fixture = try Fixture(handler: echo)
    let other = try HTTPServer(on: EventLoop(), handler: echo)
    #expect(throws: HTTPServerError.cannotListen(call: "bind", address: "\(fixture.address)", errno: EADDRINUSE)) {
      try other.listen(on: fixture.address)
    }
  }

}
