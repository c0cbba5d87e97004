// TCPLimitTests.swift -- idle connections, too many connections, clients that never read, and leaks.

import CEvent
import EventLoop
import Glibc
import Listener
import Testing

@Suite struct `A TCP listener` {
  @Test(arguments: [[], [0], frame(numbered(1, octets: 40)).dropLast()] as [[UInt8]])
  func `the listener closes an idle connection, also in the middle of a message`(beginning: [UInt8]) throws {
    let server = try StreamServer(.echo, limits: TCPLimits(connections: 10, perClient: 10, idle: .milliseconds(20)))
    let client = try StreamClient(to: server.address)
    client.send(beginning)
    #expect(client.end() == .closed)
    #expect(server.until { $0.table.count == 0 })
  }

  @Test func `a connection with a query in flight is not closed as idle`() throws {
    let server = try StreamServer(.hold, limits: TCPLimits(connections: 10, perClient: 10, idle: .milliseconds(20)))
    let client = try StreamClient(to: server.address)
    client.send(frame(numbered(1)))
    try #require(server.awaitHeld(1))
    // A later idle connection is closed before it, although the first one's timeout has passed too.
    for _ in 0..<3 { #expect(try StreamClient(to: server.address).end() == .closed) }
    server.onLoop { $0.held[0].connection.answer(numbered(1)) }
    #expect(client.receive() == numbered(1))
    #expect(client.end() == .closed)
  }

  @Test func `a client's connection above its limit is refused until another one ends`() throws {
    let server = try StreamServer(.hold, limits: TCPLimits(connections: 10, perClient: 2, idle: .seconds(30)))
    let first = try StreamClient(to: server.address)
    var second: StreamClient? = try StreamClient(to: server.address)
    first.send(frame(numbered(1)))
    second?.send(frame(numbered(2)))
    try #require(server.awaitHeld(2))
    server.onLoop { $0.mode = .echo }
    let third = try StreamClient(to: server.address)
    #expect(third.end() != .timeout)
    #expect(server.onLoop { $0.table.refused } == 1)
    let other = try StreamClient(to: server.address, from: "127.0.0.2")
    #expect(server.until { $0.table.count == 3 })
    second?.finish()
    server.onLoop { server in
      for (connection, message) in server.held where message == numbered(2) { connection.answer(message) }
    }
    #expect(second?.receive() == numbered(2))
    second = nil
    #expect(server.until { $0.table.count == 2 })
    let fourth = try StreamClient(to: server.address)
    for client in [other, fourth] {
      client.send(frame(numbered(9)))
      #expect(client.receive() == numbered(9))
    }
  }

  @Test func `a client that never reads does not fill memory, and is closed as idle`() throws {
    let limits = TCPLimits(connections: 10, perClient: 10, idle: .milliseconds(250))
    let server = try StreamServer(.answer(octets: 60_000), limits: limits)
    let client = try StreamClient(to: server.address, receiveBuffer: 4096)
    let queries = (0..<2000).flatMap { frame(numbered($0)) }
    var sent = 0
    while sent < queries.count, case let count = client.sendWithoutWaiting(Array(queries[sent...])), count > 0 {
      sent += count
    }
    // 2000 answers have 120 MB; the kernel buffers a few MB per connection.
    #expect(server.until { $0.count > 0 && $0.table.count == 0 })
    #expect(server.onLoop { $0.count } * 60_000 < 16 << 20)
  }

  @Test func `a client that reads none of many answers is closed, and others are served`() throws {
    let server = try StreamServer(.hold)
    let (deaf, other) = try (StreamClient(to: server.address, receiveBuffer: 4096), StreamClient(to: server.address))
    let most = 256
    deaf.send((0..<most).flatMap { frame(numbered($0)) })
    try #require(server.awaitHeld(most))
    other.send((0..<most).flatMap { frame(numbered($0)) })
    try #require(server.awaitHeld(2 * most))
    let octets = 60_000
    var taken = 0
    for number in 0..<most {
      let isOpen = server.onLoop { server in
        for index in [number, most + number] { server.held[index].connection.answer(numbered(number, octets: octets)) }
        return server.held[number].connection.isOpen
      }
      if isOpen { taken += 1 }
      #expect(other.receive() == numbered(number, octets: octets))
    }
    // 4 MiB, and the kernel's buffers.
    #expect(taken * octets > 3 << 20)
    #expect(taken * octets < 12 << 20)
    #expect(server.onLoop { $0.table.count } == 1)
    other.send(frame(numbered(9)))
    #expect(server.awaitHeld(2 * most + 1))
  }

  @Test func `the listener leaks no descriptor over 10,000 connections`() throws {
    let limits = TCPLimits(connections: 2000, perClient: 2000, idle: .seconds(30))
    let server = try StreamServer(.echo, limits: limits)
    var refused = 0
    for cycle in 0..<10_000 {
      let client = try StreamClient(to: server.address)
      switch cycle % 20 {
      case 0:
        client.send(frame(numbered(cycle)))
        if client.receive() != numbered(cycle) { refused += 1 }
      case 1: client.send([0, 12, 1])
      case 2: client.finish()
      default: break
      }
      // Avoids TIME-WAIT, which would use up the ports of other tests.
      client.reset()
      if cycle % 100 == 99 { _ = server.onLoop { $0.count } }
    }
    #expect(refused == 0)
    // A connection may wait in the backlog while the table is empty.
    #expect(server.until { $0.table.count == 0 && descriptors(at: $0.address) == 1 })
    let after = try StreamClient(to: server.address)
    after.send(frame(numbered(1)))
    #expect(after.receive() == numbered(1))
  }

  @Test func `a stopped listener accepts no new connection and serves open ones`() throws {
    let server = try StreamServer(.echo)
    let old = try StreamClient(to: server.address)
    #expect(server.until { $0.table.count == 1 })
    server.onLoop { $0.stopListening() }
    _ = try StreamClient(to: server.address)
    old.send(frame(numbered(1)))
    #expect(old.receive() == numbered(1))
    #expect(server.onLoop { $0.table.count } == 1)
  }

  @Test func `the listener closes its socket and its connections on deinit`() throws {
    var server: StreamServer? = try StreamServer(.hold)
    let address = try #require(server).address
    let client = try StreamClient(to: address)
    client.send(frame(numbered(1)))
    #expect(server?.awaitHeld(1) == true)
    server?.onLoop { $0.table.closeAll() }
    #expect(client.end() != .timeout)
    server?.stop()
    server = nil
    #expect(descriptors(at: address) == 0)
  }

  @Test func `a TCP listener reports why it cannot listen`() throws {
    let server = try StreamServer(.echo)
    let loop = try EventLoop()
    let table = TCPConnectionTable(limits: TCPLimits(connections: 1, perClient: 1, idle: .seconds(1)))
    let error = #expect(throws: ListenError.self) {
      try TCPListener(binding: server.address, on: loop, table: table) { _, _ in }
    }
    #expect(error?.reason == "tcp \(server.address): Address already in use")
  }

  /// How many of this process's TCP sockets have that local address; another test's UDP socket may have its port.
  private func descriptors(at address: SocketAddress) -> Int {
    let highest = sysconf(Int32(_SC_OPEN_MAX))
    return (0..<Int32(min(highest, 4096))).count { descriptor in
      var type: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0
        && type == Int32(SOCK_STREAM.rawValue) && SocketAddress(boundTo: descriptor) == address
    }
  }
}
