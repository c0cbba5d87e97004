// ClientConnection.swift -- a client's connection to an encrypted listener, plain or over TLS; every wait is bounded.

import Foundation
import TLSTestSupport

/// A connection, and what has come over it.
final class ClientConnection {
  /// How the daemon ended a connection.
  enum End: Equatable {
    /// By close_notify.
    case notified
    /// By FIN or a reset alone.
    case closed
  }

  let socket: Socket
  /// Nil for a plain one.
  let tls: ClientStream?
  /// What has come and was not taken.
  private(set) var received: [UInt8] = []
  private(set) var end: End?

  /// Connects, and shakes hands.
  ///
  /// - Parameters:
  ///   - prologue: what is sent before the handshake.
  ///   - room: the octets of the receive buffer; nil for the system's default.
  ///   - offer: nil for a plain connection.
  /// - Throws: `HandshakeFailure`
  init(
    to address: Address, from host: String? = nil, prologue: [UInt8] = [], room: Int32? = nil,
    _ offer: TLSOffer? = TLSOffer()
  ) throws {
    let socket = try Socket(SOCK_STREAM, family: address.family, boundTo: host.map { Address($0, 0) })
    if var room {
      setsockopt(socket.descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
    }
    try socket.connect(to: address)
    if !prologue.isEmpty { socket.send(prologue) }
    self.socket = socket
    tls = try offer.map { try ClientStream(socket.descriptor, $0) }
  }

  /// Sends everything; false if the daemon does not take it.
  @discardableResult
  func send(_ octets: [UInt8]) -> Bool { tls?.write(octets) ?? socket.send(octets) }

  func send(_ text: String) { send(Array(text.utf8)) }

  /// Waits for what comes next; false if nothing comes in time, or at the end.
  @discardableResult
  func receiveMore(within duration: Duration = Socket.patience) -> Bool {
    guard end == nil else { return false }
    guard let tls else {
      guard let octets = socket.receive(within: duration) else { return false }
      if octets.isEmpty { end = .closed }
      received += octets
      return !octets.isEmpty
    }
    switch tls.read(milliseconds: Deadline(duration).milliseconds) {
    case .octets(let octets): received += octets
    case .nothing: return false
    case .notified: end = .notified
    case .ended: end = .closed
    }
    return end == nil
  }

  /// Takes this many octets.
  func take(_ count: Int, within duration: Duration = Socket.patience) throws -> [UInt8] {
    let deadline = Deadline(duration)
    while received.count < count {
      guard receiveMore(within: deadline.remaining) else {
        throw Failure("\(received.count) octets of \(count), then \(end.map { "\($0)" } ?? "nothing")")
      }
    }
    defer { received.removeFirst(count) }
    return Array(received[..<count])
  }

  /// Waits for the end, and keeps what comes before; nil if there is none in time.
  func waitForEnd(within duration: Duration = Socket.patience) -> End? {
    let deadline = Deadline(duration)
    while end == nil, !deadline.isOver { receiveMore(within: deadline.remaining) }
    return end
  }

  /// Says that nothing follows, by close_notify and FIN or by FIN alone.
  func endInput(notifies: Bool) {
    if notifies { tls?.sayGoodbye() }
    shutdown(socket.descriptor, Int32(SHUT_WR))
  }

  // MARK: - DNS over TLS

  /// Sends a query with its length.
  func send(_ query: TestQuery) { send(framed(query.octets)) }

  /// The next message, without its length.
  func nextMessage(within duration: Duration = Socket.patience) throws -> [UInt8] {
    let length = try take(2, within: duration)
    return try take(Int(length[0]) << 8 | Int(length[1]), within: duration)
  }

  /// Asks, and waits for the response.
  @discardableResult
  func ask(_ query: TestQuery) throws -> Reply {
    send(query)
    return try Reply(nextMessage(), to: query)
  }

  @discardableResult
  func ask(_ name: String, _ type: String = "A") throws -> Reply { try ask(TestQuery(name, type)) }

  /// The responses to some queries, in any order.
  func replies(to queries: [TestQuery]) throws -> [Reply] {
    var byID: [UInt16: Reply] = [:]
    for _ in queries {
      let octets = try nextMessage()
      guard octets.count > 2, let query = queries.first(where: { $0.id == UInt16(octets[0]) << 8 | UInt16(octets[1]) })
      else { throw Failure("a response to no query: \(octets)") }
      byID[query.id] = try Reply(octets, to: query)
    }
    return try queries.map { query in
      guard let reply = byID[query.id] else { throw Failure("two responses to one query, none to \(query)") }
      return reply
    }
  }
}
