// AcceptRelief.swift -- keeps a listening socket that cannot accept from making its loop spin.
//
// Loop thread only.

import CEvent
import Glibc
import Synchronization

/// What becomes of connections that cannot be accepted: libevent would try again at once, and for ever.
///
/// Out of descriptors, one in reserve takes the connection and drops it, so that the client knows at once. Where that is no
/// help, nothing is accepted for a moment.
public final class AcceptRelief {
  /// Told of each connection that could not be accepted, with the system's error number.
  public var onFailure: ((Int32) -> Void)?

  private let loop: EventLoop
  private let listener: OpaquePointer
  private var reserve: Int32
  private var pause: LoopTimer?
  private var isStopped = false

  /// How long nothing is accepted after a failure that trying again at once would only repeat.
  private static let failurePause = Duration.milliseconds(100)
  /// The addresses of all, by those of their listeners: what libevent hands to a listener's error callback is the
  /// accept callback's, which may be another owner's.
  private static let all = Mutex<[UInt: UInt]>([:])

  /// Takes care of `listener`, an `evconnlistener` of that loop, which must outlive it.
  public init(of listener: OpaquePointer, on loop: EventLoop) {
    self.loop = loop
    self.listener = listener
    reserve = AcceptRelief.openReserve()
    let this = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
    AcceptRelief.all.withLock { $0[UInt(bitPattern: listener)] = this }
    evconnlistener_set_error_cb(listener, acceptFailed)
  }

  deinit {
    pause?.cancel()
    evconnlistener_set_error_cb(listener, nil)
    _ = AcceptRelief.all.withLock { $0.removeValue(forKey: UInt(bitPattern: listener)) }
    if reserve >= 0 { close(reserve) }
  }

  /// Takes no more connections; those that come wait in the socket.
  public func stop() {
    isStopped = true
    evconnlistener_disable(listener)
  }

  fileprivate static func find(_ listener: OpaquePointer?) -> AcceptRelief? {
    let address = all.withLock { $0[UInt(bitPattern: listener)] }
    guard let address, let pointer = UnsafeRawPointer(bitPattern: address) else { return nil }
    return Unmanaged<AcceptRelief>.fromOpaque(pointer).takeUnretainedValue()
  }

  fileprivate func failed(_ code: Int32) {
    onFailure?(code)
    guard code == EMFILE || code == ENFILE, dropConnection() else { return waitAMoment() }
  }

  /// - Returns: whether there is a descriptor in reserve again.
  private func dropConnection() -> Bool {
    if reserve >= 0 {
      close(reserve)
      let descriptor = accept(evconnlistener_get_fd(listener), __SOCKADDR_ARG(__sockaddr__: nil), nil)
      if descriptor >= 0 { close(descriptor) }
    }
    reserve = AcceptRelief.openReserve()
    return reserve >= 0
  }

  private func waitAMoment() {
    evconnlistener_disable(listener)
    pause?.cancel()
    pause = loop.schedule(after: AcceptRelief.failurePause) { [weak self] in
      guard let self, !isStopped else { return }
      evconnlistener_enable(listener)
    }
  }

  private static func openReserve() -> Int32 { open("/dev/null", O_RDONLY | O_CLOEXEC) }
}

private func acceptFailed(_ listener: OpaquePointer?, _: UnsafeMutableRawPointer?) {
  // Before anything else that may change it.
  let code = errno
  AcceptRelief.find(listener)?.failed(code)
}
