// DatagramExchange.swift -- a query over UDP, from a socket of its own.

import DNSWire
import EventLoop
import Glibc

/// A query over UDP. It is sent again, the same octets from the same port, when half of the time is over: a lost datagram
/// should not cost the server its turn, and equal queries side by side would make guessing easier (RFC 5452 section 5).
final class DatagramExchange: Exchange, @unchecked Sendable {
  override func start(_ deadline: BootInstant) {
    guard open(SOCK_DGRAM) else { return }
    guard send() == query.octets.count else { return fail() }
    wait(for: .read)
    let now = wire.loop.now
    schedule(at: now + (deadline - now) / 2) { [self] in _ = send() }
  }

  private func send() -> Int { Glibc.send(descriptor, query.octets, query.octets.count, Int32(MSG_NOSIGNAL)) }

  override func ready(_ interest: Interest) {
    // Bounded, so that a flood of wrong replies does not hold up the loop; what is left is read in the next turn.
    for _ in 0..<16 where descriptor >= 0 {
      let count = wire.buffer.withUnsafeMutableBufferPointer { recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      guard count >= 0 else { return fail() }
      consider(wire.buffer[..<count])
    }
  }
}
