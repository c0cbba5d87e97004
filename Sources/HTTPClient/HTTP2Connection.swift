// HTTP2Connection.swift -- one TLS connection with nghttp2's session over it.
//
// nghttp2 calls back only within `received` and `write`, and its callbacks only record. How streams ended is reported after
// nghttp2 has returned, since the receiver may close this connection.

import CHTTP2
import EventLoop
import Glibc
import Streams

/// A connection that carries HTTP/2 streams. Owned by its carrier; loop thread only.
final class HTTP2Connection {
  /// When it became open, the start of its age.
  private(set) var openedAt: BootInstant?
  /// When its last stream ended; the time it became open before the first one.
  private(set) var idleSince: BootInstant
  /// Whether it takes no more streams and closes after the last one.
  private(set) var isLeaving = false
  /// The server's address, as text.
  private(set) var remoteAddress = ""
  /// Whether a response arrived.
  private(set) var hasAnswered = false
  /// The streams that nghttp2 has.
  private(set) var streams: [HTTP2Stream] = []

  /// Ends when the server has sent its settings on this connection, or the connection fails.
  var handshake: Handshake?
  /// The connections that were there before the handshake.
  var predecessors: [HTTP2Connection] = []
  /// Ends when anything arrives on this connection.
  private var pinged: Handshake?
  /// The address that it is connected to or tries.
  private(set) var address: SocketAddress?
  /// When the last octet arrived.
  private var heardAt: BootInstant?

  private unowned let carrier: HTTP2Carrier
  private let settings: OriginSettings
  private let tls: TLSClient
  private let loop: EventLoop
  private var connector: Connector?
  private let deadline = OwnedTimer()
  private var wire: ByteStream?
  private var session: OpaquePointer?
  /// Octets of nghttp2 for the next write.
  private var output: [UInt8] = []
  private var hasSettings = false
  /// Whether the carrier has yet to learn that the server has shaken hands.
  private var isNew = false
  private var isClosed = false
  /// Whether nghttp2 has said goodbye, which it does if the server breaks the rules of HTTP/2: it takes requests and sends
  /// none of them.
  private var hasGivenUp = false
  /// Streams that ended during the current call to nghttp2.
  private var ended: [(stream: HTTP2Stream, end: HTTP2Stream.End)] = []

  /// Protocols that are offered, in order of preference (RFC 7301).
  static let protocols = ["h2", "http/1.1"]
  /// The most time for TCP and TLS to connect.
  private static let connectTime = Duration.seconds(10)
  /// Octets that are collected for one write: a TLS record's.
  private static let writeSize = 16_384
  /// The most octets of all responses together that the server may send unasked; each one's content is limited.
  private static let connectionWindow: Int32 = 16 << 20
  /// The most streams that are used, whatever a server allows.
  private static let mostStreams = 1 << 20

  init(_ settings: OriginSettings, _ tls: TLSClient, on loop: EventLoop, of carrier: HTTP2Carrier) {
    self.settings = settings
    self.tls = tls
    self.loop = loop
    self.carrier = carrier
    idleSince = loop.now
    deadline.set(after: Self.connectTime, on: loop, for: self) {
      $0.lose(HTTPFailure(.timeout, "no connection in time"))
    }
    let time = settings.options.userTimeout
    connector = Connector(to: carrier.order.addresses, userTimeout: time, on: loop) { [weak self] in
      self?.didConnect($0)
    }
  }

  deinit { precondition(isClosed, "a connection must be closed") }

  /// Whether TCP and TLS are connected and the server speaks HTTP/2.
  var isOpen: Bool { session != nil }

  /// How many streams the server allows at once. Before it has said so, one: servers refuse those beyond their limit.
  var streamLimit: Int {
    guard let session else { return 0 }
    guard hasSettings else { return 1 }
    let limit = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    return min(Int(limit), Self.mostStreams)
  }

  /// The server's limit, nil until it has said so.
  var knownLimit: Int? { hasSettings ? streamLimit : nil }

  /// How many more streams may begin.
  var free: Int { takesMore ? max(0, streamLimit - streams.count) : 0 }

  private var takesMore: Bool { !isLeaving && wire?.hasFailed == false }

  /// Begins a stream. It is written by `write`.
  ///
  /// - Returns: whether the connection took it.
  func begin(_ transfer: Transfer) -> Bool {
    guard let session, takesMore else { return false }
    let stream = transfer.stream ?? HTTP2Stream()
    stream.begin(transfer, on: self)
    let number = stream.submit(to: session)
    guard number > 0 else {
      stream.end()
      // The numbers of streams are used up.
      isLeaving = true
      return false
    }
    stream.number = number
    stream.position = streams.count
    streams.append(stream)
    transfer.stream = stream
    return true
  }

  /// Resets the stream of a transfer that has ended.
  func cancel(_ stream: HTTP2Stream) {
    stream.leaveTransfer()
    guard let session else { return }
    nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.number, NGHTTP2_CANCEL.rawValue)
    carrier.needsWrite(self)
  }

  /// Asks for a sign of life (RFC 9113 section 6.7).
  ///
  /// - Returns: whether it was asked.
  func ping(for handshake: Handshake) -> Bool {
    guard let session, takesMore else { return false }
    pinged = handshake
    nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
    carrier.needsWrite(self)
    return true
  }

  /// Whether nothing has arrived since it was asked for a sign of life.
  var awaitsPing: Bool { pinged != nil }

  /// The address of a server that has not said anything on this connection; nil if it has.
  var silentAddress: SocketAddress? { heardAt == nil ? address : nil }

  /// Takes no more streams; the carrier closes it after the last one.
  func leave() { isLeaving = true }

  /// Closes it, and reports the streams that have ended. The others stay in `streams`, without a connection that carries
  /// them.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    handshake?.end(HTTPFailure(.cancelled, "the connection is closed"))
    deadline.cancel()
    connector?.cancel()
    connector = nil
    nghttp2_session_del(session)
    session = nil
    wire?.close()
    wire = nil
    // The caller may close the connection before all ended streams were reported.
    report()
  }

  private func lose(_ failure: HTTPFailure) {
    guard !isClosed else { return }
    report()
    handshake?.fail(failure)
    handshake = nil
    if !isClosed { carrier.lost(self, failure) }
  }

  // MARK: - Connecting

  private func didConnect(_ result: Result<Connector.Connected, ConnectFailure>) {
    connector = nil
    switch result {
    case .failure(let failure): lose(HTTPFailure(connecting: failure.systemError))
    case .success((let descriptor, let address)):
      remoteAddress = address.host
      self.address = address
      let time = settings.options.certificateClock?.checkTime(now: .now)
      guard let connection = tls.connection(over: descriptor, checkedAt: time) else {
        Glibc.close(descriptor)
        return lose(HTTPFailure(.internal, "no memory for TLS"))
      }
      wire = ByteStream(descriptor, connection, into: carrier.input, on: loop) { [weak self] event in
        self?.happened(event)
      }
    }
  }

  private func happened(_ event: ByteStream.Report) {
    switch event {
    case .connected: didShakeHands()
    case .octets(let octets): received(octets)
    case .readTurnEnded: hasRead()
    case .inputEnded: break
    case .drained:
      // What is written may end streams, whose places others wait for.
      carrier.needsWrite(self)
      carrier.dispatch()
    case .ended(.handshake(let failure)): lose(HTTPFailure(handshake: failure, for: tls.name))
    case .ended: hasRead(HTTPFailure(.reset, "the server closed the connection"))
    }
  }

  private func didShakeHands() {
    deadline.cancel()
    guard settings.fitsPins(wire?.tls?.keyDigest) else {
      return lose(HTTPFailure(.pin, "SSL public key does not match pinned public key"))
    }
    guard wire?.tls?.chosenProtocol == Self.protocols[0] else {
      handshake?.succeed()
      return carrier.foundHTTP1(self)
    }
    guard let session = chttp2_session(carrier.callbacks, Unmanaged.passUnretained(self).toOpaque()) else {
      return lose(HTTPFailure(.internal, "no memory for HTTP/2"))
    }
    self.session = session
    openedAt = loop.now
    idleSince = loop.now
    let window = UInt32(clamping: max(65_535, settings.options.maxBody + Self.writeSize))
    let entries = [
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: window),
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: UInt32(ResponseHeaders.limit)),
    ]
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
    nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Self.connectionWindow)
    carrier.needsWrite(self)
    carrier.dispatch()
  }

  // MARK: - Reading and writing

  /// Passes what has arrived to nghttp2.
  private func received(_ octets: UnsafeBufferPointer<UInt8>) {
    guard let session else { return }
    heardAt = loop.now
    settings.isHeard(at: loop.now)
    pinged?.succeed()
    pinged = nil
    let taken = nghttp2_session_mem_recv(session, octets.baseAddress, octets.count)
    if taken < 0 { hasRead(HTTPFailure(.badHTTP, "the server's reply is not HTTP/2: \(errorText(taken))")) }
  }

  /// Reports the streams that ended, and lets the carrier use their places.
  ///
  /// - Parameter failure: why the connection has ended; nil if it goes on.
  private func hasRead(_ failure: HTTPFailure? = nil) {
    if isNew {
      isNew = false
      carrier.hasShakenHands(self, predecessors)
      predecessors = []
    }
    report()
    guard !isClosed else { return }
    if let failure {
      handshake?.fail(failure)
      handshake = nil
      return carrier.lost(self, failure)
    }
    carrier.needsWrite(self)
    carrier.dispatch()
  }

  /// Writes what nghttp2 has for the server, as far as the kernel takes it.
  func write() {
    guard let wire, let session else { return }
    var isMore = true
    while isMore, wire.unsent == 0, !wire.hasFailed {
      while isMore, output.count < Self.writeSize {
        var next: UnsafePointer<UInt8>?
        let count = nghttp2_session_mem_send(session, &next)
        if count < 0 { return lose(HTTPFailure(.internal, "nghttp2: \(errorText(count))")) }
        isMore = count > 0
        output.append(contentsOf: UnsafeBufferPointer(start: next, count: count))
      }
      guard !output.isEmpty else { break }
      wire.write(output)
      output.removeAll(keepingCapacity: true)
    }
    report()
    closeIfOver()
  }

  /// Ends the connection if nghttp2 has given it up.
  private func closeIfOver() {
    guard hasGivenUp, !isClosed else { return }
    isLeaving = true
    if !streams.isEmpty { lose(HTTPFailure(.badHTTP, "the server's reply breaks the rules of HTTP/2")) }
  }

  private func errorText(_ code: Int) -> String { String(cString: nghttp2_strerror(Int32(clamping: code))) }

  /// Reports the streams that ended, in their order. The receiver may close this connection.
  private func report() {
    guard !ended.isEmpty else { return }
    let batch = ended
    ended.removeAll(keepingCapacity: true)
    for (stream, end) in batch {
      if let transfer = stream.transfer { carrier.ended(transfer, on: self, status: stream.status, end) }
    }
  }

  // MARK: - nghttp2's callbacks

  fileprivate func settingsArrived() {
    hasSettings = true
    guard let handshake else { return }
    self.handshake = nil
    handshake.succeed()
    // Not within nghttp2's call: the carrier may close connections.
    isNew = true
  }

  /// Called when a GOAWAY frame is sent. Only nghttp2 sends it, after an error; our own code closes the connection.
  fileprivate func goAwayLeaves() { hasGivenUp = true }

  fileprivate func goAwayArrived(_ code: UInt32) {
    isLeaving = true
    if code == UInt32(NGHTTP2_ENHANCE_YOUR_CALM.rawValue) {
      for stream in streams { stream.transfer?.heardCalm = true }
    }
  }

  fileprivate func streamClosed(_ stream: HTTP2Stream, _ code: UInt32) {
    let last = streams.removeLast()
    if last !== stream {
      streams[stream.position] = last
      last.position = stream.position
    }
    if streams.isEmpty { idleSince = loop.now }
    carrier.hasRoom()
    stream.isClosed = true
    guard stream.transfer != nil else { return stream.end() }
    let end = stream.end(code)
    if case .response = end { hasAnswered = true }
    ended.append((stream, end))
  }
}

/// nghttp2's callbacks, which all connections of a carrier share.
func connectionCallbacks() -> OpaquePointer? {
  var callbacks: OpaquePointer?
  guard nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { session, frame, _ in
    knownStream(session, frame!.pointee.hd.stream_id)?.sectionBegan()
    return 0
  }
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { session, frame, owner in
    switch chttp2_type(frame) {
    case NGHTTP2_HEADERS: knownStream(session, frame!.pointee.hd.stream_id)?.requestLeaves()
    case NGHTTP2_GOAWAY: Unmanaged<HTTP2Connection>.fromOpaque(owner!).takeUnretainedValue().goAwayLeaves()
    default: break
    }
    return 0
  }
  nghttp2_session_callbacks_set_on_header_callback(callbacks) { session, frame, name, nameLength, value, length, _, _ in
    let number = frame!.pointee.hd.stream_id
    let name = UnsafeBufferPointer(start: name, count: nameLength)
    let value = UnsafeBufferPointer(start: value, count: length)
    guard let stream = knownStream(session, number), !stream.received(name.span, value.span) else { return 0 }
    // nghttp2 resets the stream, and calls back for no more of the section.
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
  }
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { session, _, number, octets, count, _ in
    let octets = UnsafeBufferPointer(start: octets, count: count)
    guard let stream = knownStream(session, number), !stream.received(octets) else { return 0 }
    return refuse(session, number)
  }
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { session, number, code, owner in
    guard let stream = knownStream(session, number) else { return 0 }
    Unmanaged<HTTP2Connection>.fromOpaque(owner!).takeUnretainedValue().streamClosed(stream, code)
    return 0
  }
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { session, frame, owner in
    switch chttp2_type(frame) {
    case NGHTTP2_HEADERS, NGHTTP2_DATA:
      let hasEnded = frame!.pointee.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
      if hasEnded { knownStream(session, frame!.pointee.hd.stream_id)?.endArrived() }
    case NGHTTP2_SETTINGS: Unmanaged<HTTP2Connection>.fromOpaque(owner!).takeUnretainedValue().settingsArrived()
    case NGHTTP2_GOAWAY:
      let code = frame!.pointee.goaway.error_code
      Unmanaged<HTTP2Connection>.fromOpaque(owner!).takeUnretainedValue().goAwayArrived(code)
    default: break
    }
    return 0
  }
  return callbacks
}

/// The stream of a number; nil if it is not one of ours.
private func knownStream(_ session: OpaquePointer?, _ number: Int32) -> HTTP2Stream? {
  guard let pointer = nghttp2_session_get_stream_user_data(session, number) else { return nil }
  return Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeUnretainedValue()
}

/// Resets a stream whose response is not accepted.
private func refuse(_ session: OpaquePointer?, _ number: Int32) -> Int32 {
  nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), number, NGHTTP2_CANCEL.rawValue)
  return 0
}
