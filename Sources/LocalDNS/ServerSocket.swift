// ServerSocket.swift -- a UDP or TCP socket that is connected to one resolver. Loop's thread only.

import DNSWire
import EventLoop
import Glibc

/// Carries messages to one resolver and back. `close` ends its events.
package protocol ServerSocket: AnyObject {
  /// Sends a message. A failure is reported as an event.
  func send(_ message: [UInt8])
  func close()
}

/// What happens on a socket.
package enum SocketEvent {
  /// A whole message from the resolver; valid during the call.
  case message(ArraySlice<UInt8>)
  /// The socket is useless from now on.
  case failure(LocalDNSFailure)
}

/// Opens sockets. `KernelSockets` uses the network, a laboratory of tests does not.
package protocol ServerSockets: AnyObject {
  /// The source of time and timers.
  var clock: any Loop { get }
  func open(
    to resolver: PlainResolver, overTCP: Bool, _ report: @escaping (SocketEvent) -> Void
  ) throws(LocalDNSFailure) -> any ServerSocket
}

/// The sockets of this machine.
final class KernelSockets: ServerSockets {
  fileprivate let loop: EventLoop
  /// Receives any message. Its contents are used before the loop's next event.
  fileprivate var buffer = [UInt8](repeating: 0, count: 65_535)
  var clock: any Loop { loop }

  init(loop: EventLoop) { self.loop = loop }

  func open(
    to resolver: PlainResolver, overTCP: Bool, _ report: @escaping (SocketEvent) -> Void
  ) throws(LocalDNSFailure) -> any ServerSocket {
    guard let address = resolver.target else { throw .network(ENODEV) }
    return overTCP
      ? try StreamSocket(address, SOCK_STREAM, self, report) : try DatagramSocket(address, SOCK_DGRAM, self, report)
  }
}

/// The common part of both transports.
private class KernelSocket: QueueMember {
  private(set) var descriptor: Int32
  private let sockets: KernelSockets
  private let report: (SocketEvent) -> Void
  private var event: LoopEvent?
  private let place = OwnedPlace()

  /// Opens a socket that is connected to the server, or in the process of connecting.
  ///
  /// A connected socket receives datagrams from that server's address and port only. The kernel assigns a random port
  /// from its range, by default some 28,000; with the random ID this meets RFC 5452 section 9.
  init(
    _ address: SocketAddress, _ type: __socket_type, _ sockets: KernelSockets,
    _ report: @escaping (SocketEvent) -> Void
  ) throws(LocalDNSFailure) {
    self.sockets = sockets
    self.report = report
    descriptor = socket(address.family, Int32(type.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .network(errno) }
    let outcome = address.withSockaddr { connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }
    guard outcome == 0 || errno == EINPROGRESS else {
      let failure = LocalDNSFailure.network(errno)
      close()
      throw failure
    }
  }

  deinit { close() }

  final func close() {
    event = nil
    place.cancel()
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  /// Called when the socket is readable or writable. Subclasses override it.
  func ready() {}

  /// Waits for this instead of the previous.
  final func wait(for interest: Interest) {
    event = LoopEvent(on: sockets.loop, descriptor: descriptor, interest, for: self) { $0.isReady() }
  }

  /// There may be very many sockets with something to read.
  private func isReady() { place.take(on: sockets.loop, for: self) }

  final func placeHasCome() { ready() }

  /// Receives what has arrived; nil if there is nothing, or after a failure.
  final func receive() -> ArraySlice<UInt8>? {
    while descriptor >= 0 {
      let count = sockets.buffer.withUnsafeMutableBufferPointer { recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count >= 0 { return sockets.buffer[..<count] }
      if errno == EINTR { continue }
      if errno != EAGAIN { fail(.network(errno)) }
      return nil
    }
    return nil
  }

  final func found(_ message: ArraySlice<UInt8>) { report(.message(message)) }

  final func fail(_ reason: LocalDNSFailure) {
    close()
    report(.failure(reason))
  }
}

private final class DatagramSocket: KernelSocket, ServerSocket {
  func send(_ message: [UInt8]) {
    guard Glibc.send(descriptor, message, message.count, Int32(MSG_NOSIGNAL)) == message.count else {
      return fail(.network(errno))
    }
    wait(for: .read)
  }

  override func ready() {
    // Bounded, so that a flood of spoofed replies does not block the loop; the next turn reads the rest.
    for _ in 0..<16 {
      guard let message = receive() else { return }
      found(message)
    }
  }
}

/// Octets may be sent and received in portions of any size (RFC 7766 section 8).
private final class StreamSocket: KernelSocket, ServerSocket {
  private var unsent: ArraySlice<UInt8> = []
  private var received: [UInt8] = []

  func send(_ message: [UInt8]) {
    // Length and message in one segment.
    unsent += [UInt8(truncatingIfNeeded: message.count >> 8), UInt8(truncatingIfNeeded: message.count)] + message
    wait(for: .write)
  }

  override func ready() {
    guard unsent.isEmpty else { return flush() }
    guard let octets = receive() else { return }
    guard !octets.isEmpty else { return fail(.closed) }
    received += octets
    var begin = 0
    while descriptor >= 0, received.count - begin >= 2 {
      let end = begin + 2 + Int(received[begin]) << 8 + Int(received[begin + 1])
      guard received.count >= end else { break }
      found(received[(begin + 2)..<end])
      begin = end
    }
    received.removeFirst(begin)
  }

  private func flush() {
    let count = unsent.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    if count < 0, errno == EAGAIN || errno == EINTR { return }
    guard count >= 0 else { return fail(.network(errno)) }
    unsent = unsent.dropFirst(count)
    if unsent.isEmpty { wait(for: .read) }
  }
}
