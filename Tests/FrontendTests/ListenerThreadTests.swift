// ListenerThreadTests.swift -- threads that share a socket: who reads, who helps, and that each of them ends.

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

@Suite struct `A listener thread` {
  private let scene: QueryPathScene
  private let socket: UDPSocket
  private let queries = ClientQueries(capacity: 512)
  private let loop: EventLoop

  init() throws {
    scene = try QueryPathScene()
    scene.storedAt = BootInstant.now.nanoseconds
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    socket = try UDPSocket(binding: #require(SocketAddress(text: "127.0.0.1:0")))
    loop = try EventLoop()
  }

  private func thread(_ role: ListenerThread.Role, helper: ListenerThread? = nil) throws -> ListenerThread {
    let listener = try UDPListener(on: socket, responseSize: 1232 + ResponseWriter.overhead)
    let path = QueryPath(scene.tables)
    return try ListenerThread(
      UDPPort(listener, path: path, queries: queries, resolverLoop: loop), role, helper: helper)
  }

  private func query(_ id: UInt16) -> [UInt8] {
    RawQuery {
      $0.id = id
      $0.name = RawQuery.name("www.example.com")
    }.octets
  }

  @Test func `a listener thread answers nothing after it was stopped`() throws {
    let thread = try thread(.first)
    try thread.start()
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    for id: UInt16 in 1...3 {
      client.send(query(id))
      #expect(try Message.parse(client.receive()).id == id)
    }
    thread.join()
    #expect(thread.stop())
    client.send(query(4))
    // Unread datagrams wait in the socket.
    let other = try UDPListener(on: socket, responseSize: 512)
    #expect(other.receive(waiting: true) == 1)
  }

  @Test func `a listener thread answers the longest query that a datagram can hold`() throws {
    let thread = try thread(.first)
    try thread.start()
    defer { thread.join() }
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    var octets = query(7)
    octets += [UInt8](repeating: 0xFF, count: 65_507 - octets.count)
    client.send(octets)
    let reply = try Message.parse(client.receive())
    #expect(reply.id == 7)
    #expect(reply.addresses == ["192.0.2.1"])
  }

  @Test(arguments: 0..<20)
  func `a waiting listener thread stops at once, in every attempt`(attempt: Int) throws {
    let helper = try thread(.helper)
    let first = try thread(.first, helper: helper)
    try helper.start()
    try first.start()
    first.join()
    helper.join()
    // Neither of them reads any more: what comes now waits in the socket.
    try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue)).send(query(1))
    #expect(try UDPListener(on: socket, responseSize: 512).receive(waiting: true) == 1)
  }

  @Test func `helpers share a backlog of more than a batch, and each query is answered once`() throws {
    let helper = try thread(.helper)
    let first = try thread(.first, helper: helper)
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    let count: UInt16 = 200
    for id in 0..<count { client.send(query(id)) }
    try helper.start()
    try first.start()
    var seen: Set<UInt16> = []
    for _ in 0..<count { seen.insert(try Message.parse(client.receive()).id) }
    #expect(seen.count == Int(count))
    first.join()
    helper.join()
  }

  @Test func `a waiting listener thread completes a turn when it is signalled`() throws {
    let helper = try thread(.helper)
    let first = try thread(.first, helper: helper)
    for thread in [first, helper] {
      let before = thread.turns
      thread.nudge()
      #expect(thread.turns == before, "it does not run yet")
    }
    try helper.start()
    try first.start()
    for thread in [first, helper] {
      for _ in 0..<3 {
        let before = thread.turns
        // A nudge is lost where it comes before the thread waits.
        let hasTurned = comes {
          thread.nudge()
          return thread.turns > before
        }
        #expect(hasTurned)
      }
      thread.join()
      thread.nudge()
    }
  }
}
