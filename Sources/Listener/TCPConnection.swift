// TCPConnection.swift -- a client's connection, plain or with TLS: framing, pipelined queries, answers in any order.
//
// The table owns it until it is closed. A client's FIN or close_notify ends reading only: its queries are still answered.
//
// The connections of a table share what they read into, and what answers are gathered in: those that are given while a
// client's queries are read leave in one write. A connection that waits for queries has no buffer of its own.

import EventLoop
import Glibc
import Streams

/// A client's connection. Loop thread only.
public final class TCPConnection: PlacedConnection {
  public let client: SocketAddress
  public var mark = 0
  private let loop: EventLoop
  private let table: TCPConnectionTable
  private let handler: TCPListener.Handler
  private var stream: ByteStream?
  private var inFlight = 0
  /// False when no more queries are taken: the server ends.
  private var isReading = true
  private var hasInputEnded = false
  /// Whether queries of this connection are being read, so that answers are gathered.
  private var isInTurn = false
  private var isGoingOn = false
  /// What was read and is not handled: the beginning of a query, or queries that wait for room.
  private var rest: [UInt8] = []
  private var place = -1
  /// Whether the TLS handshake has not ended.
  public private(set) var shakesHands: Bool
  private let shookHands: ShookHands

  /// Called once with the outcome of the TLS handshake: whether it is complete.
  public typealias ShookHands = (TCPConnection, Bool) -> Void

  /// Octets of unsent answers at which the connection is closed, as a multiple of `TCPLimits.unsent`: answers to queries in
  /// flight still add up after the pause.
  private static let mostUnsentInAll = 4

  /// Takes over a socket that does not block.
  ///
  /// - Parameter tls: a TLS connection over it, before its handshake; nil for plain TCP.
  @discardableResult
  package init(
    _ descriptor: Int32, _ client: SocketAddress, _ tls: TLSConnection? = nil, _ loop: EventLoop,
    _ table: TCPConnectionTable, _ handler: @escaping TCPListener.Handler,
    shookHands: @escaping ShookHands = { _, _ in }
  ) {
    self.client = client
    self.loop = loop
    self.table = table
    self.handler = handler
    self.shookHands = shookHands
    shakesHands = tls != nil
    // The stream's end is the connection's.
    stream = ByteStream(descriptor, tls, as: .server, into: table.buffers.input, on: loop) { [weak self] in
      self?.handle($0)
    }
    stream?.patience = table.limits.patience
    place = table.add(self, on: loop)
  }

  /// Whether answers can still be sent.
  public var isOpen: Bool { stream != nil }

  /// The TLS connection; nil for plain TCP, and when it is closed.
  public var tls: TLSConnection? { stream?.tls }

  /// The current idle timeout, for connections with nothing in flight.
  public var idleTimeout: Duration { table.idleTimeout }

  /// Sends the response to one query of this connection.
  public func send(_ response: UnsafeBufferPointer<UInt8>) {
    inFlight -= 1
    guard let stream else { return }
    table.use(place)
    if isInTurn { table.buffers.gather(response, for: stream) } else { table.buffers.send(response, over: stream) }
    if stream.unsent > TCPConnection.mostUnsentInAll * table.limits.unsent { return close() }
    if !isInTurn { proceed() }
  }

  /// Drops one query without an answer.
  public func discard() {
    inFlight -= 1
    if !isInTurn { proceed() }
  }

  public func drain() {
    isReading = false
    stream?.pause()
    rest = []
    if !isInTurn { proceed() }
  }

  public func close() {
    guard let stream else { return }
    if isInTurn { table.buffers.discard() }
    isInTurn = false
    self.stream = nil
    stream.close()
    table.remove(place)
  }

  private func handle(_ report: ByteStream.Report) {
    switch report {
    case .connected: endHandshake(isComplete: true)
    case .octets(let octets): read(octets)
    case .readTurnEnded: endTurn()
    case .drained:
      table.use(place)
      proceed()
    case .inputEnded:
      hasInputEnded = true
      endTurn()
    case .ended:
      endHandshake(isComplete: false)
      close()
    }
  }

  private func endHandshake(isComplete: Bool) {
    guard shakesHands else { return }
    shakesHands = false
    shookHands(self, isComplete)
  }

  // MARK: - Reading

  private func read(_ octets: UnsafeBufferPointer<UInt8>) {
    isInTurn = true
    if rest.isEmpty {
      let handled = handleQueries(octets)
      if isOpen, handled < octets.count { rest = Array(octets[handled...]) }
    } else {
      rest.append(contentsOf: octets)
      handleRest()
    }
  }

  private func handleRest() {
    guard startsWithQuery(rest) else { return }
    let octets = rest
    rest = []
    let handled = octets.withUnsafeBufferPointer { handleQueries($0) }
    if isOpen, isReading, handled < octets.count { rest = Array(octets[handled...]) }
  }

  /// Whether a whole query is there, or a length that no query has.
  private func startsWithQuery(_ octets: [UInt8]) -> Bool {
    guard octets.count >= 2 else { return false }
    let length = Int(octets[0]) << 8 | Int(octets[1])
    return length < TCPConnection.shortestQuery || octets.count >= 2 + length
  }

  /// The header.
  private static let shortestQuery = 12

  /// Passes on the whole queries at the beginning of some octets, as many as there is room for; returns their octets.
  private func handleQueries(_ octets: UnsafeBufferPointer<UInt8>) -> Int {
    var position = 0
    while isOpen, isReading, octets.count - position >= 2 {
      let length = Int(octets[position]) << 8 | Int(octets[position + 1])
      guard length >= TCPConnection.shortestQuery else {
        endTurn()
        close()
        break
      }
      guard octets.count - position >= 2 + length, hasRoom else { break }
      inFlight += 1
      table.use(place)
      table.set(place, isIdle: false)
      handler(self, UnsafeBufferPointer(rebasing: octets[(position + 2)..<(position + 2 + length)]))
      position += 2 + length
    }
    return position
  }

  private var hasRoom: Bool {
    guard let stream, inFlight < table.limits.inFlight else { return false }
    return stream.unsent < table.limits.unsent
  }

  /// Sends what was answered during the turn.
  private func endTurn() {
    isInTurn = false
    guard let stream else { return }
    table.buffers.flush(to: stream)
    proceed()
  }

  // MARK: - Going on

  /// Does what the state allows: reads more or pauses, closes, tells the table whether the connection is idle.
  private func proceed() {
    guard let stream else { return }
    let waits = startsWithQuery(rest)
    let isIdle = inFlight == 0 && stream.unsent == 0
    if isIdle, !waits, !isReading || hasInputEnded { return close() }
    table.set(place, isIdle: isIdle)
    guard isReading else { return }
    if !hasRoom {
      stream.pause()
    } else if waits {
      goOnSoon()
    } else {
      stream.resume()
    }
  }

  /// Handles what waits in the next turn of the loop, so that answers given while reading do not recurse.
  private func goOnSoon() {
    guard !isGoingOn else { return }
    isGoingOn = true
    loop.inNextTurn { [weak self] in
      guard let self else { return }
      isGoingOn = false
      isInTurn = true
      handleRest()
      endTurn()
    }
  }

  public var waits: Bool {
    guard let stream else { return false }
    return inFlight > 0 && stream.unsent == 0
  }
}

/// What the connections of a loop share: each uses it only while it reads or writes. Loop thread only.
final class TCPBuffers {
  let input = ReadBuffer(capacity: 65_536)
  private let output: UnsafeMutableRawBufferPointer
  private var gathered = 0

  /// A length and the longest message.
  private static let longest = 2 + 65_535

  init() { output = .allocate(byteCount: 3 * TCPBuffers.longest, alignment: 1) }

  deinit { output.deallocate() }

  /// Keeps a response until `flush`, or passes on what there is if there is no more room.
  func gather(_ response: UnsafeBufferPointer<UInt8>, for stream: ByteStream) {
    if gathered + TCPBuffers.longest > 2 * TCPBuffers.longest { flush(to: stream) }
    gathered += frame(response).count
  }

  /// Passes on what was gathered.
  func flush(to stream: ByteStream) {
    guard gathered > 0 else { return }
    stream.write(UnsafeRawBufferPointer(rebasing: output[..<gathered]))
    gathered = 0
  }

  /// Forgets what was gathered, for a connection that is closed.
  func discard() { gathered = 0 }

  /// Sends a response, also while those to another connection are gathered.
  func send(_ response: UnsafeBufferPointer<UInt8>, over stream: ByteStream) {
    stream.write(UnsafeRawBufferPointer(frame(response)))
  }

  /// Puts a length and a message behind what is gathered (RFC 1035 section 4.2.2).
  private func frame(_ message: UnsafeBufferPointer<UInt8>) -> UnsafeMutableRawBufferPointer {
    let frame = UnsafeMutableRawBufferPointer(rebasing: output[gathered..<(gathered + 2 + message.count)])
    frame.storeBytes(of: UInt16(message.count).bigEndian, as: UInt16.self)
    if let octets = message.baseAddress { (frame.baseAddress! + 2).copyMemory(from: octets, byteCount: message.count) }
    return frame
  }
}
