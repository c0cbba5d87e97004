// TCPListener.swift -- accepts connections (RFC 7766, RFC 9210).
//
// Runs on the resolver's loop. Calls its owner's handler for each query; answers may come in any order.

import CEvent
import EventLoop
import Glibc

/// A listening TCP socket.
public final class TCPListener {
  /// Called for each query with the connection to answer on and the octets of the message, which are valid during the call.
  public typealias Handler = (TCPConnection, UnsafeBufferPointer<UInt8>) -> Void

  /// The bound address; if port 0 was given, with the port that the kernel chose.
  public let address: SocketAddress
  private let loop: EventLoop
  private let table: TCPConnectionTable
  private let handler: Handler
  private let listener: OpaquePointer
  private var relief: AcceptRelief?

  /// Called with the error number for each connection that could not be accepted.
  public var onFailure: ((Int32) -> Void)? {
    get { relief?.onFailure }
    set { relief?.onFailure = newValue }
  }

  /// - Throws: `ListenError` with the system's reason.
  public convenience init(
    binding address: SocketAddress, on loop: EventLoop, table: TCPConnectionTable, handler: @escaping Handler
  ) throws(ListenError) {
    let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw ListenError(address: address, transport: "tcp", code: errno) }
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    if address.family == AF_INET6 { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, size) }
    guard address.withSockaddr({ bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0,
      listen(descriptor, 256) == 0
    else {
      let code = errno
      close(descriptor)
      throw ListenError(address: address, transport: "tcp", code: code)
    }
    try self.init(
      adopting: descriptor, boundTo: SocketAddress(boundTo: descriptor) ?? address, on: loop, table: table,
      handler: handler)
  }

  /// Takes over a listening socket, and closes it on deinit.
  ///
  /// - Throws: `ListenError` with the system's reason; the descriptor is then closed.
  public init(
    adopting descriptor: Int32, boundTo address: SocketAddress, on loop: EventLoop, table: TCPConnectionTable,
    handler: @escaping Handler
  ) throws(ListenError) {
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    guard evutil_make_socket_nonblocking(descriptor) == 0,
      let listener = evconnlistener_new(loop.base, nil, nil, UInt32(LEV_OPT_CLOSE_ON_EXEC), 0, descriptor)
    else {
      let code = errno
      close(descriptor)
      throw ListenError(address: address, transport: "tcp", code: code)
    }
    self.address = address
    self.loop = loop
    self.table = table
    self.handler = handler
    self.listener = listener
    relief = AcceptRelief(of: listener, on: loop)
    let context = Unmanaged.passUnretained(self).toOpaque()
    evconnlistener_set_cb(listener, didAccept, context)
  }

  deinit {
    relief = nil
    let descriptor = evconnlistener_get_fd(listener)
    evconnlistener_free(listener)
    close(descriptor)
  }

  /// Stops accepting; new connections wait in the socket's backlog.
  public func stop() { relief?.stop() }

  fileprivate func accepted(_ descriptor: Int32, _ peer: SocketAddress) {
    guard table.admits(peer, now: loop.now), TCPConnection(descriptor, peer, loop, table, handler) != nil else {
      close(descriptor)
      return
    }
  }
}

private func didAccept(
  _: OpaquePointer?, _ descriptor: Int32, _ address: UnsafeMutablePointer<sockaddr>?, _ length: Int32,
  _ context: UnsafeMutableRawPointer?
) {
  var storage = sockaddr_storage()
  withUnsafeMutableBytes(of: &storage) { raw in
    raw.baseAddress!.copyMemory(from: address!, byteCount: min(Int(length), raw.count))
  }
  let listener = Unmanaged<TCPListener>.fromOpaque(context!).takeUnretainedValue()
  listener.accepted(descriptor, SocketAddress(storage: storage, length: socklen_t(length)))
}
