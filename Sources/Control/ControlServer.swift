// ControlServer.swift -- serves the control socket: HTTP on a Unix socket, for users that may open it.
//
// Resolver's loop only.

import Configuration
import EventLoop
import Forwarder
import Glibc
import HTTPServer

/// Serves the commands until it is released, which removes the socket's path.
public final class ControlServer {
  /// The permission bits of the socket: its user and group may use it.
  public static let mode: mode_t = 0o660
  private let server: HTTPServer

  /// Called with errno for each connection that cannot be accepted.
  public var onFailure: ((Int32) -> Void)? {
    get { server.onFailure }
    set { server.onFailure = newValue }
  }

  /// Requests and answers are short: a slow client makes room for others.
  private static let limits = {
    var limits = HTTPServer.Limits()
    limits.headerOctets = 4096
    limits.bodyOctets = FlushRequest.mostNames * FlushRequest.longestName
    limits.idle = .seconds(10)
    limits.connections = Configuration.httpConnections
    return limits
  }()

  /// Creates a server that does not listen yet.
  ///
  /// - Parameter tails: streams queries to readers.
  package init(on loop: EventLoop, _ actions: any ControlActions, _ tails: TailService) {
    let handler = ControlHandler(loop: loop, actions: actions, tails: tails)
    server = HTTPServer(on: loop, limits: ControlServer.limits) { handler.handle($0, $1) }
  }

  /// Listens on a path, with mode 0660.
  ///
  /// - Throws: `HTTPServerError`, for example if another process listens on the path. The socket of a process that has
  ///   died is replaced.
  public func listen(path: String) throws(HTTPServerError) {
    try server.listen(unixPath: path, mode: ControlServer.mode)
  }
}
