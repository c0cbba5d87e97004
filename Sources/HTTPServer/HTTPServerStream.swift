// HTTPServerStream.swift -- streams answers of unknown length for as long as the client reads them.
//
// Loop thread only. libevent keeps the request until the answer ends, even if the connection closes before that.

import CEvent
import EventLoop
import Glibc
import HTTPMessage

extension HTTPServerReply {
  /// Octets that libevent buffers from the client during a stream; further octets stay in the socket.
  private static let mostInput = 4096

  /// Begins an answer of unknown length; `write` continues it, and `endStream` or `reset` ends it. The connection's
  /// idle timeout no longer applies; the server disconnects a client that reads nothing for `patience`.
  ///
  /// - Parameter whenClosed: called once, on the loop, when the client disconnects; never after `endStream` or `reset`.
  public func startStream(status: Int, fields: [HTTPField] = [], patience: Duration, whenClosed: @escaping () -> Void) {
    guard let request, !isStreaming, let connection = evhttp_request_get_connection(request) else { return }
    let headers = evhttp_request_get_output_headers(request)
    for field in fields { evhttp_add_header(headers, field.name, field.value) }
    self.whenClosed = whenClosed
    isStreaming = true
    let buffer = evhttp_connection_get_bufferevent(connection)
    var longest = timeval(tv_sec: Int(patience.components.seconds), tv_usec: 0)
    bufferevent_set_timeouts(buffer, nil, &longest)
    bufferevent_setwatermark(buffer, Int16(EV_READ), 0, HTTPServerReply.mostInput)
    evhttp_connection_set_closecb(connection, streamDidClose, Unmanaged.passUnretained(self).toOpaque())
    evhttp_send_reply_start(request, Int32(status), nil)
  }

  /// Sends the next part of the answer. Does nothing after the client has disconnected.
  public func write(_ octets: [UInt8]) {
    guard let request, isStreaming, let block = evbuffer_new() else { return }
    defer { evbuffer_free(block) }
    evbuffer_add(block, octets, octets.count)
    evhttp_send_reply_chunk(request, block)
  }

  /// Octets of the answer that the client's socket has not accepted yet.
  public var unsentOctets: Int {
    guard let request, let connection = evhttp_request_get_connection(request) else { return 0 }
    return evbuffer_get_length(bufferevent_get_output(evhttp_connection_get_bufferevent(connection)))
  }

  /// Ends the answer; what was written before still reaches the client.
  public func endStream() {
    guard isStreaming, let request = take() else { return }
    evhttp_send_reply_end(request)
  }

  /// The user ID of the peer of a Unix socket at the time it connected; nil for other sockets.
  public var peerUser: UInt32? {
    guard let request, let connection = evhttp_request_get_connection(request) else { return nil }
    // struct ucred: process, user, group.
    var credentials: (Int32, UInt32, UInt32) = (0, 0, 0)
    var length = socklen_t(MemoryLayout.size(ofValue: credentials))
    let descriptor = bufferevent_getfd(evhttp_connection_get_bufferevent(connection))
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
    // For other socket types the kernel returns -1.
    return credentials.1 == .max ? nil : credentials.1
  }

  /// Called before libevent frees the connection. The request remains until the answer ends.
  fileprivate func connectionDidClose() {
    guard let whenClosed, let server else { return }
    self.whenClosed = nil
    server.loop.inNextTurn {
      guard self.isStreaming else { return }
      self.endStream()
      whenClosed()
    }
  }

  /// Removes this object from libevent's callbacks.
  func forgetStream() {
    guard isStreaming else { return }
    isStreaming = false
    whenClosed = nil
    if let request, let connection = evhttp_request_get_connection(request) {
      evhttp_connection_set_closecb(connection, nil, nil)
    }
  }
}

private func streamDidClose(_ connection: OpaquePointer?, _ this: UnsafeMutableRawPointer?) {
  Unmanaged<HTTPServerReply>.fromOpaque(this!).takeUnretainedValue().connectionDidClose()
}
