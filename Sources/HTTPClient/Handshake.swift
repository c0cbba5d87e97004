// Handshake.swift -- one attempt to see whether a server is there, without a request.

import EventLoop

/// Ends once: with a connection, with an octet on an older one, with a failure, or when its time is over. Loop thread only.
final class Handshake {
  private var continuation: UnsafeContinuation<HTTPFailure?, Never>?
  private let timer = OwnedTimer()
  /// Whether an older connection may still show that the server is there.
  var awaitsOthers = false
  /// Called when it has ended.
  var onEnd: (() -> Void)?

  init(on loop: EventLoop, timeout: Duration, _ continuation: UnsafeContinuation<HTTPFailure?, Never>) {
    self.continuation = continuation
    timer.set(after: timeout, on: loop, for: self) { $0.end(HTTPFailure(.timeout, "no sign of life")) }
  }

  var isOver: Bool { continuation == nil }

  /// The server is there.
  func succeed() { end(nil) }

  /// The new connection has failed.
  func fail(_ failure: HTTPFailure) {
    if !awaitsOthers { end(failure) }
  }

  /// Ends it if it has not ended, for example because its connections are closed.
  func end(_ failure: HTTPFailure?) {
    guard let continuation else { return }
    self.continuation = nil
    timer.cancel()
    onEnd?()
    onEnd = nil
    continuation.resume(returning: failure)
  }
}
