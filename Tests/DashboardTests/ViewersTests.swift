// ViewersTests.swift -- a page that does not read is cut off.

import EventLoop
import HTTPServer
import HTTPTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Dashboard

@Suite struct `Open pages` {
  /// Pages of a server on a loop of its own.
  private final class Scene: @unchecked Sendable {
    let loop: EventLoop
    let address: SocketAddress
    let count = Mutex(0)
    private let viewers: Viewers
    private let server: HTTPServer
    private let thread: LoopThread

    init() throws {
      let loop = try EventLoop()
      let viewers = Viewers(on: loop)
      server = HTTPServer(on: loop) { _ = viewers.begin($1, PageRequest.streamFields, nil) }
      address = try server.listen(on: #require(SocketAddress(text: "127.0.0.1:0")))
      (self.loop, self.viewers) = (loop, viewers)
      thread = LoopThread(running: loop)
    }

    deinit { thread.join() }

    func send(_ event: [UInt8]) {
      loop.execute { [self] in
        viewers.sendToAll(event)
        count.withLock { $0 = viewers.count }
      }
    }
  }

  @Test func `a page that leaves 64 KiB unread is cut off`() throws {
    let scene = try Scene()
    let client = try #require(RawClient(to: scene.address))
    client.send("GET /dashboard/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(client.response(toHead: true)?.status == 200)
    #expect(
      comes {
        scene.send(Array(":\n\n".utf8))
        return scene.count.withLock { $0 == 1 }
      })
    let event = PageEvent.event("sample", String(repeating: "x", count: 50_000))
    // The kernel's buffers take some of it.
    #expect(
      comes {
        scene.send(event)
        return scene.count.withLock { $0 == 0 }
      })
    #expect(client.end() == .reset)
  }
}
