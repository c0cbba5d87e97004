// UDPListenerTests.swift -- batches of datagrams on loopback: senders, source addresses, refused datagrams.

import CEvent
import CSocket
import EventLoop
import Glibc
import Listener
import Testing

@Suite struct `A UDP listener` {
  @Test(arguments: ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"])
  func `the listener answers each datagram of many batches to its sender`(text: String) throws {
    let server = try EchoServer(text)
    let clients = try (0..<5).map { _ in try DatagramClient(to: server.address.onLoopback) }
    for round in 0..<40 {
      for (number, client) in clients.enumerated() { client.send([UInt8(round), UInt8(number), 3, 4]) }
    }
    server.echo(200)
    for (number, client) in clients.enumerated() {
      for round in 0..<40 { #expect(client.receive() == [UInt8(round), UInt8(number), 3, 4]) }
    }
    #expect(server.batches >= 4)
    #expect(server.listener.receive() == 0)
  }

  @Test(arguments: ["127.0.0.2", "127.1.2.3", "127.0.0.1"])
  func `a wildcard listener answers from the address that was queried`(asked: String) throws {
    let server = try EchoServer("0.0.0.0:0")
    let target = try #require(SocketAddress(text: "\(asked):\(server.address.port)"))
    let client = try DatagramClient(to: target, isConnected: false)
    client.send([1, 2, 3])
    server.echo(1)
    #expect(client.receive() == [1, 2, 3])
    #expect(client.lastSender == target)
    // A late reply, outside of a batch.
    client.send([4, 5, 6])
    server.awaitDatagrams()
    #expect(server.listener.receive() == 1)
    var peer = datagram_peer()
    server.listener.copyPeer(0, to: &peer)
    let outbox = UDPOutbox(responseSize: 512)
    outbox.add([7, 8], through: server.listener.descriptor, to: &peer)
    outbox.flush()
    #expect(client.receive() == [7, 8])
    #expect(client.lastSender == target)
  }

  @Test func `a late response over IPv6 reaches the copied peer`() throws {
    let server = try EchoServer("[::]:0")
    let target = try #require(SocketAddress(text: "[::1]:\(server.address.port)"))
    let client = try DatagramClient(to: target, isConnected: false)
    client.send([1])
    server.awaitDatagrams()
    #expect(server.listener.receive() == 1)
    var peer = datagram_peer()
    server.listener.copyPeer(0, to: &peer)
    let outbox = UDPOutbox(responseSize: 512)
    outbox.add([9], through: server.listener.descriptor, to: &peer)
    outbox.flush()
    #expect(client.receive() == [9])
    #expect(client.lastSender == target)
  }

  @Test func `the rest of a batch is sent if the kernel refuses one response as too long`() throws {
    let server = try EchoServer("127.0.0.1:0", responseSize: 70_000)
    let clients = try (0..<5).map { _ in try DatagramClient(to: server.address) }
    for client in clients { client.send([1, 2, 3]) }
    server.awaitDatagrams()
    #expect(server.listener.receive() == 5)
    for index in 0..<5 {
      server.listener.response().update(repeating: UInt8(index), count: 3)
      // No datagram over IPv4 has more than 65,507 octets.
      server.listener.reply(to: index, length: index == 0 || index == 2 || index == 4 ? 65_508 : 3)
    }
    #expect(server.listener.send() == 3)
    #expect(clients[1].receive() == [1, 1, 1])
    #expect(clients[3].receive() == [3, 3, 3])
    #expect(server.listener.send() == 0)
  }

  @Test(.enabled(if: geteuid() == 0, "a datagram from port 0 takes a raw socket"))
  func `the rest of a batch is sent if one sender has port 0`() throws {
    let server = try EchoServer("127.0.0.1:0")
    let clients = try (0..<2).map { _ in try DatagramClient(to: server.address) }
    clients[0].send([10])
    try sendFromPortZero([11], to: server.address)
    clients[1].send([12])
    server.awaitDatagrams()
    #expect(server.listener.receive() == 3)
    for index in 0..<3 { server.reply(index) }
    #expect(server.listener.send() == 1)
    #expect(clients[0].receive() == [10])
    #expect(clients[1].receive() == [12])
  }

  @Test func `the largest and an empty datagram are received completely`() throws {
    let server = try EchoServer("127.0.0.1:0")
    let client = try DatagramClient(to: server.address)
    let largest = (0..<65_507).map { UInt8(truncatingIfNeeded: $0) }
    client.send(largest)
    server.awaitDatagrams()
    try #require(server.listener.receive() == 1)
    #expect(Array(server.listener.query(0)) == largest)
    client.send([])
    client.send([5])
    server.awaitDatagrams()
    try #require(server.listener.receive() == 2)
    #expect(server.listener.query(0).isEmpty)
    #expect(Array(server.listener.query(1)) == [5])
  }

  @Test func `the listener returns the sender's address`() throws {
    let server = try EchoServer("127.0.0.1:0")
    let client = try DatagramClient(to: server.address)
    client.send([1])
    server.awaitDatagrams()
    #expect(server.listener.receive() == 1)
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    #expect(SocketAddress(storage: server.listener.sender(0).pointee, length: length) == client.address)
  }

  @Test func `the listener shares its socket with other threads, but not its port`() throws {
    let server = try EchoServer("127.0.0.1:0")
    let other = try UDPListener(on: server.listener.socket, responseSize: 512)
    let client = try DatagramClient(to: server.address)
    for number: UInt8 in 0..<100 { client.send([number]) }
    server.awaitDatagrams()
    #expect(server.listener.receive() == UDPListener.batchSize)
    #expect(other.receive() == 100 - UDPListener.batchSize)
    #expect(other.query(0).first == UInt8(UDPListener.batchSize))
    let error = #expect(throws: ListenError.self) { try UDPSocket(binding: server.address) }
    #expect(error?.code == EADDRINUSE)
  }

  @Test func `a UDP listener reports why it cannot listen`() {
    let error = #expect(throws: ListenError.self) {
      try UDPSocket(binding: SocketAddress(text: "192.0.2.1:53")!)
    }
    #expect(error?.reason == "udp 192.0.2.1:53: Cannot assign requested address")
  }
}

extension UDPOutbox {
  fileprivate func add(_ octets: [UInt8], through descriptor: Int32, to peer: UnsafePointer<datagram_peer>) {
    octets.withUnsafeBufferPointer { add($0, through: descriptor, to: peer) }
  }
}

@Suite struct `An outbox` {
  @Test func `an outbox sends many responses to many peers, through two sockets, in order`() throws {
    let servers = try (0..<2).map { _ in try EchoServer("127.0.0.1:0") }
    let clients = try (0..<3).map { try DatagramClient(to: servers[$0 % 2].address) }
    let outbox = UDPOutbox(responseSize: 8)
    var peers: [datagram_peer] = []
    for (number, client) in clients.enumerated() {
      let listener = servers[number % 2].listener
      client.send([0])
      servers[number % 2].awaitDatagrams()
      #expect(listener.receive() == 1)
      var peer = datagram_peer()
      listener.copyPeer(0, to: &peer)
      peers.append(peer)
    }
    // More than its capacity, so that it sends some before `flush`.
    for number: UInt8 in 0..<20 {
      for (index, _) in clients.enumerated() {
        outbox.add([number, UInt8(index)], through: servers[index % 2].listener.descriptor, to: &peers[index])
      }
    }
    outbox.flush()
    #expect(outbox.refused == 0)
    for (index, client) in clients.enumerated() {
      for number: UInt8 in 0..<20 { #expect(client.receive() == [number, UInt8(index)]) }
    }
  }

  @Test func `an outbox counts responses that are refused: to port 0, or too long`() throws {
    let server = try EchoServer("127.0.0.1:0")
    let outbox = UDPOutbox(responseSize: 8)
    var peer = datagram_peer()
    let nowhere = SocketAddress(octets: [127, 0, 0, 1], port: 0)!
    peer.address = nowhere.storage
    peer.length = nowhere.length
    outbox.add([1], through: server.listener.descriptor, to: &peer)
    outbox.add([UInt8](repeating: 0, count: 9), through: server.listener.descriptor, to: &peer)
    #expect(outbox.refused == 1)
    outbox.flush()
    #expect(outbox.refused == 2)
    outbox.flush()
    #expect(outbox.refused == 2)
  }
}

/// A listener that sends every datagram back.
private final class EchoServer {
  let listener: UDPListener
  private(set) var batches = 0

  var address: SocketAddress { listener.socket.address }

  init(_ text: String, responseSize: Int = 4096) throws {
    let socket = try UDPSocket(binding: #require(SocketAddress(text: text)))
    listener = try UDPListener(on: socket, responseSize: responseSize)
  }

  func awaitDatagrams() { awaitReadable(listener.descriptor) }

  func reply(_ index: Int) {
    let query = listener.query(index)
    listener.response().update(from: query.baseAddress!, count: query.count)
    listener.reply(to: index, length: query.count)
  }

  /// Sends that many datagrams back.
  func echo(_ count: Int) {
    var left = count
    while left > 0 {
      awaitDatagrams()
      let received = listener.receive()
      guard received > 0 else {
        Issue.record("\(left) datagrams are missing")
        return
      }
      #expect(received <= UDPListener.batchSize)
      for index in 0..<received { reply(index) }
      #expect(listener.send() == 0)
      batches += 1
      left -= received
    }
  }
}
