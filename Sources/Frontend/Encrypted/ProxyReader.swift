// ProxyReader.swift -- reads the PROXY header of one connection, and nothing of what follows it.

import EventLoop
import Glibc
import Listener

/// Reads the header from a socket that does not block. The socket stays the caller's. Loop thread only.
final class ProxyReader {
  private let descriptor: Int32
  private let ended: (ProxyHeader) -> Void
  private var event: LoopEvent?
  private let timer = OwnedTimer()
  private var octets: [UInt8] = []

  /// The most time for the header.
  private static let time = Duration.seconds(1)

  /// - Parameter ended: called once, in a later turn; never with `incomplete`. It must release the reader.
  init(_ descriptor: Int32, on loop: EventLoop, ended: @escaping (ProxyHeader) -> Void) {
    self.descriptor = descriptor
    self.ended = ended
    event = LoopEvent(on: loop, descriptor: descriptor, .read, for: self) { $0.read() }
    timer.set(after: ProxyReader.time, on: loop, for: self) { $0.end(.refused) }
  }

  private func read() {
    while true {
      let header = octets.withUnsafeBufferPointer { ProxyHeader($0.span) }
      guard case .incomplete(let missing) = header else { return end(header) }
      var next = [UInt8](repeating: 0, count: missing)
      let count = recv(descriptor, &next, missing, 0)
      if count < 0, errno == EAGAIN || errno == EINTR { return }
      guard count > 0 else { return end(.refused) }
      octets += next[..<count]
    }
  }

  private func end(_ header: ProxyHeader) {
    guard event != nil else { return }
    event = nil
    timer.cancel()
    ended(header)
  }
}
