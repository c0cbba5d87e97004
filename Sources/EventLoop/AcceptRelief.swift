// AcceptRelief.swift -- prevents busy loops when a listening socket cannot accept connections.
//
// Loop thread only.

import CEvent
import Glibc
import Synchronization

/// Handles connections that cannot be accepted. libevent would retry immediately and forever.
///
/// If the process is out of descriptors, a reserved one is used to accept and close the connection, so that the client gets
/// an error at once. For other failures, accepting pauses briefly.
public final class AcceptRelief {
  /// Called with the error number for each connection that could not be accepted.
  public var onFailure: ((Int32) -> Void)?

  private let loop: EventLoop
  private let listener: OpaquePointer
  private var reserve: Int32
  private let pause = OwnedTimer()
  private var isStopped = false

  /// The pause after a failure that an immediate retry would only repeat.
  private static let failurePause = Duration.milliseconds(100)
  /// The addresses of all instances by those of their listeners. libevent passes the accept callback's context to the error
  /// callback, and that belongs to another object.
  private static let all = Mutex<[UInt: UInt]>([:])

  /// Handles the failures of `listener`, an `evconnlistener` of the loop, which must outlive this object.
  public init(of listener: OpaquePointer, on loop: EventLoop) {
    self.loop = loop
    self.listener = listener
    reserve = AcceptRelief.openReserve()
    let this = UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque())
    AcceptRelief.all.withLock { $0[UInt(bitPattern: listener)] = this }
    evconnlistener_set_error_cb(listener, acceptFailed)
  }

  deinit {
    pause.cancel()
    evconnlistener_set_error_cb(listener, nil)
    _ = AcceptRelief.all.withLock { $0.removeValue(forKey: UInt(bitPattern: listener)) }
    if reserve >= 0 { close(reserve) }
  }

  /// Stops accepting; new connections wait in the socket's backlog.
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

  /// - Returns: whether a descriptor is in reserve again.
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
    pause.set(after: AcceptRelief.failurePause, on: loop) { [weak self] in
      guard let self, !isStopped else { return }
      evconnlistener_enable(listener)
    }
  }

  private static func openReserve() -> Int32 { open("/dev/null", O_RDONLY | O_CLOEXEC) }
}

private func acceptFailed(_ listener: OpaquePointer?, _: UnsafeMutableRawPointer?) {
  // Read first, before another call can change it.
  let code = errno
  AcceptRelief.find(listener)?.failed(code)
}
