// CurlSocket.swift -- a socket of libcurl and its event on the loop.

import EventLoop

/// One socket. Created when libcurl first waits for it, removed when libcurl closes it.
///
/// libcurl stops watching a connection after each transfer and resumes with the next one. The event stays armed in
/// between, so that only a real change of interest costs a system call.
final class CurlSocket: QueueMember {
  let descriptor: Int32
  /// It ends with the carrier.
  private unowned let carrier: CurlCarrier
  /// The events that libcurl waits for; empty while the connection is idle.
  var wanted: Interest = []
  /// The time since when libcurl waits for nothing.
  var idleSince: BootInstant?
  /// Whether it was closed for writing because it is not needed. libcurl frees the descriptor when it next looks for a
  /// free connection.
  var isShutDown = false
  /// Whether an HTTP/2 response arrived on this connection.
  var isMultiplexed = false
  /// The peer's address; nil before the first response.
  var remoteAddress: String?

  private var event: LoopEvent?
  private var armed: Interest = []
  /// libcurl reads when the loop has time for this socket.
  private let place = OwnedPlace()
  private var ready: Interest = []
  /// The pause after many calls of libcurl that brought nothing. The event is not armed meanwhile.
  private let pause = OwnedTimer()

  init(_ descriptor: Int32, of carrier: CurlCarrier) {
    self.descriptor = descriptor
    self.carrier = carrier
  }

  /// Arms the event for what libcurl waits for. Does nothing if it is armed already or libcurl waits for nothing.
  func arm(on loop: EventLoop) {
    guard wanted != armed, !wanted.isEmpty, !pause.isSet else { return }
    armed = wanted
    event = LoopEvent(on: loop, descriptor: descriptor, wanted, for: self) { socket, interest in
      socket.ready.formUnion(interest)
      socket.place.take(on: loop, for: socket)
    }
  }

  func placeHasCome() {
    let interest = ready.intersection(armed)
    ready = []
    guard !interest.isEmpty else { return }
    // The carrier may end meanwhile, and removes the event then.
    carrier.isReady(self, interest)
    guard !armed.isEmpty, let time = carrier.pauseTime else { return }
    (event, armed) = (nil, [])
    pause.set(after: time, on: carrier.loop, for: self) { $0.arm(on: $0.carrier.loop) }
  }

  /// Removes the event, for example when an idle connection becomes readable because the server closed it.
  func disarm() {
    event = nil
    armed = []
    place.cancel()
    pause.cancel()
    ready = []
  }
}
