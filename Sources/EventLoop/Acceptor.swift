// Acceptor.swift -- accepts the connections of a listening socket, whatever is spoken over them.
//
// Loop thread only.

import CEvent
import Glibc

/// Owns a listening socket, and accepts until it is released.
public final class Acceptor {
  /// A connected socket, which does not block and which the receiver owns, and the address of its peer; nil for a Unix socket.
  public typealias Handler = (_ descriptor: Int32, _ peer: SocketAddress?) -> Void

  private let listener: OpaquePointer
  private let handler: Handler
  private var relief: AcceptRelief?

  /// Called with errno for each connection that cannot be accepted.
  public var onFailure: ((Int32) -> Void)? {
    get { relief?.onFailure }
    set { relief?.onFailure = newValue }
  }

  /// Nil without memory; the descriptor then stays the caller's.
  ///
  /// - Parameter descriptor: a socket that listens and does not block.
  public init?(of descriptor: Int32, on loop: EventLoop, handler: @escaping Handler) {
    let options = UInt32(LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE)
    guard let listener = evconnlistener_new(loop.base, nil, nil, options, 0, descriptor) else { return nil }
    self.listener = listener
    self.handler = handler
    relief = AcceptRelief(of: listener, on: loop)
    evconnlistener_set_cb(listener, didAccept, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Calls `handler` with the object that has this acceptor as a property of its own.
  public convenience init?<Owner: AnyObject>(
    of descriptor: Int32, on loop: EventLoop, for owner: Owner,
    handler: @escaping (Owner, _ descriptor: Int32, _ peer: SocketAddress?) -> Void
  ) {
    // The owner's end is the acceptor's.
    self.init(of: descriptor, on: loop) { [unowned owner] in handler(owner, $0, $1) }
  }

  deinit {
    relief = nil
    evconnlistener_free(listener)
  }

  /// Stops accepting; new connections wait in the socket's backlog.
  public func stop() { relief?.stop() }

  fileprivate func accepted(_ descriptor: Int32, _ peer: SocketAddress?) { handler(descriptor, peer) }
}

private func didAccept(
  _: OpaquePointer?, _ descriptor: Int32, _ address: UnsafeMutablePointer<sockaddr>?, _: Int32,
  _ context: UnsafeMutableRawPointer?
) {
  let acceptor = Unmanaged<Acceptor>.fromOpaque(context!).takeUnretainedValue()
  acceptor.accepted(descriptor, address.flatMap { SocketAddress($0) })
}
