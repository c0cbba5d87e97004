// HTTPConnection.swift -- one connection of HTTP/1.1: its requests are answered one after the other.
//
// Loop thread only. The way of a request: the stream reports octets, the reader finds a request among them, the handler gets
// it with a reply, and the reply's answer goes to the stream in one write. Only what is left of a read is kept: a request that
// is not complete, or the next ones, which wait until the answer is on its way. While an answer is awaited, the connection reads
// on, within a bound, since a streamed answer has to notice that the client has left.
//
// A refused request ends the connection. Its rest is unread, and a socket that is closed with unread octets resets the
// connection, which can cost the client the answer. So the connection says that it ends, and reads what is left for a while
// (RFC 9112 section 9.6).

import EventLoop
import HTTPMessage
import Streams

/// Owned by its server until it ends; a pending reply holds it as well.
final class HTTPConnection: QueueMember, HTTPServedConnection {
  /// Where the connection stands.
  private enum State {
    /// Between requests, or within one.
    case reading
    /// The handler has a request.
    case answering
    /// The answer's head is sent; the body is sent by and by.
    case streaming
    /// As `answering`, until the client closes.
    case holding(HTTPServerReply)
    /// An answer was given, and the connection closes when it is sent.
    case closing
    /// As `closing`, but the rest of a refused request may still come.
    case refusing
    case ended
  }

  /// The request that waits for its answer, and what it means for the answer.
  private struct Exchange {
    var number: UInt64 = 0
    var isHead = false
    /// Whether the client speaks HTTP/1.0.
    var isOld = false
    var isKept = false
  }

  /// Its place in the server's list.
  var position = 0
  /// When it began to wait for its next request; the server closes the one that has waited longest.
  private(set) var idleSince: BootInstant
  private let stream: ByteStream
  private let peer: SocketAddress?
  private weak var observer: (any HTTPConnectionObserver)?
  /// Nil when the connection has ended; the server outlives it otherwise.
  private unowned(unsafe) var server: HTTPServer?
  private var state = State.reading
  private var reader: RequestReader
  /// What has arrived behind the last request that was handled.
  private var input: [UInt8] = []
  private var hasInputEnded = false
  private var exchange = Exchange()
  private var whenClosed: (() -> Void)?
  /// The most time without progress, of the client or of what it reads.
  private var patience: Duration
  private var deadline: BootInstant
  /// What of the answer was sent when the deadline was set.
  private var sentAtDeadline: UInt64 = 0
  /// Takes the next request after those of other connections.
  private let soon = OwnedPlace()

  /// Octets that are read ahead while an answer is awaited, beyond what one read brings.
  private static let mostAhead = 4096
  /// The time in which the rest of a refused request is read.
  private static let refusalTime = Duration.seconds(2)

  /// Takes over a stream, which may be connected already.
  init(
    _ stream: ByteStream, from peer: SocketAddress?, of server: HTTPServer, _ observer: (any HTTPConnectionObserver)?
  ) {
    self.stream = stream
    self.peer = peer
    self.observer = observer
    self.server = server
    let limits = server.limits
    reader = RequestReader(
      headerOctets: limits.headerOctets, fields: limits.fields, bodyOctets: limits.bodyOctets,
      takesAnyMethod: limits.takesAnyMethod)
    patience = limits.idle
    idleSince = server.loop.now
    deadline = idleSince + patience
    stream.report = { [weak self] in self?.happened($0) }
  }

  // MARK: - For the server

  /// Whether a reply is awaited.
  var isPending: Bool {
    switch state {
    case .answering, .streaming, .holding: true
    case .reading, .closing, .refusing, .ended: false
    }
  }

  /// The time until which the client has to do something; nil while it waits for an answer.
  var due: BootInstant? {
    switch state {
    case .answering, .holding, .ended: nil
    case .streaming: stream.unsent > 0 ? deadline : nil
    case .reading, .closing, .refusing: deadline
    }
  }

  /// Ends the connection if the client has not done in time what it has to do.
  func endIfDue(_ now: BootInstant) {
    guard let due, due <= now else { return }
    // A client that reads its answer, however slowly, has more time.
    if case .refusing = state {} else if stream.unsent > 0, stream.sent != sentAtDeadline { return setDeadline() }
    if stream.unsent > 0 { cutOff() } else { end() }
  }

  /// Closes the connection; nothing is reported but, of a stream, that it has ended.
  func end() {
    guard let server else { return }
    stream.close()
    leave(server)
  }

  var waits: Bool { isPending }

  func close() { end() }

  func drain() {
    exchange.isKept = false
    input = []
    switch state {
    case .reading where stream.unsent == 0: end()
    case .reading:
      state = .closing
      setDeadline()
    case .answering, .streaming, .holding, .closing, .refusing, .ended: break
    }
  }

  /// Ends the connection for a server that ends: nothing is reported.
  func serverDidEnd() {
    server = nil
    forget()
    stream.close()
  }

  // MARK: - Reading

  private func happened(_ report: ByteStream.Report) {
    switch report {
    case .connected, .readTurnEnded: break
    case .octets(let octets): received(octets)
    case .drained: drained()
    case .inputEnded: inputEnded()
    case .ended: if let server { leave(server) }
    }
  }

  /// Whether the next request may be handled: the answers before it are sent, and the other connections had their turn.
  private var mayHandle: Bool {
    if case .reading = state { stream.unsent == 0 && !soon.isTaken } else { false }
  }

  private func received(_ octets: UnsafeBufferPointer<UInt8>) {
    guard mayHandle else { return readAhead(octets) }
    guard input.isEmpty else {
      input.append(contentsOf: octets)
      return readInput()
    }
    do throws(RequestRefusal) {
      let next = try nextRequest(in: octets.span)
      if next?.end ?? 0 < octets.count { input.append(contentsOf: octets[(next?.end ?? 0)...]) }
      if let next { handle(next.request) }
    } catch { refuse(error) }
  }

  private func readAhead(_ octets: UnsafeBufferPointer<UInt8>) {
    switch state {
    case .closing, .refusing, .ended: return
    // What would stop the reading would also hide the client's end.
    case .streaming where input.count + octets.count > HTTPConnection.mostAhead: return end()
    case .reading, .answering, .streaming, .holding: break
    }
    input.append(contentsOf: octets)
    if input.count >= HTTPConnection.mostAhead { stream.pause() }
  }

  /// The other connections had their turn.
  func placeHasCome() {
    switch state {
    case .reading: readInput()
    case .streaming, .holding: if hasInputEnded { inputEnded() }
    case .answering, .closing, .refusing, .ended: break
    }
  }

  /// Handles the request with which the kept octets begin, if it is complete.
  private func readInput() {
    do throws(RequestRefusal) {
      let next = try input.withUnsafeBufferPointer { octets throws(RequestRefusal) in
        try nextRequest(in: octets.span)
      }
      guard let next else {
        if hasInputEnded { end() } else { stream.resume() }
        return
      }
      if next.end == input.count { input = [] } else { input.removeFirst(next.end) }
      handle(next.request)
    } catch { refuse(error) }
  }

  /// Returns the request with which the octets begin, and its length; nil if it is not complete.
  private func nextRequest(
    in octets: Span<UInt8>
  ) throws(RequestRefusal) -> (request: HTTPServerRequest, end: Int)? {
    let wasInRequest = reader.isInRequest
    guard let parsed = try reader.next(octets) else {
      // A request has as much time as the wait for it has.
      if !wasInRequest { setDeadline() }
      return nil
    }
    let head = parsed.head
    exchange = Exchange(
      number: exchange.number, isHead: head.method == .head, isOld: head.isOld, isKept: head.isKept)
    // All threads share the empty array, and an array of no octets would be allocated.
    let body = parsed.body.isEmpty ? [] : octets.extracting(parsed.body).withUnsafeBufferPointer { Array($0) }
    return (HTTPServerRequest(head, body: body, peer: peer), parsed.end)
  }

  private func handle(_ request: HTTPServerRequest) {
    guard let server else { return }
    state = .answering
    observer?.connectionChanged(isIdle: false)
    server.handler(request, HTTPServerReply(to: exchange.number, on: self))
  }

  private func refuse(_ refusal: RequestRefusal) {
    guard let server else { return }
    state = .refusing
    input = []
    let body = Array("\(refusal.reason)\n".utf8)
    server.writer.begin(status: refusal.status, [], .length(body.count), .closes)
    server.writer.append(body: body)
    stream.write(server.writer.octets)
    stream.finish()
    patience = HTTPConnection.refusalTime
    if hasInputEnded, stream.unsent == 0 { end() } else { setDeadline() }
  }

  private func inputEnded() {
    hasInputEnded = true
    switch state {
    // An incomplete request never becomes complete; requests that wait for their turn are answered.
    case .reading where !soon.isTaken && stream.unsent == 0: end()
    case .refusing where stream.unsent == 0: end()
    case .streaming: end()
    case .holding: reset()
    case .reading, .answering, .closing, .refusing, .ended: break
    }
  }

  // MARK: - Answering

  /// Whether an exchange waits for its answer.
  func isPending(_ number: UInt64) -> Bool { number == exchange.number && isPending }

  /// Whether the answer of an exchange has begun and not ended.
  func isStreaming(_ number: UInt64) -> Bool {
    if case .streaming = state { number == exchange.number } else { false }
  }

  var unsent: Int { stream.unsent }
  /// Who has given the connection to the server; nil for others.
  var owner: (any HTTPConnectionObserver)? { observer }
  var peerUser: UInt32? { stream.peerUser }

  /// Sends the whole answer to the pending request.
  func answer(status: Int, _ fields: [HTTPField], _ body: [UInt8]) {
    guard let server else { return }
    server.writer.begin(status: status, fields, .length(body.count), persistence)
    if !exchange.isHead, status != 204, status != 304 { server.writer.append(body: body) }
    stream.write(server.writer.octets)
    answered()
  }

  /// Begins a streamed answer.
  func begin(status: Int, _ fields: [HTTPField], patience: Duration, whenClosed: @escaping () -> Void) {
    guard let server else { return }
    // Only its end shows a client of HTTP/1.0 where the answer ends.
    if exchange.isOld { exchange.isKept = false }
    server.writer.begin(status: status, fields, exchange.isOld ? .connection : .chunks, persistence)
    state = .streaming
    self.whenClosed = whenClosed
    self.patience = patience
    send()
    // The client has closed its direction already, which ends streams.
    if hasInputEnded { soon.take(on: server.loop, for: self) }
  }

  /// Sends a part of a streamed answer.
  func write(_ octets: [UInt8]) {
    guard let server, !octets.isEmpty, !exchange.isHead else { return }
    guard exchange.isOld else {
      server.writer.chunk(octets)
      return send()
    }
    octets.withUnsafeBytes { write($0) }
  }

  /// Ends a streamed answer.
  func endStream() {
    guard let server else { return }
    whenClosed = nil
    if !exchange.isOld, !exchange.isHead {
      server.writer.lastChunk()
      stream.write(server.writer.octets)
    }
    patience = server.limits.idle
    answered()
  }

  /// Keeps the request without an answer until the client closes its side, and then resets the connection.
  func hold(_ reply: HTTPServerReply) {
    guard case .answering = state else { return }
    state = .holding(reply)
    if hasInputEnded, let server { soon.take(on: server.loop, for: self) }
  }

  /// Closes the connection so that the client sees a reset over TCP.
  func reset() {
    whenClosed = nil
    cutOff()
  }

  /// As `reset`, where it is not the handler's will.
  private func cutOff() {
    guard let server else { return }
    stream.reset()
    leave(server)
  }

  private var persistence: ResponseWriter.Persistence {
    exchange.isKept ? (exchange.isOld ? .keeps : .usual) : .closes
  }

  private func send() {
    guard let server else { return }
    server.writer.octets.withUnsafeBytes { write($0) }
  }

  /// Sends a part of a streamed answer. The wait for the client begins when the kernel takes no more.
  private func write(_ octets: UnsafeRawBufferPointer) {
    let wasEmpty = stream.unsent == 0
    stream.write(octets)
    if wasEmpty, stream.unsent > 0 { setDeadline() }
  }

  /// The answer is given: the next request follows when it is sent.
  private func answered() {
    guard let server else { return }
    exchange.number += 1
    idleSince = server.loop.now
    observer?.connectionChanged(isIdle: true)
    guard exchange.isKept, !(hasInputEnded && input.isEmpty) else {
      state = .closing
      input = []
      if stream.unsent == 0 { end() } else { setDeadline() }
      return
    }
    state = .reading
    setDeadline()
    if stream.unsent == 0 { goOn(server) }
  }

  private func drained() {
    guard let server else { return }
    switch state {
    case .reading where hasInputEnded && input.isEmpty: end()
    case .reading: goOn(server)
    case .closing: end()
    case .refusing where hasInputEnded: end()
    case .answering, .streaming, .holding, .refusing, .ended: break
    }
  }

  /// Handles what has arrived already, after the requests of other connections.
  private func goOn(_ server: HTTPServer) {
    if !input.isEmpty { soon.take(on: server.loop, for: self) }
    if input.count < HTTPConnection.mostAhead { stream.resume() }
  }

  // MARK: - Ending

  private func setDeadline() {
    guard let server else { return }
    deadline = server.loop.now + patience
    sentAtDeadline = stream.sent
    server.needsLook(at: deadline)
  }

  private func leave(_ server: HTTPServer) {
    self.server = nil
    let closed = whenClosed
    forget()
    server.remove(self)
    closed?()
    observer?.connectionEnded()
  }

  /// Releases what may hold this connection.
  private func forget() {
    soon.cancel()
    whenClosed = nil
    input = []
    let old = state
    state = .ended
    withExtendedLifetime(old) {}
  }
}
