// AdoptionTests.swift -- sockets bound by another program, in the state in which it passes them.

import CEvent
import EventLoop
import Glibc
import Listener
import Testing

@Suite struct `A socket of another program` {
  /// A bound socket, not blocking, as systemd opens it.
  private func made(_ type: __socket_type, _ text: String) throws -> (descriptor: Int32, address: SocketAddress) {
    let address = try #require(SocketAddress(text: text))
    let descriptor = socket(address.family, Int32(type.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
    try #require(address.withSockaddr { bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) } == 0)
    return (descriptor, try #require(SocketAddress(boundTo: descriptor)))
  }

  @Test(arguments: ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"])
  func `an adopted UDP socket blocks, and answers from the address that was queried`(text: String) throws {
    let (descriptor, address) = try made(SOCK_DGRAM, text)
    let socket = try UDPSocket(adopting: descriptor, boundTo: address)
    #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK == 0)
    let listener = try UDPListener(on: socket, responseSize: 512)
    // [::] of another program may take IPv4 too.
    let hosts = text.hasPrefix("127") ? ["127.0.0.1"] : ["127.0.0.7", "127.0.0.1"]
    for host in hosts {
      let target = try #require(SocketAddress(text: "\(host):\(address.port)"))
      let client = try DatagramClient(to: target, isConnected: false)
      client.send([1, 2, 3])
      #expect(listener.receive(waiting: true) == 1)
      listener.response().update(repeating: 9, count: 3)
      listener.reply(to: 0, length: 3)
      #expect(listener.send() == 0)
      #expect(client.receive() == [9, 9, 9])
      #expect(client.lastSender == target)
    }
  }

  @Test func `an adopted TCP socket accepts connections, also those from before its adoption`() throws {
    let (descriptor, address) = try made(SOCK_STREAM, "127.0.0.1:0")
    try #require(listen(descriptor, 8) == 0)
    let waiting = try StreamClient(to: address)
    let loop = try EventLoop()
    let table = TCPConnectionTable(limits: TCPLimits(connections: 4, perClient: 4, idle: .seconds(30)))
    let listener = try TCPListener(adopting: descriptor, boundTo: address, on: loop, table: table) {
      connection, message in
      connection.send(message)
      // It is sent in the next turn.
      loop.execute { loop.execute { loop.stop() } }
    }
    waiting.send(frame(numbered(5)))
    loop.run()
    #expect(waiting.receive() == numbered(5))
    table.closeAll()
    withExtendedLifetime(listener) {}
  }

  @Test func `a descriptor that is not a socket is refused with the reason`() throws {
    let file = open("/dev/null", O_RDONLY | O_CLOEXEC)
    let address = try #require(SocketAddress(text: "127.0.0.1:53"))
    #expect { _ = try UDPSocket(adopting: file, boundTo: address) } throws: {
      ($0 as? ListenError)?.code == ENOTSOCK
    }
  }
}
