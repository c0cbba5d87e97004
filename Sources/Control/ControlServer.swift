// ControlServer.swift -- the daemon's control socket: HTTP on a Unix socket, for users that may open it.
//
// Resolver's loop only.

import Configuration
import EventLoop
import Forwarder
import Glibc
import HTTPServer

/// Serves the commands until the end of its life, which removes the socket's path.
public final class ControlServer {
  /// Permission bits of the socket: its user and its group.
  public static let mode: mode_t = 0o660
  private let server: HTTPServer
  private let tails: TailService

  /// `control.tail`: whether every user of the socket may watch queries, and not only root.
  public var isTailOpen: Bool {
    get { tails.isOpen }
    set { tails.isOpen = newValue }
  }

  /// Called for each connection that could not be accepted, with the system's error number.
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

  /// A server that does not listen yet.
  ///
  /// - Throws: `HTTPServerError.noServer` where memory is short.
  package init(on loop: EventLoop, _ actions: any ControlActions) throws(HTTPServerError) {
    tails = TailService(actions)
    let handler = ControlHandler(loop: loop, actions: actions, tails: tails)
    server = try HTTPServer(on: loop, limits: ControlServer.limits) { handler.handle($0, $1) }
  }

  /// Listens on a path, with mode 0660.
  ///
  /// - Throws: `HTTPServerError`; a socket that a dead daemon left is replaced, that of a living one is not.
  public func listen(path: String) throws(HTTPServerError) {
    try server.listen(unixPath: path, mode: ControlServer.mode)
  }
}
