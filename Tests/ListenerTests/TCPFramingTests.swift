// TCPFramingTests.swift -- messages in any split, answers in any order, and both ends of a connection's life.

import EventLoop
import Listener
import TestSupport
import Testing

@Suite struct `A TCP connection` {
  @Test(arguments: ["127.0.0.1:0", "[::1]:0"]) func `a TCP connection takes five queries in one segment`(
    text: String
  ) throws {
    let server = try StreamServer(.echo, at: text)
    let client = try StreamClient(to: server.address)
    client.send((0..<5).flatMap { frame(numbered($0, octets: 12 + $0)) })
    for number in 0..<5 { #expect(client.receive() == numbered(number, octets: 12 + number)) }
  }

  @Test func `a TCP connection takes a query octet by octet`() throws {
    let server = try StreamServer(.echo)
    let client = try StreamClient(to: server.address)
    for octet in frame(numbered(1, octets: 33)) + frame(numbered(2)) {
      client.send([octet])
      // The loop has turned before the next octet is sent.
      _ = server.onLoop { $0.count }
    }
    #expect(client.receive() == numbered(1, octets: 33))
    #expect(client.receive() == numbered(2))
  }

  @Test func `a TCP connection takes messages of 12 to 65,535 octets in random splits`() throws {
    var random = SeededGenerator(seed: testSeed)
    let server = try StreamServer(.echo)
    let client = try StreamClient(to: server.address)
    for round in 0..<20 {
      let sizes =
        [12, 65_535] + (0..<6).map { _ in Int.random(in: 12...(random.oneIn(4) ? 65_535 : 600), using: &random) }
      let messages = sizes.shuffled(using: &random).enumerated().map { numbered(round * 8 + $0, octets: $1) }
      var stream = messages.flatMap(frame)[...]
      while !stream.isEmpty {
        let piece = stream.prefix(Int.random(in: 1...(random.oneIn(2) ? 10 : 100_000), using: &random))
        client.send(Array(piece))
        stream = stream.dropFirst(piece.count)
        // Answers must not accumulate on both sides.
        if random.oneIn(20) { _ = server.onLoop { $0.count } }
      }
      for message in messages {
        guard client.receive() == message else {
          Issue.record("round \(round)")
          return
        }
      }
    }
  }

  @Test(arguments: 0..<12) func `a message too short for a header closes the TCP connection`(length: Int) throws {
    let server = try StreamServer(.echo)
    let client = try StreamClient(to: server.address)
    client.send(frame(numbered(1)))
    #expect(client.receive() == numbered(1))
    client.send(frame([UInt8](repeating: 0, count: length)) + frame(numbered(2)))
    #expect(client.end() != .timeout)
    #expect(server.until { $0.table.count == 0 })
    #expect(server.onLoop { $0.count } == 1)
  }

  @Test func `a TCP connection sends answers in the order in which they are ready`() throws {
    let server = try StreamServer(.hold)
    let client = try StreamClient(to: server.address)
    client.send((0..<100).flatMap { frame(numbered($0)) })
    try #require(server.awaitHeld(100))
    server.onLoop { server in
      for (connection, message) in server.held.reversed() { connection.answer(message) }
    }
    for number in (0..<100).reversed() { #expect(client.receive() == numbered(number)) }
  }

  @Test func `a TCP connection answers queries in flight after the client's FIN, then closes`() throws {
    let server = try StreamServer(.hold)
    let client = try StreamClient(to: server.address)
    client.send((0..<3).flatMap { frame(numbered($0)) })
    client.finish()
    try #require(server.awaitHeld(3))
    for number in [1, 0, 2] {
      server.onLoop { $0.held[number].connection.answer($0.held[number].message) }
      #expect(client.receive() == numbered(number))
    }
    #expect(client.end() == .closed)
    #expect(server.until { $0.table.count == 0 })
  }

  @Test(arguments: [false, true]) func `a TCP connection answers more queries than may be in flight`(
    withFIN: Bool
  ) throws {
    let server = try StreamServer(.hold)
    let client = try StreamClient(to: server.address)
    client.send((0..<1000).flatMap { frame(numbered($0)) })
    if withFIN { client.finish() }
    try #require(server.awaitHeld(256))
    for _ in 0..<5 { #expect(server.onLoop { $0.held.count } == 256) }
    server.onLoop { server in
      server.mode = .echo
      for (connection, message) in server.held { connection.answer(message) }
    }
    for number in 0..<1000 {
      guard client.receive() == numbered(number) else {
        Issue.record("no answer to query \(number)")
        return
      }
    }
    if withFIN { #expect(client.end() == .closed) }
  }

  @Test func `a TCP connection continues after a discarded query, and closes after the FIN`() throws {
    let server = try StreamServer(.discard)
    let client = try StreamClient(to: server.address)
    client.send((0..<1000).flatMap { frame(numbered($0)) })
    #expect(server.until { $0.count == 1000 })
    server.onLoop { $0.mode = .echo }
    client.send(frame(numbered(7)))
    #expect(client.receive() == numbered(7))
    client.finish()
    #expect(client.end() == .closed)
  }

  @Test func `a TCP connection resumes reading when queries are discarded`() throws {
    let server = try StreamServer(.hold)
    let client = try StreamClient(to: server.address)
    client.send((0..<300).flatMap { frame(numbered($0)) })
    try #require(server.awaitHeld(256))
    server.onLoop { server in
      server.mode = .echo
      for (connection, _) in server.held { connection.discard() }
    }
    for number in 256..<300 { #expect(client.receive() == numbered(number)) }
  }

  @Test func `answers on a closed or reset TCP connection have no effect`() throws {
    let server = try StreamServer(.close)
    let closed = try StreamClient(to: server.address)
    closed.send(frame(numbered(1)) + frame(numbered(2)))
    #expect(closed.end() != .timeout)
    #expect(server.onLoop { $0.count } == 1)
    server.onLoop { $0.mode = .hold }
    var client: StreamClient? = try StreamClient(to: server.address)
    client?.send(frame(numbered(1)) + frame(numbered(2)))
    try #require(server.awaitHeld(2))
    client?.reset()
    client = nil
    #expect(server.until { $0.table.count == 0 })
    server.onLoop { server in
      for (connection, message) in server.held {
        #expect(!connection.isOpen)
        connection.answer(message)
        connection.discard()
        connection.drain()
        connection.close()
      }
    }
  }

  @Test func `a draining TCP connection answers queries in flight and takes no new ones`() throws {
    let server = try StreamServer(.hold)
    let busy = try StreamClient(to: server.address)
    let idle = try StreamClient(to: server.address)
    busy.send(frame(numbered(1)))
    idle.send(frame(numbered(2)))
    try #require(server.awaitHeld(2))
    server.onLoop { server in
      let position = server.held.firstIndex { $0.message == numbered(2) }!
      server.held.remove(at: position).connection.answer(numbered(2))
    }
    #expect(idle.receive() == numbered(2))
    server.onLoop { $0.table.drain() }
    #expect(idle.end() == .closed)
    busy.send(frame(numbered(3)))
    server.onLoop { $0.held[0].connection.answer(numbered(1)) }
    #expect(busy.receive() == numbered(1))
    #expect(busy.end() != .timeout)
    #expect(server.onLoop { $0.count } == 2)
  }
}
