// HTTP2Server.swift -- what the HTTP/2 connections of a loop share: nghttp2's callbacks, buffers, and the objects of requests.
//
// A request costs no allocation of ours: its object is used again, its head lies in a buffer that all connections share, and
// its answer is copied once, into the object. Loop thread only.

import CHTTP2
import EventLoop
import Glibc
import HTTPMessage
import Streams

/// The parts of a request that decide what it asks, as octets that are valid during the call; empty where there are none.
public struct HTTP2Request {
  public let method: UnsafeBufferPointer<UInt8>
  /// `:path`. The handler may overwrite it.
  public let target: UnsafeMutableBufferPointer<UInt8>
  /// `:authority`, or else Host.
  public let host: UnsafeBufferPointer<UInt8>
  public let contentType: UnsafeBufferPointer<UInt8>
  /// The octets of the body; nil if the client has not said so.
  public let contentLength: Int?
}

/// What a request has too much of.
public enum HTTP2Excess: Sendable {
  case head
  case body
}

/// Answers requests over HTTP/2. It may answer within the calls or later.
public protocol HTTP2Handler: AnyObject {
  /// The head of a request has arrived.
  ///
  /// - Returns: the most octets of a body that it takes, which then comes by `received`; nil for none, since the request is
  ///   answered, or will be.
  func requested(_ request: HTTP2Request, _ exchange: HTTP2Exchange) -> Int?
  /// The whole body of a request has arrived; it is valid during the call.
  func received(_ body: UnsafeBufferPointer<UInt8>, _ exchange: HTTP2Exchange)
  /// A request is larger than it may be.
  func refused(_ excess: HTTP2Excess, _ exchange: HTTP2Exchange)
}

/// Learns what becomes of a connection that it has given to a server.
public protocol HTTPConnectionObserver: AnyObject {
  /// A request has come, or the last one is answered and the answer is on its way.
  func connectionChanged(isIdle: Bool)
  /// Called once. The connection must not be used any more.
  func connectionEnded()
}

/// A connection that a server serves, for the owner of its stream.
public protocol HTTPServedConnection: AnyObject {
  /// Whether a request waits for its answer while the client takes all other answers.
  var waits: Bool { get }
  /// Closes at once. Not within a call of the handler.
  func close()
  /// Takes no more requests, and closes when all are answered and sent.
  func drain()
}

/// The bounds of a request over HTTP/2.
public struct HTTP2Limits: Sendable {
  /// The octets of a header section, with 32 for each field (RFC 9113 section 6.5.2).
  public var headerOctets = 8192
  public var fields = 32
  /// Requests of a connection at once.
  public var streams = 100
  /// Octets of answers that wait for the client's window, at which further requests are refused.
  public var unsent = 262_144
  /// The most time in which a client opens no window for the answers that wait for one; then it sees a reset.
  public var patience = Duration.seconds(10)

  public init() {}
}

/// The server's side of HTTP/2, for connections that others have accepted.
public final class HTTP2Server {
  let loop: EventLoop
  let limits: HTTP2Limits
  unowned let handler: any HTTP2Handler
  let callbacks: OpaquePointer
  /// Holds the head of the request that is being read.
  let head: HeadBuffer
  /// Octets of nghttp2 for the next write.
  var output: [UInt8] = []
  private var unused: [HTTP2Exchange] = []
  private var lastNumber: UInt64 = 0
  private var date = HTTPDateText()

  /// Objects that are kept for later requests.
  private static let mostUnused = 256

  /// - Parameter handler: outlives the server.
  public init(on loop: EventLoop, limits: HTTP2Limits = HTTP2Limits(), handler: any HTTP2Handler) {
    self.loop = loop
    self.limits = limits
    self.handler = handler
    guard let callbacks = serverCallbacks() else { preconditionFailure("no memory for HTTP/2") }
    self.callbacks = callbacks
    head = HeadBuffer(capacity: limits.headerOctets)
    output.reserveCapacity(HTTP2ServerConnection.writeSize * 2)
  }

  deinit { nghttp2_session_callbacks_del(callbacks) }

  /// Serves a stream, which is connected, until its end. Nil without memory; the stream is then closed.
  public func serve(_ stream: ByteStream, observer: any HTTPConnectionObserver) -> HTTP2ServerConnection? {
    guard let connection = HTTP2ServerConnection(stream, of: self, observer) else {
      stream.close()
      return nil
    }
    return connection
  }

  func makeExchange() -> HTTP2Exchange {
    lastNumber += 1
    let exchange = unused.popLast() ?? HTTP2Exchange()
    exchange.number = lastNumber
    return exchange
  }

  func reuse(_ exchange: HTTP2Exchange) { if unused.count < HTTP2Server.mostUnused { unused.append(exchange) } }

  /// The value of Date now; valid during the call.
  func withDate<Value>(_ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value { date.withValue(body) }
}

/// The values of a head's fields, one behind the other.
final class HeadBuffer {
  let octets: UnsafeMutableBufferPointer<UInt8>
  private(set) var used = 0

  init(capacity: Int) { octets = .allocate(capacity: capacity) }

  deinit { octets.deallocate() }

  func clear() { used = 0 }

  /// Appends a value; traps if it does not fit.
  func add(_ value: UnsafeBufferPointer<UInt8>) -> HeadPart {
    precondition(value.count <= octets.count - used, "a head of more octets than are allowed")
    let part = HeadPart(begin: used, count: value.count)
    if let base = value.baseAddress { (octets.baseAddress! + used).update(from: base, count: value.count) }
    used += value.count
    return part
  }
}

/// Where a value lies in a `HeadBuffer`.
struct HeadPart {
  var begin = 0
  var count = 0
}

/// nghttp2's callbacks.
private func serverCallbacks() -> OpaquePointer? {
  var callbacks: OpaquePointer?
  guard nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { session, frame, owner in
    guard frame!.pointee.headers.cat == NGHTTP2_HCAT_REQUEST else { return 0 }
    connection(owner).began(frame!.pointee.hd.stream_id)
    return 0
  }
  nghttp2_session_callbacks_set_on_header_callback(callbacks) {
    session, frame, name, nameLength, value, length, _, owner in
    guard frame!.pointee.headers.cat == NGHTTP2_HCAT_REQUEST,
      let exchange = knownExchange(session, frame!.pointee.hd.stream_id)
    else { return 0 }
    let isTaken = connection(owner).field(
      exchange, UnsafeBufferPointer(start: name, count: nameLength), UnsafeBufferPointer(start: value, count: length))
    return isTaken ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
  }
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { session, _, number, octets, count, owner in
    connection(owner).data(
      knownExchange(session, number), number, UnsafeBufferPointer(start: octets, count: count))
    return 0
  }
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { session, frame, owner in
    let type = chttp2_type(frame)
    guard type == NGHTTP2_HEADERS || type == NGHTTP2_DATA,
      let exchange = knownExchange(session, frame!.pointee.hd.stream_id)
    else { return 0 }
    let isLast = frame!.pointee.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    if type == NGHTTP2_HEADERS, frame!.pointee.headers.cat == NGHTTP2_HCAT_REQUEST {
      connection(owner).headEnded(exchange, isLast: isLast)
    } else if isLast {
      connection(owner).bodyEnded(exchange)
    }
    return 0
  }
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { session, number, _, owner in
    if let exchange = knownExchange(session, number) { connection(owner).closed(exchange) }
    return 0
  }
  return callbacks
}

private func connection(_ owner: UnsafeMutableRawPointer?) -> HTTP2ServerConnection {
  Unmanaged<HTTP2ServerConnection>.fromOpaque(owner!).takeUnretainedValue()
}

/// The request on a stream; nil if it has none of ours.
private func knownExchange(_ session: OpaquePointer?, _ number: Int32) -> HTTP2Exchange? {
  guard let pointer = nghttp2_session_get_stream_user_data(session, number) else { return nil }
  return Unmanaged<HTTP2Exchange>.fromOpaque(pointer).takeUnretainedValue()
}
