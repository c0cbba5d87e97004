// ConnectionLimitTests.swift -- a server that bounds its connections gives a newcomer the place of who is idle.

import EventLoop
import Glibc
import HTTPTestSupport
import Testing

@testable import HTTPServer

@Suite struct `A server with a limit of connections` {
  /// Replies that are never given.
  private final class Waiting {
    var replies: [HTTPServerReply] = []
  }

  /// A server for two connections; a request for /wait is never answered.
  private final class Fixture {
    let address: SocketAddress
    let loop: EventLoop
    private let server: HTTPServer
    private var thread: LoopThread?

    init() throws {
      loop = try EventLoop()
      var limits = HTTPServer.Limits()
      limits.connections = 2
      let waiting = Waiting()
      server = try HTTPServer(on: loop, limits: limits) { request, reply in
        if request.path == "/wait" { waiting.replies.append(reply) } else { reply.send(status: 200) }
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

  @Test func `one that has gone by itself has left its place`() throws {
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

  @Test func `where all wait for an answer the newcomer is closed`() throws {
    let fixture = try Fixture()
    let waiting = try (0..<2).map { _ in try fixture.connect() }
    for client in waiting { client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n") }
    // Their requests have been read before the newcomer is looked at: the same loop reads one after the other.
    var closed = 0
    for _ in 0..<20 where closed == 0 {
      let other = try fixture.connect()
      if other.exchange("GET", "/") == nil { closed += 1 }
    }
    #expect(closed == 1)
  }

  @Test func `a hundred that say nothing do not keep anybody out`() throws {
    let fixture = try Fixture()
    let idle = try (0..<100).map { _ in try fixture.connect() }
    #expect(try fixture.connect().exchange("GET", "/")?.status == 200)
    withExtendedLifetime(idle) {}
  }
}
