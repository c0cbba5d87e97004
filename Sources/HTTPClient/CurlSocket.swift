// CurlSocket.swift -- a connection of libcurl's and its event on the loop.

import CCurl
import EventLoop

/// One socket. Made when libcurl first wants to wait for it, dropped when libcurl closes it.
///
/// libcurl lets go of a connection after every transfer and takes it up again with the next: the event stays armed
/// meanwhile, and the kernel is told only when the interest really changes.
final class CurlSocket {
  let descriptor: Int32
  /// What libcurl waits for; empty while the connection rests.
  var wanted: Interest = []
  /// Whether an HTTP/2 response came over it.
  var isMultiplexed = false
  /// The peer's address, once a transfer has told it.
  var remoteAddress: String?

  private var event: LoopEvent?
  private var armed: Interest = []

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Makes the loop wait for what libcurl wants.
  func arm(on loop: EventLoop, handler: @escaping (Interest) -> Void) {
    guard wanted != armed, !wanted.isEmpty else { return }
    armed = wanted
    event = LoopEvent(on: loop, descriptor: descriptor, wanted, handler: handler)
  }

  /// Ends the wait, when something comes that nobody wants: the end of a resting connection, say.
  func disarm() {
    event = nil
    armed = []
  }
}
