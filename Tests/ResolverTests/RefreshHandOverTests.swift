// RefreshHandOverTests.swift -- stale data over real sockets: answered at once, and handed over for a refresh.

import DNSWire
import EventLoop
import Glibc
import Listener
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A query that is answered with stale data` {
  private func expiredScene() throws -> QueryPathScene {
    let scene = try QueryPathScene()
    let www = "www.example.com"
    let response = try #require(ComposedResponse(.noError, to: name(www), answers: [address(www, 1)]))
    var life = EntryLife(lifetime: 1)
    life.staleFor = 3600
    life.isServedStale = true
    scene.storedAt = BootInstant.now.nanoseconds - 2_000_000_000
    scene.keep(www, life: life, response)
    return scene
  }

  @Test func `a stale answer over UDP hands one refresh over`() throws {
    let scene = try expiredScene()
    let socket = try UDPSocket(binding: #require(SocketAddress(text: "127.0.0.1:0")))
    let listener = try UDPListener(on: socket, responseSize: 1232 + ResponseWriter.overhead)
    let queries = ClientQueries(capacity: 10)
    let port = UDPPort(listener, path: scene.path, queries: queries, resolverLoop: try EventLoop())
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    for id: UInt16 in 1...3 {
      client.send(
        RawQuery {
          $0.id = id; $0.records = [opt()]
        }.octets)
    }
    #expect(!port.serve(waiting: false) {})
    for id: UInt16 in 1...3 {
      let message = try Message.parse(client.receive())
      #expect(message.id == id)
      expectStale(message)
    }
    var waiting: [Int] = []
    queries.drain(into: &waiting)
    #expect(waiting.map { queries.slots[$0].wantsAnswer } == [false])
    #expect(queries.inUse == 1)
  }

  @Test func `a stale answer over TCP is refreshed, and the next query gets the fresh one`() throws {
    let scene = try expiredScene()
    let tcp = try TCPScene(scene)
    let query = RawQuery { $0.records = [opt()] }
    tcp.send([query])
    // The client asks again when the fresh answer is in the cache, and then closes its side.
    nonisolated(unsafe) let shared = tcp
    Task(executorPreference: tcp.loop) {
      _ = await shared.loop.until { shared.upstream.count == 1 && shared.questionsInFlight == 0 }
      shared.send([query])
      shared.client.finish()
    }
    let messages = try tcp.messages()
    #expect(messages.count == 2)
    expectStale(try #require(messages.first))
    expectFresh(try #require(messages.last), ["192.0.2.77"])
    #expect(tcp.upstream.count == 1)
    #expect(tcp.queries.inUse == 0)
  }
}
