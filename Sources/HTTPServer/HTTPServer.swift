// HTTPServer.swift -- a small HTTP/1.1 server, for the control socket, metrics, DoH and the simulator.
//
// Loop thread only. The server owns its listening sockets and connections, a buffer into which all connections read and one in
// which all compose their answers: an idle connection has neither. It never resolves a name: addresses are binary.

import EventLoop
import Glibc
import Streams

/// An HTTP/1.1 server with keep-alive on TCP or Unix sockets, with or without TLS.
///
/// `deinit` closes all sockets and drops pending requests. The handler must not release the last reference.
public final class HTTPServer {
  /// Limits on the size of requests, on idle time and on connections.
  public struct Limits: Sendable {
    /// The maximum of request line and header section together, in octets; a larger request is refused with 431.
    public var headerOctets = 8192
    /// The maximum number of fields; a request with more is refused with 431.
    public var fields = 32
    /// The maximum size of a body in octets; a larger one is refused with 413.
    public var bodyOctets = 65_536
    /// The time after which a connection without a request is closed. A request has as much time from its first octet on, and
    /// so has a client that reads nothing of its answer.
    public var idle = Duration.seconds(60)
    /// The maximum number of connections; nil for as many as there are descriptors. A further connection replaces the
    /// one without a pending answer that has been idle for longest. If all wait for an answer, the server closes the
    /// new one.
    public var connections: Int?
    /// Whether the handler gets requests of any method; otherwise an unknown one is refused with 501.
    public var takesAnyMethod = false
    public init() {}
  }

  public typealias Handler = (HTTPServerRequest, HTTPServerReply) -> Void

  /// The loop that runs the server and every call of its handler.
  public let loop: EventLoop
  /// Connections accepted since the start.
  public private(set) var connectionCount: UInt64 = 0

  let limits: Limits
  let handler: Handler
  /// Composes the answers of all connections; each is passed on before the next one begins.
  var writer = ResponseWriter()
  private let tls: TLSServer?
  private let buffer = ReadBuffer(capacity: HTTPServer.readSize)
  private var acceptors: [Acceptor] = []
  private var unixPaths: [String] = []
  private var connections: [HTTPConnection] = []
  /// Set for the connection that has to do something first.
  private let timer = OwnedTimer()

  /// Octets that one read brings at most.
  private static let readSize = 16_384
  /// The least time between two looks at all connections.
  private static let leastPause = Duration.milliseconds(100)

  /// Called with errno for each connection that cannot be accepted.
  public var onFailure: ((Int32) -> Void)? {
    didSet { for acceptor in acceptors { acceptor.onFailure = onFailure } }
  }

  /// Creates a server that does not listen yet, and ignores SIGPIPE in the whole process.
  ///
  /// - Parameters:
  ///   - tls: the certificate for TLS; nil for plain HTTP.
  ///   - handler: called on the loop's thread with every complete request; it may retain the reply and answer later.
  public init(
    on loop: EventLoop, limits: Limits = Limits(), tls: TLSServer? = nil, handler: @escaping Handler
  ) {
    self.loop = loop
    self.limits = limits
    self.tls = tls
    self.handler = handler
    // OpenSSL writes with write(), which has no equivalent of MSG_NOSIGNAL.
    signal(SIGPIPE, SIG_IGN)
  }

  deinit {
    for connection in connections { connection.serverDidEnd() }
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

  /// Serves the requests of a stream that was accepted elsewhere, from its present position on. The server owns it from now
  /// on.
  ///
  /// - Parameters:
  ///   - stream: a server's, whose handshake may be complete or not.
  ///   - peer: the client's address for `HTTPServerRequest.peer`.
  ///   - observer: learns what becomes of the connection.
  /// - Returns: the connection; nil if there is no place for it. The stream is then closed.
  @discardableResult
  public func serve(
    _ stream: ByteStream, from peer: SocketAddress?, observer: (any HTTPConnectionObserver)? = nil
  ) -> (any HTTPServedConnection)? {
    connectionCount += 1
    guard makeRoom() else {
      stream.close()
      return nil
    }
    let connection = HTTPConnection(stream, from: peer, of: self, observer)
    connection.position = connections.count
    connections.append(connection)
    if let due = connection.due { needsLook(at: due) }
    return connection
  }

  /// The number of requests without a complete answer.
  var pendingCount: Int { connections.count { $0.isPending } }

  private func accept(on socket: consuming ListeningSocket, address: String) throws(HTTPServerError) {
    let acceptor = Acceptor(of: socket.descriptor, on: loop, for: self) { $0.accepted($1, $2) }
    guard let acceptor else { throw .cannotListen(call: "accept", address: address, errno: ENOMEM) }
    socket.release()
    acceptor.onFailure = onFailure
    acceptors.append(acceptor)
  }

  private func accepted(_ descriptor: Int32, _ peer: SocketAddress?) {
    let connection = tls?.connection(over: descriptor)
    guard tls == nil || connection != nil else {
      close(descriptor)
      return
    }
    // The connection takes the reports over.
    serve(ByteStream(descriptor, connection, as: .server, into: buffer, on: loop) { _ in }, from: peer)
  }

  /// Whether there is a place for one more connection. Closes another one for it.
  ///
  /// - Complexity: O(n) in the number of connections, if all places are taken.
  private func makeRoom() -> Bool {
    guard let most = limits.connections, connections.count >= most else { return true }
    let idle = connections.filter { !$0.isPending }
    guard let oldest = idle.min(by: { $0.idleSince < $1.idleSince }) else { return false }
    oldest.end()
    return true
  }

  // MARK: - For the connections

  func remove(_ connection: HTTPConnection) {
    let last = connections.removeLast()
    guard last !== connection else { return }
    connections[connection.position] = last
    last.position = connection.position
  }

  /// A connection is due at this time.
  func needsLook(at deadline: BootInstant) {
    if let set = timer.deadline, set <= deadline { return }
    timer.set(at: deadline, on: loop, for: self) { $0.lookAtAll() }
  }

  private func lookAtAll() {
    let now = loop.now
    for connection in connections { connection.endIfDue(now) }
    guard let next = connections.lazy.compactMap(\.due).min() else { return }
    needsLook(at: max(next, now + HTTPServer.leastPause))
  }
}
