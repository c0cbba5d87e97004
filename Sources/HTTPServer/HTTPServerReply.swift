// HTTPServerReply.swift -- the reply to one request: sent at once, later or as a stream, on the loop's thread.
//
// libevent owns the request until it is answered or the server is freed; the server then invalidates the handle.

import CEvent
import EventLoop
import Glibc
import HTTPMessage

/// The only way to answer a request, at most once. A reply that is released without an answer sends status 500.
public final class HTTPServerReply {
  /// Owned by libevent; nil after the answer and after the server is freed.
  private(set) var request: UnsafeMutablePointer<evhttp_request>?
  /// The server clears this reference in its `deinit`, so the reference never dangles.
  private(set) unowned(unsafe) var server: HTTPServer?
  private var closeWatch: LoopEvent?
  /// Set during a streamed answer; called once, when the client has disconnected.
  var whenClosed: (() -> Void)?
  /// Whether a streamed answer is in progress.
  var isStreaming = false

  init(request: UnsafeMutablePointer<evhttp_request>, server: HTTPServer) {
    self.request = request
    self.server = server
  }

  deinit {
    guard isPending else { return }
    if isStreaming { endStream() } else { send(status: 500) }
  }

  /// Whether the request is still unanswered and the server still exists.
  public var isPending: Bool { request != nil }

  /// Sends the whole answer. libevent adds Content-Length, Date and Connection, and drops a field that contains a line
  /// break.
  ///
  /// Does nothing if the request has been answered already or the server no longer exists.
  public func send(status: Int, fields: [HTTPField] = [], body: [UInt8] = []) {
    guard let request = take() else { return }
    let headers = evhttp_request_get_output_headers(request)
    for field in fields { evhttp_add_header(headers, field.name, field.value) }
    if evhttp_request_get_command(request) == EVHTTP_REQ_HEAD {
      evhttp_add_header(headers, "Content-Length", "\(body.count)")  // libevent would send the body, too
    } else {
      evbuffer_add(evhttp_request_get_output_buffer(request), body, body.count)
    }
    evhttp_send_reply(request, Int32(status), nil, nil)
  }

  /// Closes the connection without an answer; over TCP the client sees a reset. Must not be called inside the handler.
  public func reset() {
    guard let request = take() else { return }
    guard let connection = evhttp_request_get_connection(request) else {
      evhttp_send_reply(request, 500, nil, nil)  // the connection is gone: this only frees the request
      return
    }
    let descriptor = bufferevent_getfd(evhttp_connection_get_bufferevent(connection))
    // Disconnecting a connected TCP socket sends RST; closing it would send FIN first.
    var unspecified = sockaddr()
    unspecified.sa_family = sa_family_t(AF_UNSPEC)
    withUnsafePointer(to: &unspecified) {
      _ = connect(descriptor, .init(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr>.size))
    }
    evhttp_connection_free(connection)
  }

  /// Sends no answer and keeps the connection open until the client closes its side.
  ///
  /// libevent does not read while an answer is pending, so it would not notice the close.
  public func holdUntilPeerCloses() {
    guard let request, let server, let connection = evhttp_request_get_connection(request) else { return }
    let descriptor = bufferevent_getfd(evhttp_connection_get_bufferevent(connection))
    let loop = server.loop
    // The watch retains the reply on purpose, so that the caller need not. `take` and `serverDidEnd` break the cycle.
    closeWatch = LoopEvent(on: loop, descriptor: descriptor, Interest(rawValue: Int16(EV_CLOSED))) { _ in
      // Deferred: the watch must leave libevent before its descriptor is closed, and it is in use during this call.
      loop.inNextTurn { self.reset() }
    }
  }

  /// Invalidates the handle, which libevent is about to free.
  func serverDidEnd() {
    forgetStream()
    closeWatch = nil
    request = nil
    server = nil
  }

  func take() -> UnsafeMutablePointer<evhttp_request>? {
    guard let taken = request else { return nil }
    forgetStream()
    server?.forget(taken)
    closeWatch = nil
    request = nil
    return taken
  }
}
