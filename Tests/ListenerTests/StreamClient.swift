// StreamClient.swift -- the client end of TCP: frames in any split, and how the server ended the connection.

import CEvent
import EventLoop
import Glibc
import Listener
import Testing

/// How a connection ended.
enum StreamEnd: Equatable {
  case closed, reset, timeout
}

/// A blocking TCP connection. No call waits longer than ten seconds.
final class StreamClient {
  private let descriptor: Int32
  private var received: [UInt8] = []

  /// Connects, from `source` if it is given.
  init(to server: SocketAddress, from source: String? = nil, receiveBuffer: Int32? = nil) throws {
    descriptor = socket(server.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    set(SOL_SOCKET, SO_RCVTIMEO, timeval(tv_sec: 10, tv_usec: 0))
    set(SOL_SOCKET, SO_SNDTIMEO, timeval(tv_sec: 10, tv_usec: 0))
    set(Int32(IPPROTO_TCP), TCP_NODELAY, Int32(1))
    if let receiveBuffer { set(SOL_SOCKET, SO_RCVBUF, receiveBuffer) }
    if let source {
      let local = try #require(SocketAddress(text: "\(source):0"))
      try #require(local.withSockaddr { bind(descriptor, .init(__sockaddr__: $0), $1) } == 0)
    }
    try #require(server.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) } == 0)
  }

  deinit { close(descriptor) }

  private func set<Value>(_ level: Int32, _ option: Int32, _ value: Value) {
    withUnsafeBytes(of: value) { _ = setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count)) }
  }

  /// Sends octets unchanged; returns false if the server does not take them in time.
  @discardableResult
  func send(_ octets: [UInt8]) -> Bool {
    var rest = octets[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Sends what the kernel takes at once; returns the number of octets.
  func sendWithoutWaiting(_ octets: [UInt8]) -> Int {
    let count = Glibc.send(descriptor, octets, octets.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    return max(0, count)
  }

  /// The next message; nil if the connection ends before.
  func receive() -> [UInt8]? {
    while received.count < 2 || received.count < 2 + length { if fill() != nil { return nil } }
    defer { received.removeFirst(2 + length) }
    return Array(received[2..<(2 + length)])
  }

  /// How the connection ends; nil if more data arrives.
  func end() -> StreamEnd? { received.isEmpty ? fill() : nil }

  /// Sends a FIN.
  func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Closes with a reset.
  func reset() { set(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0)) }

  private var length: Int { Int(received[0]) << 8 | Int(received[1]) }

  private func fill() -> StreamEnd? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count <= 0 else {
      received += buffer[..<count]
      return nil
    }
    return count == 0 ? .closed : errno == ECONNRESET ? .reset : .timeout
  }
}

/// A message preceded by its length.
func frame(_ message: [UInt8]) -> [UInt8] { [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message }

/// A message of that many octets, marked with a number.
func numbered(_ number: Int, octets: Int = 12) -> [UInt8] {
  [UInt8(number >> 8), UInt8(number & 0xFF)] + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: octets - 2)
}
