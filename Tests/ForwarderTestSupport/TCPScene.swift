// TCPScene.swift -- the TCP service behind a real socket, with a client, a resolver, and one upstream.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import Listener
import TestSupport
import Testing

@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// What a query path's scene becomes when its queries come over TCP. Whatever is asked upstream is answered with
/// 192.0.2.77, in a millisecond.
final class TCPScene {
  let loop: EventLoop
  let queries = ClientQueries(capacity: 10)
  let upstream: ScriptedUpstream
  let table = TCPConnectionTable(limits: TCPLimits(connections: 10, perClient: 10, idle: .seconds(15)))
  let client: SocketClient
  /// Questions that have been sent upstream and not answered yet.
  var questionsInFlight: Int { resolver.assumeIsolated { $0.questionsInFlight } }
  private let resolver: Resolver
  private let service: StreamFrontend
  private let listener: TCPListener

  init(_ scene: QueryPathScene) throws {
    loop = try EventLoop()
    let replies = ReplySender(
      queries, on: loop, maxUDPPayload: 1232
    ) { _, _, _ in
      Issue.record("a response over UDP to a client over TCP")
    }
    var settings = ResolverSettings(Configuration(), ResolverScene.routes(providers: 1))
    settings.listen.maxInFlight = 10
    (settings.listen.missesPerClient, settings.listen.missesPerDomain) = (0, 0)
    upstream = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.77"), after: .milliseconds(1))
    }
    nonisolated(unsafe) let parts = ([upstream as any Upstream], replies)
    let resolver = Resolver(
      on: loop, settings: settings, cache: scene.cache, network: scene.network, upstreams: parts.0, local: nil,
      replies: parts.1
    ) { _, _ in }
    self.resolver = resolver
    let service = StreamFrontend(
      scene.tables, queries: queries, loop: loop, counters: scene.path.counters
    ) { slot in
      resolver.assumeIsolated { $0.accept(slot) }
    }
    replies.sendOverStream = { response, _, ticket in service.deliver(response, for: ticket) }
    self.service = service
    listener = try TCPListener(binding: #require(SocketAddress(text: "127.0.0.1:0")), on: loop, table: table) {
      service.accept($0, $1)
    }
    client = try SocketClient(overTCP: listener.address)
  }

  /// The client sends queries in one go.
  func send(_ queries: [RawQuery]) {
    client.send(queries.flatMap { words(UInt16($0.octets.count)) + $0.octets })
  }

  /// Runs the loop until the client, which has to have said that it is finished, has read the end of what is answered.
  func messages() throws -> [Message] {
    // The end may reach the client when nothing happens at the server any more.
    let reader = LoopEvent(on: loop, descriptor: client.descriptor, .read) { [loop, client] _ in
      if client.hasEnded { loop.stop() }
    }
    loop.schedule(after: .seconds(10)) { [loop] in loop.stop() }
    withExtendedLifetime(reader) { loop.run() }
    return try client.framesReceived().map { try Message.parse($0) }
  }
}
