// HTTPServer.swift -- a small HTTP/1.1 server on libevent's evhttp, for the control socket, metrics and the simulator.
//
// Loop thread only. The server owns the evhttp handle, which owns the listening sockets, the connections and their
// requests. The server never resolves a name: addresses are binary.

import CEvent
import CTLS
import EventLoop
import Glibc

/// An HTTP/1.1 server with keep-alive on TCP or Unix sockets, with or without TLS.
///
/// `deinit` closes all sockets and drops pending requests. The handler must not release the last reference.
public final class HTTPServer {
  /// Limits on the size of requests, on idle time and on connections.
  public struct Limits: Sendable {
    /// The maximum of request line and header section together, in octets; a larger request is refused with 400.
    public var headerOctets = 16_384
    /// The maximum size of a body in octets; a larger one is refused with 413.
    public var bodyOctets = 65_536
    /// The time after which an idle connection is closed, in whole seconds.
    public var idle = Duration.seconds(60)
    /// The maximum number of connections; nil for as many as there are descriptors. A further connection replaces the
    /// one without a pending answer that has been idle for longest. If all wait for an answer, the server closes the
    /// new one.
    public var connections: Int?
    public init() {}
  }

  /// The loop that runs the server and every call of its handler.
  public let loop: EventLoop
  /// Connections accepted since the start.
  public private(set) var connectionCount: UInt64 = 0

  private let handle: OpaquePointer
  private let context: TLSServerContext?
  private let handler: (HTTPServerRequest, HTTPServerReply) -> Void
  /// Pending requests. Unretained: a reply sends an answer when it is released, and that removes it from here.
  private(set) var waiting: [UnsafeMutablePointer<evhttp_request>: Unmanaged<HTTPServerReply>] = [:]
  private var unixPaths: [String] = []
  private var table: ConnectionTable?
  /// The Content-Type of replies that do not set the field.
  private static let contentType: StaticString = "text/plain; charset=utf-8"
  /// One for each listening socket.
  private var reliefs: [AcceptRelief] = []

  /// Called with errno for each connection that cannot be accepted.
  public var onFailure: ((Int32) -> Void)? {
    didSet { for relief in reliefs { relief.onFailure = onFailure } }
  }

  /// Creates a server that does not listen yet, and ignores SIGPIPE in the whole process.
  ///
  /// - Parameters:
  ///   - tls: the certificate for TLS; nil for plain HTTP.
  ///   - handler: called on the loop's thread with every complete request; it may retain the reply and answer later.
  /// - Throws: `HTTPServerError.noServer` if memory is short.
  public init(
    on loop: EventLoop, limits: Limits = Limits(), tls: TLSServerContext? = nil,
    handler: @escaping (HTTPServerRequest, HTTPServerReply) -> Void
  ) throws(HTTPServerError) {
    guard let handle = evhttp_new(loop.base) else { throw .noServer }
    self.loop = loop
    self.handle = handle
    self.context = tls
    self.handler = handler
    table = limits.connections.map { ConnectionTable(limit: $0) }
    evhttp_set_max_headers_size(handle, limits.headerOctets)
    evhttp_set_max_body_size(handle, limits.bodyOctets)
    evhttp_set_timeout(handle, Int32(clamping: limits.idle.components.seconds))
    // libevent stores the pointer without a copy, so the string must be static.
    let contentType = UnsafeRawPointer(HTTPServer.contentType.utf8Start).assumingMemoryBound(to: CChar.self)
    evhttp_set_default_content_type(handle, contentType)
    let this = Unmanaged.passUnretained(self).toOpaque()
    evhttp_set_gencb(handle, httpServerDidReceive, this)
    evhttp_set_bevcb(handle, httpServerDidAccept, this)
    // libevent writes with writev(), which has no equivalent of MSG_NOSIGNAL.
    signal(SIGPIPE, SIG_IGN)
  }

  deinit {
    for reply in waiting.values { reply.takeUnretainedValue().serverDidEnd() }
    // These must be freed before the listeners, which evhttp frees.
    reliefs = []
    evhttp_free(handle)
    for path in unixPaths { unlink(path) }
  }

  /// Listens on a TCP address; port 0 lets the kernel choose one.
  ///
  /// - Returns: the bound address, with the actual port.
  /// - Throws: `HTTPServerError.cannotListen`.
  @discardableResult
  public func listen(on address: SocketAddress) throws(HTTPServerError) -> SocketAddress {
    let socket = try ListeningSocket.make(on: address)
    let bound = socket.boundAddress ?? address
    try accept(on: socket, address: address.description)
    return bound
  }

  /// Listens on a Unix socket; `deinit` removes the path.
  ///
  /// - Parameter mode: the permission bits of the path, in effect from its creation.
  /// - Throws: `HTTPServerError`. The path of a dead process is replaced and is not an error.
  public func listen(unixPath path: String, mode: mode_t = 0o600) throws(HTTPServerError) {
    let socket = try ListeningSocket.make(onPath: path, mode: mode)
    unixPaths.append(path)
    try accept(on: socket, address: path)
  }

  private func accept(on socket: consuming ListeningSocket, address: String) throws(HTTPServerError) {
    guard let bound = evhttp_accept_socket_with_handle(handle, socket.descriptor) else {
      throw .cannotListen(call: "accept", address: address, errno: errno)
    }
    socket.release()
    let relief = AcceptRelief(of: evhttp_bound_socket_get_listener(bound), on: loop)
    relief.onFailure = onFailure
    reliefs.append(relief)
  }

  fileprivate func didReceive(_ request: UnsafeMutablePointer<evhttp_request>) {
    guard let copy = HTTPServerRequest(copying: request) else {
      evhttp_send_reply(request, 501, nil, nil)
      return
    }
    // With two Host fields, a proxy in between may have used either one (RFC 9112 section 3.2).
    guard copy.fields.count(where: { $0.isNamed("Host") }) < 2 else {
      evhttp_send_reply(request, 400, nil, nil)
      return
    }
    table?.used(HTTPServer.descriptor(of: request))
    let reply = HTTPServerReply(request: request, server: self)
    waiting[request] = Unmanaged.passUnretained(reply)
    // There may be a request on every connection.
    loop.queue { [weak self] in self?.handler(copy, reply) }
  }

  /// Creates the buffer of a new connection; libevent takes ownership of it.
  fileprivate func didAccept() -> OpaquePointer? {
    connectionCount += 1
    let options = Int32(BEV_OPT_CLOSE_ON_FREE.rawValue)
    guard let context else {
      let buffer = bufferevent_socket_new(loop.base, -1, options)
      admit(buffer)
      return buffer
    }
    let buffer = bufferevent_openssl_socket_new(
      loop.base, -1, context.makeConnection(), BUFFEREVENT_SSL_ACCEPTING, options)
    admit(buffer)
    // Clients often close TCP without close_notify; HTTP itself delimits messages.
    bufferevent_openssl_set_allow_dirty_shutdown(buffer, 1)
    return buffer
  }

  /// libevent reports neither the number of connections nor their end, and it assigns the socket to the buffer only
  /// after this call. The descriptor is therefore read later in the same turn, before any data can be read.
  private func admit(_ buffer: OpaquePointer?) {
    guard let buffer, table != nil else { return }
    bufferevent_incref(buffer)
    loop.inNextTurn { [weak self] in
      self?.makeRoom(for: bufferevent_getfd(buffer))
      bufferevent_decref(buffer)
    }
  }

  private func makeRoom(for descriptor: Int32) {
    let busy = Set(waiting.keys.map { HTTPServer.descriptor(of: $0) })
    guard let closed = table?.add(descriptor, busy: busy) else { return }
    // libevent sees the end of the stream and frees the connection.
    shutdown(closed, Int32(SHUT_RDWR))
  }

  private static func descriptor(of request: UnsafeMutablePointer<evhttp_request>) -> Int32 {
    guard let connection = evhttp_request_get_connection(request) else { return -1 }
    return bufferevent_getfd(evhttp_connection_get_bufferevent(connection))
  }

  func forget(_ request: UnsafeMutablePointer<evhttp_request>) { waiting[request] = nil }
}

private func httpServerDidReceive(_ request: UnsafeMutablePointer<evhttp_request>?, _ this: UnsafeMutableRawPointer?) {
  Unmanaged<HTTPServer>.fromOpaque(this!).takeUnretainedValue().didReceive(request!)
}

private func httpServerDidAccept(_: OpaquePointer?, _ this: UnsafeMutableRawPointer?) -> OpaquePointer? {
  Unmanaged<HTTPServer>.fromOpaque(this!).takeUnretainedValue().didAccept()
}
