// HTTPServerReply.swift -- the answer that one request waits for; given at once, later or bit by bit, on the loop's thread.
//
// libevent keeps the request until it is answered, or until the server ends; the server then takes the handle away.

import CEvent
import EventLoop
import Glibc

/// The one chance to answer a request. A reply that is let go without an answer answers 500 by itself.
public final class HTTPServerReply {
  /// Owned by libevent; nil once answered, or when the server has ended.
  private(set) var request: UnsafeMutablePointer<evhttp_request>?
  /// The server takes itself out of here when it ends, so the reference never outlives it.
  private(set) unowned(unsafe) var server: HTTPServer?
  private var closeWatch: LoopEvent?
  /// Set while an answer of unknown length is given: called once, when the client has gone.
  var whenClosed: (() -> Void)?
  /// Whether such an answer has begun.
  var isStreaming = false

  init(request: UnsafeMutablePointer<evhttp_request>, server: HTTPServer) {
    self.request = request
    self.server = server
  }

  deinit {
    guard isPending else { return }
    if isStreaming { endStream() } else { send(status: 500) }
  }

  /// Whether the request still waits for its answer.
  public var isPending: Bool { request != nil }

  /// Answers. Content-Length, Date and Connection are added; a field that holds a line break is left out.
  ///
  /// A no-op where the request was answered before, or the server has ended.
  public func send(status: Int, fields: [HTTPServerField] = [], body: [UInt8] = []) {
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

  /// Ends the connection without an answer; over TCP the client sees a reset. Not to be called inside the handler.
  public func reset() {
    guard let request = take() else { return }
    guard let connection = evhttp_request_get_connection(request) else {
      evhttp_send_reply(request, 500, nil, nil)  // the connection is gone: this only frees the request
      return
    }
    let descriptor = bufferevent_getfd(evhttp_connection_get_bufferevent(connection))
    // Disconnecting a connected TCP socket sends a reset; closing it would send an orderly end first.
    var unspecified = sockaddr()
    unspecified.sa_family = sa_family_t(AF_UNSPEC)
    withUnsafePointer(to: &unspecified) {
      _ = connect(descriptor, .init(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr>.size))
    }
    evhttp_connection_free(connection)
  }

  /// Gives no answer and keeps the connection open until the client closes its side of it.
  ///
  /// libevent does not read while an answer is due, so it would not see the close.
  public func holdUntilPeerCloses() {
    guard let request, let server, let connection = evhttp_request_get_connection(request) else { return }
    let descriptor = bufferevent_getfd(evhttp_connection_get_bufferevent(connection))
    let loop = server.loop
    // The watch holds the reply on purpose: nobody else has to. `take` and `serverDidEnd` undo it.
    closeWatch = LoopEvent(on: loop, descriptor: descriptor, Interest(rawValue: Int16(EV_CLOSED))) { _ in
      // Not at once: the watch has to leave libevent before its descriptor is closed, and now it is in use.
      loop.schedule(after: .zero) { self.reset() }
    }
  }

  /// Takes the handle away: libevent is about to free it.
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
