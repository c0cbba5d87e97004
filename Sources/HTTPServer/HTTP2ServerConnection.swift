// HTTP2ServerConnection.swift -- the server's side of one HTTP/2 connection: nghttp2's session over a byte stream.
//
// nghttp2 calls back within `received` and `write`. The handler answers within these calls or later; what is answered while
// a client's octets are read leaves in one write.

import CHTTP2
import EventLoop
import Glibc
import Streams

/// A client's connection. Its observer holds it; loop thread only.
public final class HTTP2ServerConnection: HTTPServedConnection {
  unowned let server: HTTP2Server
  private let stream: ByteStream
  private weak var observer: (any HTTPConnectionObserver)?
  /// Nil when the connection has ended.
  private var session: OpaquePointer?
  /// The requests that nghttp2 has.
  private var held: [Int32: HTTP2Exchange] = [:]
  /// Requests that the client waits for: whole ones without an answer. One whose body never ends keeps no place.
  private var unanswered = 0
  /// The request whose head is incomplete.
  private var heading: HTTP2Exchange?
  /// Whether octets of the client are being handled, so that answers are gathered.
  private var isInTurn = false
  private var isDraining = false
  private var isPaused = false
  private var hasInputEnded = false
  /// Whether it has said that nothing follows.
  private var isFinishing = false
  /// Ends a client that does not end its direction.
  private let endTimer = OwnedTimer()
  /// Octets of answers for which the client has opened no window.
  private var unwritten = 0
  /// Octets of answers that nghttp2 has written.
  private var written: UInt64 = 0
  /// What was written when the timer was set.
  private var writtenBefore: UInt64 = 0
  /// Runs while answers wait for a window.
  private let windowTimer = OwnedTimer()

  /// Frames that nghttp2 has for a client that takes none.
  private static let mostQueued = 1_000
  /// Octets of bodies that the client may send before they are used: two whole ones.
  private static let window: Int32 = 131_072
  /// Octets that are collected for one write: a TLS record's.
  static let writeSize = 16_384
  /// The time for a client to end its direction after the server has.
  private static let endTime = Duration.seconds(1)
  /// Octets of a body that the handler does not take, after which the client is told so.
  private static let mostDropped = 16_384
  /// Octets of answers at which the connection is closed, as a multiple of `HTTP2Limits.unsent`: those to queries in flight
  /// still add up when the client opens no window.
  private static let mostUnwritten = 4

  init?(_ stream: ByteStream, of server: HTTP2Server, _ observer: any HTTPConnectionObserver) {
    self.server = server
    self.stream = stream
    self.observer = observer
    guard let session = chttp2_server_session(server.callbacks, Unmanaged.passUnretained(self).toOpaque()) else {
      return nil
    }
    self.session = session
    let entries = [
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: UInt32(server.limits.streams)),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: UInt32(server.limits.headerOctets)),
    ]
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
    nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, HTTP2ServerConnection.window)
    stream.report = { [weak self] in self?.happened($0) }
    write()
  }

  deinit { nghttp2_session_del(session) }

  /// Who has given the connection to the server; nil when it has ended.
  public var owner: (any HTTPConnectionObserver)? { observer }

  public var waits: Bool { unanswered > 0 && stream.unsent == 0 }

  public func drain() {
    guard let session else { return }
    drain(session)
    write()
  }

  private func drain(_ session: OpaquePointer) {
    guard !isDraining else { return }
    isDraining = true
    nghttp2_submit_goaway(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
      NGHTTP2_NO_ERROR.rawValue, nil, 0)
  }

  public func close() {
    precondition(!isInTurn, "nghttp2 would go on with a session that is gone")
    guard let session else { return }
    // A client that has just sent a request may send it again (RFC 9113 section 6.8).
    drain(session)
    if stream.unsent == 0, !stream.isClosed { flush(session) }
    self.session = nil
    nghttp2_session_del(session)
    for exchange in held.values { exchange.end() }
    held = [:]
    heading = nil
    stream.close()
    observer?.connectionEnded()
    observer = nil
  }

  private func happened(_ report: ByteStream.Report) {
    switch report {
    case .connected: break
    case .octets(let octets): received(octets)
    case .readTurnEnded: write()
    case .drained: write()
    case .inputEnded:
      hasInputEnded = true
      write()
    case .ended: close()
    }
  }

  private func received(_ octets: UnsafeBufferPointer<UInt8>) {
    guard let session else { return }
    isInTurn = true
    let taken = nghttp2_session_mem_recv(session, octets.baseAddress, octets.count)
    isInTurn = false
    // A flood, or not HTTP/2 at all.
    if taken < 0 { return close() }
    keepHead()
  }

  /// Writes what nghttp2 has for the client, as far as the kernel takes it.
  private func write() {
    guard let session, !isInTurn else { return }
    flush(session)
    goOn()
  }

  private func flush(_ session: OpaquePointer) {
    var isMore = true
    while isMore, stream.unsent == 0, !stream.hasFailed {
      isInTurn = true
      while isMore, server.output.count < HTTP2ServerConnection.writeSize {
        var next: UnsafePointer<UInt8>?
        let count = nghttp2_session_mem_send(session, &next)
        isMore = count > 0
        if isMore { server.output.append(contentsOf: UnsafeBufferPointer(start: next, count: count)) }
      }
      isInTurn = false
      guard !server.output.isEmpty else { break }
      stream.write(server.output)
      server.output.removeAll(keepingCapacity: true)
    }
  }

  /// Says that nothing follows, and closes when the client has: a socket that is closed with unread octets would reset the
  /// connection, and with it what the client has not read.
  private func finish() {
    guard !hasInputEnded else { return close() }
    guard !isFinishing else { return }
    isFinishing = true
    stream.finish()
    endTimer.set(after: HTTP2ServerConnection.endTime, on: server.loop, for: self) { $0.close() }
  }

  /// Ends, pauses or goes on reading, as the state allows.
  private func goOn() {
    guard let session else { return }
    let hasGivenUp = nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    // A client that sends nothing more completes no request and opens no window.
    let isOver = hasInputEnded ? unanswered == 0 : isDraining && held.isEmpty
    if hasGivenUp || isOver, stream.unsent == 0 { return finish() }
    if unwritten > HTTP2ServerConnection.mostUnwritten * server.limits.unsent { return close() }
    if unwritten > 0 || windowTimer.isSet { awaitWindow() }
    // What nghttp2 answers by itself, as the refusal of a stream, waits there meanwhile.
    if nghttp2_session_get_outbound_queue_size(session) > HTTP2ServerConnection.mostQueued { return close() }
    let mustPause = stream.unsent > 0
    guard mustPause != isPaused else { return }
    isPaused = mustPause
    if mustPause { stream.pause() } else { stream.resume() }
  }

  /// Reading goes on meanwhile, since the client opens windows by frames. Octets that the kernel does not take are the
  /// stream's, which has a time of its own.
  private func awaitWindow() {
    guard unwritten > 0, stream.unsent == 0 else { return windowTimer.cancel() }
    guard !windowTimer.isSet else { return }
    writtenBefore = written
    windowTimer.set(after: server.limits.patience, on: server.loop, for: self) { $0.windowTimeEnded() }
  }

  private func windowTimeEnded() {
    if written != writtenBefore { return awaitWindow() }
    stream.reset()
    close()
  }

  // MARK: - nghttp2's callbacks

  func began(_ number: Int32) {
    let exchange = server.makeExchange()
    exchange.begin(on: self, number)
    held[number] = exchange
    heading = exchange
    server.head.clear()
    nghttp2_session_set_stream_user_data(session, number, Unmanaged.passUnretained(exchange).toOpaque())
  }

  /// The client waits for the answer from now on.
  private func beginWait(for exchange: HTTP2Exchange) {
    guard !exchange.isAwaited else { return }
    exchange.isAwaited = true
    unanswered += 1
    observer?.connectionChanged(isIdle: false)
  }

  private func endWait(for exchange: HTTP2Exchange) {
    guard exchange.isAwaited else { return }
    exchange.isAwaited = false
    unanswered -= 1
  }

  /// Heads of this many times the limit are still answered.
  private static let mostHead = 4

  /// Keeps an incomplete head apart from the buffer that all connections share.
  private func keepHead() {
    // What is kept already has not been touched since: the shared buffer may have the head of another connection.
    guard let heading, heading.partialHead == nil else { return }
    heading.partialHead = Array(server.head.octets[..<server.head.used])
  }

  private func restoreHead(_ exchange: HTTP2Exchange) {
    guard let partial = exchange.partialHead else { return }
    server.head.clear()
    _ = partial.withUnsafeBufferPointer { server.head.add($0) }
    exchange.partialHead = nil
  }

  /// Takes one field of a head. False ends the connection: nghttp2 would go on to expand what one octet stands for.
  func field(
    _ exchange: HTTP2Exchange, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    restoreHead(exchange)
    exchange.fields += 1
    // RFC 9113 section 6.5.2.
    exchange.headOctets += name.count + value.count + 32
    guard exchange.headOctets <= server.limits.headerOctets, exchange.fields <= server.limits.fields else {
      exchange.isTooLarge = true
      return exchange.headOctets <= HTTP2ServerConnection.mostHead * server.limits.headerOctets
    }
    // nghttp2 refuses names in upper case, and a pseudo-header that comes twice.
    let name = name.span
    if name.equals(":path") {
      exchange.target = server.head.add(value)
    } else if name.equals(":method") {
      exchange.method = server.head.add(value)
      exchange.isHead = value.span.equals("HEAD")
    } else if name.equals(":authority") || name.equals("host") && exchange.host.count == 0 {
      exchange.host = server.head.add(value)
    } else if name.equals("content-type") {
      exchange.contentType = server.head.add(value)
    } else if name.equals("content-length") {
      // nghttp2 has seen that it is a number.
      exchange.contentLength = value.reduce(0) { ($0 ?? 0).addingDigit($1) }
    }
    return true
  }

  func headEnded(_ exchange: HTTP2Exchange, isLast: Bool) {
    restoreHead(exchange)
    heading = nil
    exchange.isWhole = isLast
    // A client that has to take answers first may send the request again (RFC 9113 section 8.7).
    guard unwritten < server.limits.unsent else { return reset(exchange, NGHTTP2_REFUSED_STREAM) }
    if isLast { beginWait(for: exchange) }
    guard !exchange.isTooLarge else { return server.handler.refused(.head, exchange) }
    let octets = server.head.octets
    func part(_ part: HeadPart) -> UnsafeMutableBufferPointer<UInt8> {
      UnsafeMutableBufferPointer(rebasing: octets[part.begin..<(part.begin + part.count)])
    }
    let request = HTTP2Request(
      method: UnsafeBufferPointer(part(exchange.method)), target: part(exchange.target),
      host: UnsafeBufferPointer(part(exchange.host)), contentType: UnsafeBufferPointer(part(exchange.contentType)),
      contentLength: exchange.contentLength)
    exchange.bodyLimit = server.handler.requested(request, exchange)
    if isLast { return bodyEnded(exchange) }
    if exchange.bodyLimit == nil, exchange.isPending { beginWait(for: exchange) }
  }

  /// Takes nothing more of a request.
  private func reset(_ exchange: HTTP2Exchange, _ code: nghttp2_error_code) {
    exchange.isWhole = true
    nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), exchange.stream, code.rawValue)
  }

  func data(_ exchange: HTTP2Exchange?, _ number: Int32, _ octets: UnsafeBufferPointer<UInt8>) {
    guard let exchange, let limit = exchange.bodyLimit, !exchange.isAnswered else {
      // What the handler does not take must not hold up other requests.
      nghttp2_session_consume(session, number, octets.count)
      if let exchange { drop(octets.count, of: exchange) }
      return
    }
    exchange.unconsumed += octets.count
    guard exchange.body.count + octets.count <= limit else {
      exchange.bodyLimit = nil
      return server.handler.refused(.body, exchange)
    }
    exchange.add(toBody: octets)
  }

  func bodyEnded(_ exchange: HTTP2Exchange) {
    exchange.isWhole = true
    guard exchange.bodyLimit != nil, !exchange.isAnswered else { return }
    exchange.bodyLimit = nil
    beginWait(for: exchange)
    exchange.body.withUnsafeBufferPointer { server.handler.received($0, exchange) }
  }

  /// Ends the body of a request that is answered, if it goes on for long (RFC 9113 section 8.1). Not at once: clients that
  /// are still sending then may overlook the answer, as curl 7.88. Nor before the answer is written, whose rest nghttp2
  /// would drop.
  private func drop(_ count: Int, of exchange: HTTP2Exchange) {
    exchange.dropped += count
    guard exchange.dropped > HTTP2ServerConnection.mostDropped, exchange.isSent, !exchange.isWhole else { return }
    reset(exchange, NGHTTP2_NO_ERROR)
  }

  func closed(_ exchange: HTTP2Exchange) {
    if exchange.unconsumed > 0 { nghttp2_session_consume_connection(session, exchange.unconsumed) }
    endWait(for: exchange)
    if heading === exchange { heading = nil }
    held[exchange.stream] = nil
    unwritten -= exchange.unwritten
    exchange.end()
    server.reuse(exchange)
    if unanswered == 0 { observer?.connectionChanged(isIdle: true) }
  }

  // MARK: - For the exchanges

  /// nghttp2 has written octets of an answer.
  func wrote(_ count: Int) {
    unwritten -= count
    written &+= UInt64(count)
  }

  func submit(_ exchange: HTTP2Exchange, _ fields: UnsafeMutableBufferPointer<nghttp2_nv>, _ count: Int) {
    guard let session else { return }
    endWait(for: exchange)
    unwritten += exchange.unwritten
    if exchange.unconsumed > 0 {
      nghttp2_session_consume_connection(session, exchange.unconsumed)
      exchange.unconsumed = 0
    }
    var provider = exchange.provider
    if exchange.isHead {
      nghttp2_submit_response(session, exchange.stream, fields.baseAddress, count, nil)
    } else {
      nghttp2_submit_response(session, exchange.stream, fields.baseAddress, count, &provider)
    }
    if !isInTurn { write() }
  }
}

extension Int {
  /// The number with one more decimal digit; a number that no body has if it is too large.
  fileprivate func addingDigit(_ octet: UInt8) -> Int {
    self > 1 << 40 ? self : self * 10 + Int(octet &- UInt8(ascii: "0"))
  }
}
