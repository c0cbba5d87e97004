// RefreshHandOverTests.swift -- stale data over real sockets: answered at once, and handed over for a refresh.

import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import Listener
import MessageCache
import TestSupport
import Testing

@testable import Forwarder

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

  @Test func `over UDP is handed over once`() throws {
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

  @Test func `over TCP is refreshed by the resolver, and the next one has the fresh answer`() throws {
    let scene = try expiredScene()
    let loop = try EventLoop()
    let queries = ClientQueries(capacity: 10)
    let replies = ReplySender(queries, maxUDPPayload: 1232, keepalive: QueryPathScene.keepalive) { _, _, _ in
      Issue.record("a response over UDP to a client over TCP")
    }
    let settings = ResolverSettings(
      routes: ResolverScene.routes(providers: 1), maxInFlight: 10, cacheEnabled: true, nxdomainCut: true, staleTTL: 30,
      localTimeout: .seconds(1), longestFailureWait: .seconds(300))
    let upstream = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.77"), after: .milliseconds(1))
    }
    nonisolated(unsafe) let parts = ([upstream as any Upstream], replies)
    let resolver = Resolver(
      on: loop, settings: settings, cache: scene.cache, network: scene.network, upstreams: parts.0, local: nil,
      replies: parts.1
    ) { _, _ in }
    let service = TCPService(scene.tables, queries: queries, replies: replies, resolver: resolver)
    let table = TCPConnectionTable(limits: TCPLimits(connections: 10, perClient: 10, idle: .seconds(30)))
    let listener = try TCPListener(binding: #require(SocketAddress(text: "127.0.0.1:0")), on: loop, table: table) {
      service.accept($0, $1)
    }
    let client = try SocketClient(to: listener.address, Int32(SOCK_STREAM.rawValue))
    let query = RawQuery { $0.records = [opt()] }.octets
    client.send(words(UInt16(query.count)) + query)
    // The refresh takes a millisecond of the same loop's time; then the client asks again, and that is the end.
    loop.schedule(after: .milliseconds(50)) {
      client.send(words(UInt16(query.count)) + query)
      client.finish()
    }
    loop.everyTurn { if client.hasEnded { loop.stop() } }
    loop.schedule(after: .seconds(10)) { loop.stop() }
    loop.run()
    let messages = try client.framesReceived().map { try Message.parse($0) }
    #expect(messages.count == 2)
    expectStale(try #require(messages.first))
    expectFresh(try #require(messages.last), ["192.0.2.77"])
    #expect(upstream.count == 1)
    #expect(queries.inUse == 0)
    withExtendedLifetime((listener, service)) {}
  }
}
