// HTTPServerReply.swift -- the reply to one request: sent at once, later or as a stream, on the loop's thread.

import HTTPMessage

/// The only way to answer a request, at most once. A reply that is released without an answer sends status 500; one that is
/// released during a streamed answer ends it.
public final class HTTPServerReply {
  private let connection: HTTPConnection
  /// The number of the request on its connection.
  private let number: UInt64

  init(to number: UInt64, on connection: HTTPConnection) {
    self.number = number
    self.connection = connection
  }

  deinit {
    guard isPending else { return }
    if connection.isStreaming(number) { connection.endStream() } else { send(status: 500) }
  }

  /// Whether the request is still unanswered, and its connection and the server still exist.
  public var isPending: Bool { connection.isPending(number) }

  /// Sends the whole answer. The server adds Date if there is none, Content-Length, Connection where it is needed and, without
  /// another one, a Content-Type of plain text; it drops a field that contains a line break.
  ///
  /// Does nothing if the request has been answered already or the connection no longer exists.
  public func send(status: Int, fields: [HTTPField] = [], body: [UInt8] = []) {
    guard isPending, !connection.isStreaming(number) else { return }
    connection.answer(status: status, fields, body)
  }

  /// Closes the connection without an answer, or within one; over TCP the client sees a reset.
  public func reset() { if isPending { connection.reset() } }

  /// Sends no answer and keeps the connection open until the client closes its side. The connection retains the reply, so that
  /// the caller need not.
  public func holdUntilPeerCloses() { if isPending { connection.hold(self) } }

  /// Begins an answer of unknown length; `write` continues it, and `endStream` or `reset` ends it. The connection's
  /// idle timeout no longer applies; the server disconnects a client that reads nothing for `patience`.
  ///
  /// - Parameter whenClosed: called once, on the loop, when the client disconnects; never after `endStream` or `reset`.
  public func startStream(status: Int, fields: [HTTPField] = [], patience: Duration, whenClosed: @escaping () -> Void) {
    guard isPending, !connection.isStreaming(number) else { return }
    connection.begin(status: status, fields, patience: patience, whenClosed: whenClosed)
  }

  /// Sends the next part of the answer. Does nothing after the client has disconnected.
  public func write(_ octets: [UInt8]) { if connection.isStreaming(number) { connection.write(octets) } }

  /// Sends the next part to a client that keeps up; one that leaves more than `backlog` octets unread is cut off.
  ///
  /// - Returns: false if it was.
  public func write(_ octets: [UInt8], leavingAtMost backlog: Int) -> Bool {
    write(octets)
    guard unsentOctets > backlog else { return true }
    reset()
    return false
  }

  /// Octets of the answer that the client's socket has not accepted yet.
  public var unsentOctets: Int { isPending ? connection.unsent : 0 }

  /// Ends the answer; what was written before still reaches the client.
  public func endStream() { if connection.isStreaming(number) { connection.endStream() } }

  /// Who has given the connection to the server; nil for others, and when it has ended.
  public var owner: (any HTTPConnectionObserver)? { isPending ? connection.owner : nil }

  /// The user ID of the peer of a Unix socket at the time it connected; nil for other sockets.
  public var peerUser: UInt32? { isPending ? connection.peerUser : nil }
}
