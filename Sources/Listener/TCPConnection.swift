// TCPConnection.swift -- a client's connection: framing, pipelined queries, answers in any order.
//
// The table owns it until it is closed. A client's FIN ends reading only: queries in flight are still answered.

import CEvent
import EventLoop
import Glibc

/// A client's connection. Loop thread only.
public final class TCPConnection {
  public let client: SocketAddress
  private let loop: EventLoop
  private let table: TCPConnectionTable
  private let handler: TCPListener.Handler
  private var buffers: OpaquePointer?
  private var inFlight = 0
  private var isReading = true
  private var place = -1

  /// Queries in flight on one connection at which reading pauses.
  private static let maxInFlight = 256
  /// Octets of unsent answers at which reading pauses.
  private static let mostUnsent = 1 << 20
  /// Octets of unsent answers at which the connection is closed: answers to queries in flight still add up after the pause.
  private static let mostUnsentInAll = 4 << 20

  package init?(
    _ descriptor: Int32, _ client: SocketAddress, _ loop: EventLoop, _ table: TCPConnectionTable,
    _ handler: @escaping TCPListener.Handler
  ) {
    guard let buffers = bufferevent_socket_new(loop.base, descriptor, Int32(BEV_OPT_CLOSE_ON_FREE.rawValue)) else {
      return nil
    }
    self.client = client
    self.loop = loop
    self.table = table
    self.handler = handler
    self.buffers = buffers
    let context = Unmanaged.passUnretained(self).toOpaque()
    bufferevent_setcb(buffers, connectionCanRead, connectionHasWritten, connectionEvent, context)
    bufferevent_setwatermark(buffers, Int16(EV_READ), 0, 2 * (2 + 65535))
    bufferevent_enable(buffers, Int16(EV_READ | EV_WRITE))
    place = table.add(self, on: loop)
  }

  /// Whether answers can still be sent.
  public var isOpen: Bool { buffers != nil }

  /// The current idle timeout, for connections with nothing in flight.
  public var idleTimeout: Duration { table.idleTimeout }

  /// Sends the response to one query of this connection.
  public func send(_ response: UnsafeBufferPointer<UInt8>) {
    inFlight -= 1
    guard let buffers else { return }
    table.use(place)
    var length = UInt16(response.count).bigEndian
    bufferevent_write(buffers, &length, 2)
    bufferevent_write(buffers, response.baseAddress, response.count)
    if evbuffer_get_length(bufferevent_get_output(buffers)) > TCPConnection.mostUnsentInAll { return close() }
    if isReading { readMore() } else { closeWhenDone() }
  }

  /// Drops one query without an answer.
  public func discard() {
    inFlight -= 1
    noteWhetherIdle()
    if isReading { readMore() } else { closeWhenDone() }
  }

  /// Stops reading, and closes when all queries in flight are answered and all answers are sent.
  public func drain() {
    isReading = false
    if let buffers { bufferevent_disable(buffers, Int16(EV_READ)) }
    closeWhenDone()
  }

  /// Closes at once.
  public func close() {
    guard let buffers else { return }
    self.buffers = nil
    bufferevent_free(buffers)
    table.remove(place)
  }

  fileprivate func canRead() {
    guard let buffers, isReading, let input = bufferevent_get_input(buffers) else { return }
    while isOpen, isReading, hasRoom {
      guard evbuffer_get_length(input) >= 2, let head = evbuffer_pullup(input, 2) else { return }
      let length = Int(head[0]) << 8 | Int(head[1])
      guard length >= 12 else { return close() }
      guard evbuffer_get_length(input) >= 2 + length, let frame = evbuffer_pullup(input, 2 + length) else { return }
      inFlight += 1
      table.use(place)
      noteWhetherIdle()
      handler(self, UnsafeBufferPointer(start: frame + 2, count: length))
      guard isOpen else { return }
      evbuffer_drain(input, 2 + length)
    }
    if isOpen, !hasRoom { bufferevent_disable(buffers, Int16(EV_READ)) }
  }

  fileprivate func hasWritten() {
    guard isOpen else { return }
    table.use(place)
    noteWhetherIdle()
    if isReading { readMore() } else { closeWhenDone() }
  }

  fileprivate func event(_ what: Int16) {
    if what & Int16(BEV_EVENT_EOF) != 0, what & Int16(BEV_EVENT_ERROR) == 0 { drain() } else { close() }
  }

  private var hasRoom: Bool {
    guard let buffers else { return false }
    return inFlight < TCPConnection.maxInFlight
      && evbuffer_get_length(bufferevent_get_output(buffers)) < TCPConnection.mostUnsent
  }

  /// Resumes reading in the next turn of the loop, so that answers given while reading do not recurse.
  private func readMore() {
    guard let buffers, hasRoom, bufferevent_get_enabled(buffers) & Int16(EV_READ) == 0 else { return }
    bufferevent_enable(buffers, Int16(EV_READ))
    bufferevent_trigger(buffers, Int16(EV_READ), Int32(BEV_TRIG_DEFER_CALLBACKS.rawValue))
  }

  private func closeWhenDone() {
    guard let buffers, inFlight == 0, evbuffer_get_length(bufferevent_get_output(buffers)) == 0 else { return }
    close()
  }

  /// Whether a query is waiting for its answer while the client takes all other answers.
  var waits: Bool {
    guard let buffers else { return false }
    return inFlight > 0 && evbuffer_get_length(bufferevent_get_output(buffers)) == 0
  }

  /// Updates the table: a connection is idle if it has no unanswered query and no unsent answer.
  private func noteWhetherIdle() {
    guard let buffers else { return }
    table.set(place, isIdle: inFlight == 0 && evbuffer_get_length(bufferevent_get_output(buffers)) == 0)
  }
}

private func connection(_ context: UnsafeMutableRawPointer?) -> TCPConnection {
  Unmanaged<TCPConnection>.fromOpaque(context!).takeUnretainedValue()
}

private func connectionCanRead(_: OpaquePointer?, _ context: UnsafeMutableRawPointer?) {
  let connection = connection(context)
  withExtendedLifetime(connection) { connection.canRead() }
}

private func connectionHasWritten(_: OpaquePointer?, _ context: UnsafeMutableRawPointer?) {
  let connection = connection(context)
  withExtendedLifetime(connection) { connection.hasWritten() }
}

private func connectionEvent(_: OpaquePointer?, _ what: Int16, _ context: UnsafeMutableRawPointer?) {
  let connection = connection(context)
  withExtendedLifetime(connection) { connection.event(what) }
}
