// DatagramExchange.swift -- a query over UDP from its own socket.

import DNSWire
import EventLoop
import Glibc

/// A query over UDP. At half of its time it is sent once more, with the same octets from the same port: a lost datagram
/// should not cost the server its turn, and equal queries in parallel would make spoofing easier (RFC 5452 section 5).
final class DatagramExchange: Exchange, @unchecked Sendable {
  override func start(_ deadline: BootInstant) {
    guard open(SOCK_DGRAM) else { return }
    guard send() == query.octets.count else { return fail() }
    wait(for: .read)
    let now = exchanger.loop.now
    schedule(at: now + (deadline - now) / 2) { [self] in _ = send() }
  }

  private func send() -> Int { Glibc.send(descriptor, query.octets, query.octets.count, Int32(MSG_NOSIGNAL)) }

  override func ready(_ interest: Interest) {
    // Bounded, so that a flood of spoofed replies does not block the loop; the next turn reads the rest.
    for _ in 0..<16 where descriptor >= 0 {
      let count = exchanger.buffer.withUnsafeMutableBufferPointer { recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      guard count >= 0 else { return fail() }
      consider(exchanger.buffer[..<count])
    }
  }
}
