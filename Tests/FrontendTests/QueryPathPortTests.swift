// QueryPathPortTests.swift -- the query path behind real sockets: a UDP port, the queue to the resolver, TCP.

import DNSWire
import EventLoop
import Glibc
import Listener
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The queue to the resolver` {
  @Test func `the queue to the resolver has its number of slots, each only once`() {
    let queries = ClientQueries(capacity: 100)
    let slots = (0..<100).map { _ in queries.take() }
    #expect(Set(slots) == Set(0..<100))
    #expect(queries.take() == -1)
    #expect(queries.inUse == 100)
    for slot in slots[..<50] { queries.release(slot) }
    #expect(queries.inUse == 50)
    #expect(Set((0..<50).map { _ in queries.take() }) == Set(slots[..<50]))
    #expect(queries.take() == -1)
  }

  @Test func `the queue to the resolver delivers each query once and in order`() {
    let queries = ClientQueries(capacity: 10)
    let slots = (0..<10).map { _ in queries.take() }
    for slot in slots.reversed() { queries.submit(slot) }
    var batch = [99]
    queries.drain(into: &batch)
    #expect(batch == slots.reversed())
    queries.drain(into: &batch)
    #expect(batch.isEmpty)
  }

  @Test func `the queue to the resolver retains header and question up to the longest name`() throws {
    let queries = ClientQueries(capacity: 3)
    let labels = [UInt8](repeating: 1, count: 254) + [0]
    let messages = [labels, RawQuery.name("www.example.com"), [0]].map { name in
      RawQuery {
        $0.name = name
        $0.records = [opt(option(10, [1, 2, 3, 4, 5, 6, 7, 8]))]
      }.octets
    }
    var slots: [Int] = []
    for (number, message) in messages.enumerated() {
      var query = Query()
      #expect(QueryReader.read(message.span, into: &query) == .query)
      slots.append(queries.take())
      queries.fill(
        slots[number], query, of: message, over: .udp, route: UInt16(number), rule: 0, receivedAt: Int64(number),
        descriptor: Int32(number))
    }
    for (number, message) in messages.enumerated() {
      let entry = queries.slots[slots[number]]
      let kept = UnsafeBufferPointer(start: queries.message(slots[number]), count: entry.query.questionEnd)
      #expect(kept.elementsEqual(message[..<(message.count - 11 - 12)]))
      #expect((entry.route, entry.receivedAt, entry.descriptor) == (UInt16(number), Int64(number), Int32(number)))
    }
  }
}

@Suite struct `A UDP port` {
  @Test func `a UDP port answers hits, hands misses over, and refuses queries without a slot`() throws {
    let scene = try QueryPathScene()
    scene.storedAt = BootInstant.now.nanoseconds
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    let socket = try UDPSocket(binding: #require(SocketAddress(text: "127.0.0.1:0")))
    let listener = try UDPListener(on: socket, responseSize: 1232 + ResponseWriter.overhead)
    let resolverLoop = try EventLoop()
    let queries = ClientQueries(capacity: 2)
    let port = UDPPort(listener, path: scene.path, queries: queries, resolverLoop: resolverLoop)
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    for id: UInt16 in 1...6 {
      client.send(
        RawQuery {
          $0.id = id
          $0.name = RawQuery.name(id % 2 == 0 ? "www.example.com" : "miss\(id).example.com")
          $0.records = [opt()]
        }.octets)
    }
    client.send(RawQuery { $0.flags |= 0x8000 }.octets)
    #expect(!port.serve(waiting: false) { Issue.record("seven queries are no full batch") })
    // 1 and 3 wait in the two slots; 5 came too late.
    let replies = try (0..<4).map { _ in try Message.parse(client.receive()) }
    #expect(replies.map(\.id) == [2, 4, 5, 6])
    #expect(replies.map(\.responseCode) == [.noError, .noError, .servFail, .noError])
    #expect(replies[2].extendedError == .other)
    var waiting: [Int] = []
    queries.drain(into: &waiting)
    #expect(waiting.map { queries.slots[$0].query.id } == [1, 3])
    #expect(waiting.allSatisfy { queries.slots[$0].descriptor == listener.descriptor && queries.slots[$0].route == 0 })
    #expect(waiting.allSatisfy { queries.slots[$0].receivedAt > 0 })
    // The resolver was woken: its loop makes a turn although nothing else happens to it.
    resolverLoop.everyTurn { resolverLoop.stop() }
    resolverLoop.schedule(after: .seconds(10)) { Issue.record("the resolver was not woken") }
    resolverLoop.run()
    // A reply that comes later reaches the client.
    let outbox = UDPOutbox(responseSize: 1232 + ResponseWriter.overhead)
    let replySender = ReplySender(queries, on: resolverLoop, maxUDPPayload: 1232) {
      outbox.add($0, through: $1, to: $2)
    }
    replySender.send(UpstreamFailure(.networkError, "unreachable", .nextServer), to: waiting[1])
    outbox.flush()
    let late = try Message.parse(client.receive())
    #expect(late.id == 3)
    #expect(late.extendedError == .networkError)
    #expect(queries.inUse == 1)
  }
}

@Suite struct `The TCP frontend` {
  @Test func `the TCP frontend answers hits at once, misses through the resolver, and drops responses`() throws {
    let scene = try QueryPathScene()
    scene.storedAt = BootInstant.now.nanoseconds
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    try scene.keep("big.example.com", [text("big.example.com", octets: 5120)])
    let tcp = try TCPScene(scene)
    tcp.send([
      RawQuery {
        $0.id = 1; $0.name = RawQuery.name("Miss.example.com"); $0.records = [opt(option(11))]
      },
      RawQuery {
        $0.id = 2; $0.flags |= 0x8000
      },
      RawQuery { $0.id = 3 },
      RawQuery {
        $0.id = 4; $0.name = RawQuery.name("big.example.com"); $0.type = 16
      },
      RawQuery {
        $0.id = 5; $0.type = 252
      },
    ])
    tcp.client.finish()
    let messages = try tcp.messages()
    #expect(messages.map(\.id) == [3, 4, 5, 1])
    #expect(messages.map(\.responseCode) == [.noError, .noError, .refused, .noError])
    #expect(messages[1].answers[0].rdata.count == 5120)
    #expect(messages[3].answers.map(\.rdata) == [[192, 0, 2, 77]])
    #expect(messages[3].questions[0].question.name.octets == RawQuery.name("Miss.example.com"))
    #expect(messages[3].edns?.option(.tcpKeepalive) == [0, UInt8(QueryPathScene.keepalive)])
    #expect(tcp.queries.inUse == 0)
    #expect(tcp.table.count == 0)
  }
}
