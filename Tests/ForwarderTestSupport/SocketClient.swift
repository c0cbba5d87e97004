// SocketClient.swift -- a client over a real socket, for what is tried with a listener on loopback.

import CSocket
import EventLoop
import Glibc
import Testing

final class SocketClient {
  let descriptor: Int32
  private var received: [UInt8] = []

  init(to server: SocketAddress, _ type: Int32) throws {
    let descriptor = socket(server.family, type | Int32(SOCK_CLOEXEC.rawValue), 0)
    self.descriptor = descriptor
    let outcome = server.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) }
    try #require(outcome == 0)
  }

  convenience init(overTCP server: SocketAddress) throws { try self.init(to: server, Int32(SOCK_STREAM.rawValue)) }

  deinit { close(descriptor) }

  func send(_ octets: [UInt8]) { #expect(Glibc.send(descriptor, octets, octets.count, 0) == octets.count) }

  func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// The next datagram, waited for no longer than ten seconds.
  func receive() throws -> [UInt8] {
    var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    try #require(poll(&ready, 1, 10_000) == 1)
    var octets = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &octets, octets.count, 0)
    return Array(octets[..<max(0, count)])
  }

  /// Reads what is there without waiting; whether the server has closed.
  var hasEnded: Bool {
    var octets = [UInt8](repeating: 0, count: 65_536)
    while case let count = recv(descriptor, &octets, octets.count, Int32(MSG_DONTWAIT)), count >= 0 {
      guard count > 0 else { return true }
      received += octets[..<count]
    }
    return false
  }

  func framesReceived() -> [[UInt8]] {
    var frames: [[UInt8]] = []
    var rest = received[...]
    while rest.count >= 2 {
      let length = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
      frames.append(Array(rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    return frames
  }
}
