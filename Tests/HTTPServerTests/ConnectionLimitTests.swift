// ConnectionLimitTests.swift -- a server that bounds its connections gives a newcomer the place of who is idle.

import EventLoop
import Glibc
import HTTPTestSupport
import Testing

@testable import HTTPServer

@Suite struct `A server with a limit of connections` {
  /// Replies that are never given; each writes an octet into a pipe.
  private final class Waiting {
    var replies: [HTTPServerReply] = []
    private var ends: [Int32] = [-1, -1]

    init() { _ = pipe2(&ends, O_CLOEXEC) }

    deinit { for end in ends { close(end) } }

    func add(_ reply: HTTPServerReply) {
      replies.append(reply)
      var octet: UInt8 = 1
      write(ends[1], &octet, 1)
    }

    /// Waits until one more has come.
    func waitForOne() -> Bool {
      var entry = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
      var octet: UInt8 = 0
      return poll(&entry, 1, 10_000) == 1 && read(ends[0], &octet, 1) == 1
    }
  }

  /// A server for two connections; a request for /wait is never answered.
  private final class Fixture {
    let address: SocketAddress
    let loop: EventLoop
    let waiting: Waiting
    private let server: HTTPServer
    private var thread: LoopThread?

    init() throws {
      loop = try EventLoop()
      var limits = HTTPServer.Limits()
      limits.connections = 2
      let waiting = Waiting()
      self.waiting = waiting
      server = HTTPServer(on: loop, limits: limits) { request, reply in
        if request.path == "/wait" { waiting.add(reply) } else { reply.send(status: 200) }
      }
      address = try server.listen(on: #require(SocketAddress(text: "127.0.0.1:0")))
      thread = LoopThread(running: loop)
    }

    deinit { thread?.join() }

    func connect() throws -> RawClient { try #require(RawClient(to: address)) }
  }

  @Test func `the one that has been idle for longest makes room`() throws {
    let fixture = try Fixture()
    let first = try fixture.connect()
    #expect(first.exchange("GET", "/")?.status == 200)
    let second = try fixture.connect()
    #expect(second.exchange("GET", "/")?.status == 200)
    #expect(first.exchange("GET", "/")?.status == 200)
    let third = try fixture.connect()
    #expect(third.exchange("GET", "/")?.status == 200)
    #expect(second.end() == .closed)
    #expect(first.exchange("GET", "/")?.status == 200)
    #expect(third.exchange("GET", "/")?.status == 200)
  }

  @Test func `a closed connection frees its place`() throws {
    let fixture = try Fixture()
    let first = try fixture.connect()
    #expect(first.exchange("GET", "/")?.status == 200)
    for _ in 0..<5 {
      let other = try fixture.connect()
      #expect(other.exchange("GET", "/", header: "Connection: close\r\n")?.status == 200)
      #expect(other.end() == .closed)
    }
    #expect(first.exchange("GET", "/")?.status == 200)
  }

  @Test func `a new connection is closed if all others wait for an answer`() throws {
    let fixture = try Fixture()
    let clients = try (0..<2).map { _ in try fixture.connect() }
    for client in clients {
      client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(fixture.waiting.waitForOne())
    }
    #expect(try fixture.connect().exchange("GET", "/") == nil)
    withExtendedLifetime(clients) {}
  }

  @Test func `a hundred silent connections do not block other clients`() throws {
    let fixture = try Fixture()
    let idle = try (0..<100).map { _ in try fixture.connect() }
    #expect(try fixture.connect().exchange("GET", "/")?.status == 200)
    withExtendedLifetime(idle) {}
  }
}
