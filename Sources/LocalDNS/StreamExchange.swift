// StreamExchange.swift -- a query over TCP, for a response that is too large for UDP (RFC 7766).

import DNSWire
import EventLoop
import Glibc

/// A query over its own TCP connection. Octets may be sent and received in portions of any size.
final class StreamExchange: Exchange, @unchecked Sendable {
  private var unsent: ArraySlice<UInt8> = []
  private var received: [UInt8] = []

  override func start(_ deadline: BootInstant) {
    let count = query.octets.count
    // Length and message in one segment (RFC 7766 section 8).
    unsent = [UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)] + query.octets
    guard open(SOCK_STREAM) else { return }
    wait(for: .write)
  }

  override func ready(_ interest: Interest) {
    if unsent.isEmpty { receive() } else { send() }
  }

  private func send() {
    let count = unsent.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    if count < 0, errno == EAGAIN || errno == EINTR { return }
    guard count >= 0 else { return fail() }
    unsent = unsent.dropFirst(count)
    if unsent.isEmpty { wait(for: .read) }
  }

  private func receive() {
    let count = exchanger.buffer.withUnsafeMutableBufferPointer { recv(descriptor, $0.baseAddress, $0.count, 0) }
    if count < 0, errno == EAGAIN || errno == EINTR { return }
    guard count >= 0 else { return fail() }
    guard count > 0 else { return finish(.failure(.closed)) }
    received += exchanger.buffer[..<count]
    while descriptor >= 0, received.count >= 2 {
      let end = 2 + Int(received[0]) << 8 + Int(received[1])
      guard received.count >= end else { return }
      considerWhole(received[2..<end])
      received.removeFirst(end)
    }
  }

  /// TC over TCP means that the server itself has no complete response: counts as SERVFAIL.
  private func considerWhole(_ reply: ArraySlice<UInt8>) {
    if case .truncated = query.judge(reply) { return finish(.failure(.responseCode(.servFail))) }
    consider(reply)
  }
}
