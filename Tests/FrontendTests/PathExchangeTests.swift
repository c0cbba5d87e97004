// PathExchangeTests.swift -- a listener thread that gets other tables while it waits or works.

import DNSWire
import EventLoop
import Glibc
import Listener
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `Other tables` {
  private let socket: UDPSocket
  private let loop: EventLoop

  init() throws {
    socket = try UDPSocket(binding: #require(SocketAddress(text: "127.0.0.1:0")))
    loop = try EventLoop()
  }

  private func tables(_ address: String) throws -> QueryTables {
    try QueryPathScene(rules: [("www.example.com", .pinned([try #require(IPAddress(text: address))]))]).tables
  }

  private func thread(
    _ tables: QueryTables, _ role: ListenerThread.Role = .first, helper: ListenerThread? = nil
  ) throws -> ListenerThread {
    let listener = try UDPListener(on: socket, responseSize: 1232 + ResponseWriter.overhead)
    return try ListenerThread(
      UDPPort(listener, path: QueryPath(tables), queries: ClientQueries(capacity: 8), resolverLoop: loop), role,
      helper: helper)
  }

  private func ask(_ client: SocketClient, _ id: UInt16) throws -> [String] {
    client.send(
      RawQuery {
        $0.id = id
        $0.name = RawQuery.name("www.example.com")
      }.octets)
    let reply = try Message.parse(client.receive())
    #expect(reply.id == id)
    return reply.addresses
  }

  /// Waits as the resolver does; false where a thread does not take them.
  private func haveTaken(_ threads: [ListenerThread]) -> Bool {
    comes { threads.allSatisfy { $0.hasTakenTables() } }
  }

  @Test func `waiting threads and sleeping helpers take new tables`() throws {
    let first = try tables("192.0.2.1")
    let helper = try thread(first, .helper)
    let threads = [helper, try thread(first, helper: helper)]
    for thread in threads { try thread.start() }
    defer { for thread in threads { thread.join() } }
    for number in 2...20 {
      let next = try tables("192.0.2.\(number)")
      for thread in threads { thread.offer(next) }
      #expect(haveTaken(threads))
    }
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    #expect(try ask(client, 1) == ["192.0.2.20"])
  }

  @Test func `new tables answer every query received after they were offered`() throws {
    let thread = try thread(tables("192.0.2.1"))
    try thread.start()
    defer { thread.join() }
    let client = try SocketClient(to: socket.address, Int32(SOCK_DGRAM.rawValue))
    #expect(try ask(client, 1) == ["192.0.2.1"])
    for number: UInt16 in 2...100 {
      thread.offer(try tables("192.0.2.\(number)"))
      #expect(try ask(client, number) == ["192.0.2.\(number)"])
      #expect(haveTaken([thread]))
    }
  }

  @Test func `the loop releases the old tables when no thread uses them`() throws {
    weak var old: RouteTable?
    let thread: ListenerThread
    do {
      let first = try tables("192.0.2.1")
      old = first.routes
      thread = try self.thread(first)
    }
    try thread.start()
    defer { thread.join() }
    #expect(old != nil)
    thread.offer(try tables("192.0.2.2"))
    #expect(haveTaken([thread]))
    #expect(old == nil)
  }

  @Test func `tables that were not taken are released with the thread`() throws {
    weak var offered: RouteTable?
    do {
      let thread = try thread(tables("192.0.2.1"))
      try thread.start()
      thread.join()
      let next = try tables("192.0.2.2")
      offered = next.routes
      thread.offer(next)
      #expect(thread.hasTakenTables())
    }
    #expect(offered == nil)
  }
}
