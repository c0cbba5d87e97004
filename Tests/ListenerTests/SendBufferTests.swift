// SendBufferTests.swift -- a receiver that takes nothing does not affect the datagrams for others.

import CEvent
import CSocket
import EventLoop
import Glibc
import Listener
import Testing

@Suite struct `A datagram socket's room` {
  @Test func `send and receive buffer of a datagram socket have the same size`() throws {
    let socket = try UDPSocket(binding: #require(SocketAddress(text: "127.0.0.1:0")))
    func room(_ option: Int32) -> Int32 {
      var (octets, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
      getsockopt(socket.descriptor, SOL_SOCKET, option, &octets, &length)
      return octets
    }
    // Linux doubles the requested size for its overhead. Without the privilege the system's limit applies.
    let bound = try #require(systemBound)
    #expect(room(SO_SNDBUF) >= 2 * min(4 << 20, bound))
    #expect(room(SO_SNDBUF) == 8 << 20 || geteuid() != 0 || room(SO_RCVBUF) != 8 << 20)
  }

  /// net.core.wmem_max; nil if it cannot be read.
  private var systemBound: Int32? {
    guard let file = fopen("/proc/sys/net/core/wmem_max", "r") else { return 4096 }
    defer { fclose(file) }
    var text = [CChar](repeating: 0, count: 32)
    guard fgets(&text, 32, file) != nil else { return nil }
    return Int32(atoi(text))
  }

  @Test func `datagrams that one receiver refuses are skipped, and the rest of the batch is sent`() throws {
    let receivers = try (0..<2).map { _ in try Receiver() }
    let sender = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_CLOEXEC, 0)
    try #require(sender >= 0)
    defer { close(sender) }
    // The first receiver is full: its datagrams stay in the send buffer, as for a neighbour that does not answer.
    var filled = 0
    while receivers[0].send([0], from: sender) { filled += 1 }
    try #require(filled > 0 && errno == EAGAIN)
    let outbox = UDPOutbox(responseSize: 512)
    for number in 0..<10 as Range<UInt8> {
      for receiver in receivers {
        var peer = receiver.peer
        [number, 1].withUnsafeBufferPointer { outbox.add($0, through: sender, to: &peer) }
      }
    }
    outbox.flush()
    #expect(receivers[1].received == (0..<10).map { [$0, 1] })
    #expect(outbox.refused == 10)
  }
}

/// A local datagram socket.
private final class Receiver {
  let peer: datagram_peer
  private let descriptor: Int32

  init() throws {
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0)
    try #require(descriptor >= 0)
    self.descriptor = descriptor
    // The kernel chooses a name without a file.
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let outcome = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sa_family_t>.size))
      }
    }
    let bound = try #require(outcome == 0 ? SocketAddress(boundTo: descriptor) : nil)
    var peer = datagram_peer()
    peer.address = bound.storage
    peer.length = bound.length
    self.peer = peer
  }

  deinit { close(descriptor) }

  func send(_ octets: [UInt8], from sender: Int32) -> Bool {
    var address = peer.address
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(
          sender, octets, octets.count, Int32(MSG_DONTWAIT), __CONST_SOCKADDR_ARG(__sockaddr__: $0), peer.length)
      }
    } >= 0
  }

  /// The pending datagrams.
  var received: [[UInt8]] {
    var list: [[UInt8]] = []
    var buffer = [UInt8](repeating: 0, count: 64)
    while case let count = recv(descriptor, &buffer, buffer.count, 0), count >= 0 {
      list.append(Array(buffer[..<count]))
    }
    return list
  }
}
