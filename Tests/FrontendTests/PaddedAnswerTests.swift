// PaddedAnswerTests.swift -- which answers of the query path and of the resolver are padded.

import DNSWire
import EventLoop
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver

private let name = "www.example.com"
private let overTLS = StreamOptions(keepalive: -1, isPadded: true)

@Suite struct `Padded answers` {
  private let asking = RawQuery { $0.records = [opt(option(12, [0]))] }

  private func scene(_ options: StreamOptions) throws -> QueryPathScene {
    let scene = try QueryPathScene(rules: [("ads.example", .nxDomain)])
    scene.path.options = options
    try scene.keep(name, [address(name, 1), address(name, 2)])
    return scene
  }

  private func length(_ scene: QueryPathScene, _ query: RawQuery, _ transport: QueryTransport) throws -> Int {
    guard case .reply(let octets) = scene.ask(query.octets, transport) else { return 0 }
    let hasPadding = try Message.parse(octets).edns?.option(.padding) != nil
    #expect(hasPadding == (octets.count == 468))
    return octets.count
  }

  @Test(arguments: [QueryTransport.dot, .doh])
  func `cached and local answers and refusals over TLS are padded for those who pad`(_ transport: QueryTransport) throws
  {
    let scene = try scene(overTLS)
    for query in [
      asking, RawQuery { ($0.name, $0.records) = (RawQuery.name("ads.example"), asking.records) },
      RawQuery { ($0.qclass, $0.records) = (3, asking.records) },
    ] {
      #expect(try length(scene, query, transport) == 468)
    }
    #expect(try length(scene, RawQuery { $0.records = [opt()] }, transport) < 120)
    #expect(try length(scene, RawQuery(), transport) < 120)
  }

  @Test func `answers over UDP are never padded, whatever the path's streams have`() throws {
    #expect(try length(scene(overTLS), asking, .udp) < 120)
  }

  @Test(arguments: QueryTransport.streams)
  func `without TLS no answer is padded`(_ transport: QueryTransport) throws {
    #expect(try length(scene(StreamOptions(keepalive: 150)), asking, transport) < 120)
  }

  @Test(.enabled(if: AllocationTrap.isAvailable), arguments: [QueryTransport.dot, .doh])
  func `padding allocates nothing`(_ transport: QueryTransport) throws {
    #expect(try scene(overTLS).allocations(for: asking.octets, transport) == .clean)
  }

  @Test(arguments: [overTLS, StreamOptions(keepalive: 150)])
  func `an answer of the resolver is padded by the options of its query's stream`(options: StreamOptions) throws {
    let queries = ClientQueries(capacity: 1)
    let replies = ReplySender(queries, on: SimulatedLoop(), maxUDPPayload: 1232) { _, _, _ in
      Issue.record("a response over UDP to a query over a stream")
    }
    let message = asking.octets
    var query = Query()
    #expect(QueryReader.read(message.span, into: &query) == .query)
    let slot = queries.take()
    queries.fill(
      slot, query, of: message, over: .dot, options: options, route: 0, rule: 0, receivedAt: 0, descriptor: -1)
    var sent: [[UInt8]] = []
    replies.sendOverStream = { response, _, _ in sent.append(Array(response)) }
    let owner = try #require(DomainName(text: name))
    let answer = try #require(ComposedResponse(.noError, to: owner, answers: [address(name, 1)]))
    var head = ResponseHead()
    (head.answers, head.bodyLength) = (1, answer.body.count)
    replies.complete(slot, head, body: answer.body, .asked(.cache))
    let reply = try #require(sent.first)
    #expect(sent.count == 1 && (reply.count == 468) == options.isPadded)
    #expect(try Message.parse(reply).addresses == ["192.0.2.1"])
    #expect(try (Message.parse(reply).edns?.option(.padding) != nil) == options.isPadded)
    #expect(queries.inUse == 0)
  }
}
