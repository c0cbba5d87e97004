// HTTP2Carrier.swift -- carries transfers by HTTP/2 streams, on as many connections as they need.

import CHTTP2
import EventLoop
import HTTPMessage
import Streams

/// The HTTP/2 connections to one server. Owned by its generation; loop thread only.
final class HTTP2Carrier: Carrier {
  unowned var generation: Generation!
  /// nghttp2's callbacks, owned.
  let callbacks: OpaquePointer?
  /// Where all connections read to.
  let input = ReadBuffer(capacity: 32_768)

  private let settings: OriginSettings
  let order: ConnectionOrder
  private let loop: EventLoop
  /// Connections in the order in which they were opened. Transfers go to the first that has room, so that the last ones
  /// become idle.
  private var connections: [HTTP2Connection] = []
  /// Connections that have something to write.
  private var unwritten: [HTTP2Connection] = []
  private var isDispatching = false
  /// Whether something has changed since `dispatch` last looked.
  private var isStale = false
  private var isClosed = false
  /// Addresses in a row that did not shake hands.
  private var failedAddresses = 0
  /// Fires when another connection may be opened, after the last one failed; nil if one may be opened now.
  private let growthPause = OwnedTimer()
  private let sweep = OwnedTimer()
  /// Fires when connections that allow no streams are given up; nil if there are none.
  private let streamsPause = OwnedTimer()

  /// How long the only connection stays without streams, as with libcurl.
  private static let idleTime = Duration.seconds(118)
  /// The pause after a connection failed while others are open.
  private static let pauseTime = Duration.seconds(1)
  /// How many streams a server is believed to allow before it says so (RFC 9113 section 6.5.2 recommends no fewer).
  private static let usualStreams = 100
  /// How many connections there may be beyond the maximum while others leave.
  private static let mostExtra = 2
  /// How often a transfer starts again that was not processed.
  private static let mostRepeats = 5

  init(_ settings: OriginSettings, _ order: ConnectionOrder, on loop: EventLoop) {
    self.settings = settings
    self.order = order
    self.loop = loop
    callbacks = connectionCallbacks()
  }

  deinit {
    precondition(isClosed, "a carrier must be closed")
    nghttp2_session_callbacks_del(callbacks)
  }

  var connectionCount: Int { connections.count }

  var isProven: Bool { connections.contains { $0.hasAnswered } }

  var isOpen: Bool { connections.contains { $0.isOpen && !$0.isLeaving && $0.streamLimit > 0 } }

  var isBusy: Bool { isOpen }

  func hasConnection(_ transfer: Transfer) -> Bool { transfer.stream?.connection != nil }

  func address(of transfer: Transfer) -> SocketAddress? {
    if let connection = transfer.stream?.connection { return connection.address }
    // It has waited for a connection on which the server says nothing.
    return connections.contains(where: \.isOpen) ? nil : connections.first?.address
  }

  func wasSent(_ transfer: Transfer) -> Bool { transfer.stream?.wasSent ?? false }

  func start(_: [Transfer]) { dispatch() }

  func detach(_ transfer: Transfer) {
    guard let stream = transfer.stream, let connection = stream.connection else { return }
    if stream.isClosed {
      stream.end()
    } else {
      // nghttp2 still has the stream, so that the transfer's next request needs another one.
      transfer.stream = nil
      connection.cancel(stream)
    }
  }

  func close() {
    isClosed = true
    sweep.cancel()
    growthPause.cancel()
    streamsPause.cancel()
    unwritten = []
    for connection in connections { connection.close() }
    connections = []
  }

  /// Opens a connection, beginning with an address that no waiting connection has, and asks the open ones for a sign of life.
  func shakeHands(_ handshake: Handshake) {
    guard let tls = settings.tls, !isClosed else {
      return handshake.end(HTTPFailure(.cancelled, "the connections are closed"))
    }
    let old = connections
    handshake.awaitsOthers = old.count { $0.ping(for: handshake) } > 0
    for address in old.compactMap(\.silentAddress) where order.putLast(address) { break }
    let fresh = HTTP2Connection(settings, tls, on: loop, of: self)
    fresh.handshake = handshake
    fresh.predecessors = old
    connections.append(fresh)
    armSweep()
    dispatch()
  }

  /// The server has shaken hands on a new connection. Older ones that have been silent since it was begun are dead: their
  /// requests are sent once more.
  func hasShakenHands(_ connection: HTTP2Connection, _ predecessors: [HTTP2Connection]) {
    for old in predecessors where connections.contains(where: { $0 === old }) && (!old.isOpen || old.awaitsPing) {
      lost(old, HTTPFailure(.reset, "the server does not answer on this connection any more"), isReplaced: true)
    }
  }

  /// Lets the current or next `dispatch` write to a connection.
  func needsWrite(_ connection: HTTP2Connection) {
    willWrite(connection)
    isStale = true
  }

  /// Lets the current `dispatch` use the place of a stream that has ended.
  func hasRoom() { isStale = true }

  private func willWrite(_ connection: HTTP2Connection) {
    if !unwritten.contains(where: { $0 === connection }) { unwritten.append(connection) }
  }

  /// Begins waiting transfers as far as there is room, opens connections for the others, and writes.
  func dispatch() {
    guard !isClosed else { return }
    isStale = true
    guard !isDispatching else { return }
    isDispatching = true
    defer { isDispatching = false }
    while isStale, !isClosed {
      isStale = false
      closeLeft()
      beginWaiting()
      grow()
      let batch = unwritten
      unwritten = []
      for connection in batch where !isClosed { connection.write() }
    }
  }

  private func beginWaiting() {
    guard generation.waitingCount > 0 else { return }
    var free = connections.reduce(0) { $0 + $1.free }
    for connection in connections {
      while connection.free > 0, let transfer = generation.next(free: free) {
        free -= 1
        guard connection.begin(transfer) else {
          generation.takeBack([transfer])
          break
        }
        willWrite(connection)
      }
    }
  }

  private func grow() {
    // Streams on connections that take no more need no place on another one.
    var (usable, transfers) = (0, generation.waitingCount)
    var streams: Int?
    var isFull = true
    for connection in connections where !connection.isLeaving {
      usable += 1
      transfers += connection.streams.count
      guard let limit = connection.knownLimit else { continue }
      streams = min(streams ?? limit, limit)
      isFull = isFull && limit == 0
    }
    guard transfers > 0, usable == 0 || !growthPause.isSet else { return }
    // A server that allows no stream at all may allow some on another connection, a while later.
    if streams != nil, isFull { return awaitStreams() }
    // The first connection says how many streams the others will carry.
    let leaving = connections.count - usable
    var most = settings.options.maxConnections - leaving
    // Transfers do not wait for connections that leave, but for a few.
    if most < 1 { most = leaving < settings.options.maxConnections + Self.mostExtra ? 1 : 0 }
    if streams == nil { most = min(most, 1) }
    let wanted = ConnectionGrowth.connections(for: transfers, streams: streams ?? Self.usualStreams, most: most)
    guard usable < wanted, let tls = settings.tls else { return }
    for _ in usable..<wanted {
      connections.append(HTTP2Connection(settings, tls, on: loop, of: self))
    }
    armSweep()
  }

  // MARK: - Ends

  /// A stream has ended, and is no longer its connection's.
  func ended(_ transfer: Transfer, on connection: HTTP2Connection, status: Int, _ end: HTTP2Stream.End) {
    guard !isClosed else { return }
    switch end {
    case .response:
      let response = transfer.takeResponse(status: status, httpVersion: 2, remoteAddress: connection.remoteAddress)
      generation.finish(transfer, .response(response))
    case .notProcessed where transfer.heardCalm: generation.finish(transfer, .failure(.calm))
    case .notProcessed where transfer.repeats < Self.mostRepeats: generation.startAgain(transfer)
    case .notProcessed:
      let failure = HTTPFailure(.reset, "the server refused the request's stream \(Self.mostRepeats + 1) times")
      generation.finish(transfer, .failure(failure))
    case .failure(let failure): generation.finish(transfer, .failure(failure))
    }
    if !isClosed { generation.endIfDrained() }
  }

  /// A connection was not opened or has ended.
  ///
  /// - Parameter isReplaced: whether another one has been opened in its place, since the server does not answer on it.
  func lost(_ connection: HTTP2Connection, _ failure: HTTPFailure, isReplaced: Bool = false) {
    let wasOpen = connection.isOpen
    remove(connection)
    let mayRepeat = connection.hasAnswered || isReplaced
    for stream in connection.streams where !isClosed { fail(stream, failure, mayRepeat: mayRepeat) }
    guard !isClosed else { return }
    if wasOpen {
      failedAddresses = 0
    } else if let address = connection.silentAddress, order.putLast(address),
      failedAddresses < order.addresses.count - 1
    {
      // The next address may shake hands.
      failedAddresses += 1
    } else {
      failedAddresses = 0
      if connections.allSatisfy(\.isLeaving) { generation.failWaiting(failure) } else { pauseGrowth() }
    }
    guard !isClosed else { return }
    generation.endIfDrained()
    dispatch()
  }

  /// Gives the connections up that allow no streams, unless they allow some soon.
  private func awaitStreams() {
    guard !streamsPause.isSet else { return }
    streamsPause.set(after: Self.pauseTime, on: loop, for: self) {
      for connection in $0.connections where connection.knownLimit == 0 { connection.leave() }
      $0.dispatch()
    }
  }

  /// Opens no connection for a while, and then those that are wanted.
  private func pauseGrowth() { growthPause.set(after: Self.pauseTime, on: loop, for: self) { $0.dispatch() } }

  /// Ends a transfer whose connection has ended. A server that closes a connection it has used may not have read a request
  /// that was on its way: that one starts again, once.
  private func fail(_ stream: HTTP2Stream, _ failure: HTTPFailure, mayRepeat: Bool) {
    guard let transfer = stream.transfer else { return }
    if transfer.heardCalm {
      generation.finish(transfer, .failure(.calm))
    } else if let refusal = transfer.refusal {
      generation.finish(transfer, .failure(refusal))
    } else if mayRepeat, !stream.hasResponse, transfer.repeats == 0, failure.kind == .reset {
      generation.startAgain(transfer)
    } else {
      generation.finish(transfer, .failure(failure))
    }
  }

  private func remove(_ connection: HTTP2Connection) {
    connections.removeAll { $0 === connection }
    unwritten.removeAll { $0 === connection }
    connection.close()
  }

  /// The server speaks HTTP/1.1 on a connection. Beside others that speak HTTP/2, such as those to another machine of a
  /// farm, it only counts as one that failed.
  func foundHTTP1(_ connection: HTTP2Connection) {
    guard connections.contains(where: { $0.isOpen && !$0.isLeaving }) else { return generation.fallBackToCurl() }
    lost(connection, HTTPFailure(.badHTTP, "the server speaks HTTP/2 on some connections only"))
  }

  // MARK: - Idle connections

  /// Closes connections that take no more streams and have none.
  private func closeLeft() {
    for connection in connections {
      if let opened = connection.openedAt, loop.now - opened >= settings.options.maxAge { connection.leave() }
      if connection.isLeaving, connection.streams.isEmpty { remove(connection) }
    }
  }

  private func armSweep() {
    let time = connections.count > 1 ? settings.options.surplusTime : Self.idleTime
    sweep.set(after: time, on: loop, for: self) {
      $0.closeIdle()
      if !$0.connections.isEmpty { $0.armSweep() }
    }
  }

  private func closeIdle() {
    for connection in connections.reversed() where connection.isOpen && connection.streams.isEmpty {
      let time = connections.count > 1 ? settings.options.surplusTime : Self.idleTime
      if loop.now - connection.idleSince >= time { remove(connection) }
    }
  }
}
