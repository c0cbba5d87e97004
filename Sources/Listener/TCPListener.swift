// TCPListener.swift -- accepts connections (RFC 7766, RFC 9210).
//
// Runs on the resolver's loop. Calls its owner's handler for each query; answers may come in any order.

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
  private var acceptor: Acceptor?

  /// Called with the error number for each connection that could not be accepted.
  public var onFailure: ((Int32) -> Void)? {
    get { acceptor?.onFailure }
    set { acceptor?.onFailure = newValue }
  }

  /// - Throws: `ListenError` with the system's reason.
  public convenience init(
    binding address: SocketAddress, on loop: EventLoop, table: TCPConnectionTable, handler: @escaping Handler
  ) throws(ListenError) {
    let (descriptor, bound) = try TCPListener.open(address)
    try self.init(adopting: descriptor, boundTo: bound, on: loop, table: table, handler: handler)
  }

  /// Opens a socket that listens and does not block, whose connections send at once.
  ///
  /// - Returns: the socket, which is the caller's, and its address; if port 0 was given, with the port that the kernel chose.
  /// - Throws: `ListenError` with the system's reason.
  package static func open(
    _ address: SocketAddress
  ) throws(ListenError) -> (descriptor: Int32, address: SocketAddress) {
    let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw ListenError(address: address, transport: "tcp", code: errno) }
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    // Accepted sockets inherit it.
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, size)
    if address.family == AF_INET6 { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &on, size) }
    guard address.withSockaddr({ bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0,
      Glibc.listen(descriptor, 256) == 0
    else {
      let code = errno
      close(descriptor)
      throw ListenError(address: address, transport: "tcp", code: code)
    }
    return (descriptor, SocketAddress(boundTo: descriptor) ?? address)
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
    self.address = address
    self.loop = loop
    self.table = table
    self.handler = handler
    let flags = fcntl(descriptor, F_GETFL)
    guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0,
      let acceptor = Acceptor(of: descriptor, on: loop, for: self, handler: { $0.accepted($1, $2) })
    else {
      let code = errno
      close(descriptor)
      throw ListenError(address: address, transport: "tcp", code: code)
    }
    self.acceptor = acceptor
  }

  /// Stops accepting; new connections wait in the socket's backlog.
  public func stop() { acceptor?.stop() }

  private func accepted(_ descriptor: Int32, _ peer: SocketAddress?) {
    guard let peer, table.admits(peer, now: loop.now) else {
      close(descriptor)
      return
    }
    TCPConnection(descriptor, peer, nil, loop, table, handler)
  }
}
