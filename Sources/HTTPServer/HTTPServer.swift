// HTTPServer.swift -- a small HTTP/1.1 server on libevent's evhttp: the control socket, metrics, the simulator.
//
// Loop thread only. The server owns evhttp's handle, which owns the listening sockets, the connections and the
// requests on them. It never resolves a name: addresses come in binary form.

import CEvent
import CTLS
import EventLoop
import Glibc

/// An HTTP/1.1 server with keep-alive on TCP or Unix sockets, with or without TLS.
///
/// It ends with the object: sockets are closed and waiting requests dropped. It must not be let go inside its handler.
public final class HTTPServer {
  /// What a client may send, and how long it may be silent.
  public struct Limits: Sendable {
    /// The largest request line and header section together, in octets; more is refused with 400.
    public var headerOctets = 16_384
    /// The largest body in octets; more is refused with 413.
    public var bodyOctets = 65_536
    /// How long a connection may be idle before it is closed; whole seconds.
    public var idle = Duration.seconds(60)
    /// How many connections there may be at once; nil for as many as there are descriptors. One more takes the place of
    /// the one that has had no request for longest and waits for no answer; where all wait, it is closed itself.
    public var connections: Int?
    /// The defaults.
    public init() {}
  }

  /// The loop that the server runs on.
  public let loop: EventLoop
  /// How many connections have been accepted so far.
  public private(set) var connectionCount: UInt64 = 0

  /// How many requests wait for their answer.
  public var waitingCount: Int { waiting.count }

  private let handle: OpaquePointer
  private let context: TLSServerContext?
  private let handler: (HTTPServerRequest, HTTPServerReply) -> Void
  /// Requests without an answer. Unretained: a reply that is let go answers, and that takes it out.
  private var waiting: [UnsafeMutablePointer<evhttp_request>: Unmanaged<HTTPServerReply>] = [:]
  private var unixPaths: [String] = []
  private var table: ConnectionTable?
  /// What a reply without that field gets.
  private static let contentType: StaticString = "text/plain; charset=utf-8"
  /// One for each listening socket.
  private var reliefs: [AcceptRelief] = []

  /// Told of each connection that could not be accepted, with the system's error number.
  public var onFailure: ((Int32) -> Void)? {
    didSet { for relief in reliefs { relief.onFailure = onFailure } }
  }

  /// A server that does not listen yet.
  ///
  /// - Parameters:
  ///   - tls: the certificate for TLS; nil for plain HTTP.
  ///   - handler: called on the loop's thread with every complete request; the reply may be kept and answered later.
  /// - Throws: `HTTPServerError.noServer` where memory is short.
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
    // libevent keeps the pointer: it has to be that of octets which are there for good.
    let contentType = UnsafeRawPointer(HTTPServer.contentType.utf8Start).assumingMemoryBound(to: CChar.self)
    evhttp_set_default_content_type(handle, contentType)
    let this = Unmanaged.passUnretained(self).toOpaque()
    evhttp_set_gencb(handle, httpServerDidReceive, this)
    evhttp_set_bevcb(handle, httpServerDidAccept, this)
    // libevent writes with writev(), which cannot be told to spare the process when the peer has gone.
    signal(SIGPIPE, SIG_IGN)
  }

  deinit {
    for reply in waiting.values { reply.takeUnretainedValue().serverDidEnd() }
    // They must not outlive the listeners, which evhttp frees.
    reliefs = []
    evhttp_free(handle)
    for path in unixPaths { unlink(path) }
  }

  /// Listens on a TCP address; port 0 lets the kernel choose one.
  ///
  /// - Returns: the address with the port that it really has.
  /// - Throws: `HTTPServerError.cannotListen`.
  @discardableResult
  public func listen(on address: SocketAddress) throws(HTTPServerError) -> SocketAddress {
    let socket = try ListeningSocket.make(on: address)
    let bound = socket.boundAddress ?? address
    try accept(on: socket, address: address.description)
    return bound
  }

  /// Listens on a Unix socket; the path is removed when the server ends.
  ///
  /// - Parameter mode: the permission bits of the path, in force from the moment it exists.
  /// - Throws: `HTTPServerError`; a path that a dead process left behind is no error.
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
    // Of two Host fields nobody knows which one a proxy in between went by (RFC 9112, section 3.2).
    guard copy.fields.count(where: { $0.isNamed("Host") }) < 2 else {
      evhttp_send_reply(request, 400, nil, nil)
      return
    }
    table?.used(HTTPServer.descriptor(of: request))
    let reply = HTTPServerReply(request: request, server: self)
    waiting[request] = Unmanaged.passUnretained(reply)
    handler(copy, reply)
  }

  /// The buffer of a new connection; libevent takes it over.
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
    // Clients close TCP without TLS's farewell all the time; HTTP says itself where a message ends.
    bufferevent_openssl_set_allow_dirty_shutdown(buffer, 1)
    return buffer
  }

  /// libevent tells neither how many connections there are nor of their end, and gives the buffer its socket only after
  /// this; so the socket is looked at in the same turn, before it can be read.
  private func admit(_ buffer: OpaquePointer?) {
    guard let buffer, table != nil else { return }
    bufferevent_incref(buffer)
    loop.schedule(after: .zero) { [weak self] in
      self?.makeRoom(for: bufferevent_getfd(buffer))
      bufferevent_decref(buffer)
    }
  }

  private func makeRoom(for descriptor: Int32) {
    let busy = Set(waiting.keys.map { HTTPServer.descriptor(of: $0) })
    guard let closed = table?.add(descriptor, busy: busy) else { return }
    // libevent sees the end of the stream and lets the connection go.
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
