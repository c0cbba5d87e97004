// DatagramClient.swift -- the client end of UDP: a blocking socket, and forged senders.

import CEvent
import EventLoop
import Glibc
import Listener
import Testing

/// Waits until the descriptor is readable, for at most ten seconds.
func awaitReadable(_ descriptor: Int32) {
  var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
  #expect(Glibc.poll(&poll, 1, 10_000) == 1, "nothing came")
}

/// A UDP socket. No call waits longer than ten seconds.
final class DatagramClient {
  /// The client's own address.
  let address: SocketAddress
  /// The sender of the last received datagram.
  private(set) var lastSender: SocketAddress?
  private let descriptor: Int32
  private let server: SocketAddress
  private let isConnected: Bool

  init(to server: SocketAddress, isConnected: Bool = true) throws {
    self.server = server
    self.isConnected = isConnected
    let descriptor = socket(server.family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.descriptor = descriptor
    let any = try #require(SocketAddress(octets: server.octets.map { _ in 0 }, port: 0))
    let local = isConnected ? server : any
    let outcome = local.withSockaddr {
      isConnected
        ? connect(descriptor, .init(__sockaddr__: $0), $1) : bind(descriptor, .init(__sockaddr__: $0), $1)
    }
    try #require(outcome == 0)
    address = try #require(SocketAddress(boundTo: descriptor))
  }

  deinit { close(descriptor) }

  func send(_ octets: [UInt8]) {
    let sent =
      isConnected
      ? Glibc.send(descriptor, octets, octets.count, 0)
      : server.withSockaddr { sendto(descriptor, octets, octets.count, 0, .init(__sockaddr__: $0), $1) }
    #expect(sent == octets.count)
  }

  /// The next datagram; nil if none arrives.
  func receive() -> [UInt8]? {
    awaitReadable(descriptor)
    var octets = [UInt8](repeating: 0, count: 65_536)
    var sender = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let count = withUnsafeMutablePointer(to: &sender) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        recvfrom(descriptor, &octets, octets.count, Int32(MSG_DONTWAIT), .init(__sockaddr__: $0), &length)
      }
    }
    guard count >= 0 else { return nil }
    lastSender = SocketAddress(storage: sender, length: length)
    return Array(octets[..<count])
  }
}

extension SocketAddress {
  /// The address at which a client reaches a socket bound to this one.
  var onLoopback: SocketAddress {
    guard octets.allSatisfy({ $0 == 0 }) else { return self }
    return SocketAddress(octets: octets.count == 4 ? [127, 0, 0, 1] : octets.dropLast() + [1], port: port)!
  }
}

/// Sends a datagram that claims to come from port 0 of the same address, to which nothing can be sent back.
func sendFromPortZero(_ octets: [UInt8], to server: SocketAddress) throws {
  let descriptor = socket(AF_INET, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), Int32(IPPROTO_UDP))
  defer { close(descriptor) }
  let length = UInt16(8 + octets.count)
  let header = [0, server.port, length, 0].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
  let packet = header + octets
  let target = try #require(SocketAddress(octets: server.octets, port: 0))
  let sent = target.withSockaddr { sendto(descriptor, packet, packet.count, 0, .init(__sockaddr__: $0), $1) }
  try #require(sent == packet.count)
}
