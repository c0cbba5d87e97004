// UDPPort.swift -- one UDP socket of one listener thread: the readable callback and the straight line of the hot path.

import CEvent
import CSocket
import DNSWire
import EventLoop
import Listener

/// Serves one UDP socket. Belongs to its listener's thread.
final class UDPPort {
  private let listener: UDPListener
  private let path: QueryPath
  private let queries: ClientQueries
  private let resolverLoop: EventLoop
  private var event: UnsafeMutablePointer<event>?

  /// Batches of one turn: more would keep the thread's other sockets waiting.
  private static let batchesPerTurn = 16

  init(_ listener: UDPListener, on loop: EventLoop, path: QueryPath, queries: ClientQueries, resolverLoop: EventLoop) {
    self.listener = listener
    self.path = path
    self.queries = queries
    self.resolverLoop = resolverLoop
    let context = Unmanaged.passUnretained(self).toOpaque()
    event = event_new(loop.base, listener.descriptor, Int16(EV_READ | EV_PERSIST), udpPortReadable, context)
  }

  deinit { event_free(event) }

  /// Begins to read.
  func start() { event_add(event, nil) }

  /// Reads no more; what was received is answered still.
  func stop() { event_del(event) }

  fileprivate func readable() {
    for _ in 0..<UDPPort.batchesPerTurn {
      let count = listener.receive()
      guard count > 0 else { return }
      let now = BootInstant.now.nanoseconds
      if answerBatch(count, now: now, listener, path, queries) { resolverLoop.wake() }
      // A batch that is not full has emptied the socket; asking again would only cost a system call.
      guard count == UDPListener.batchSize else { return }
    }
  }
}

/// Answers what is at hand and hands over the rest; true where the resolver has to be woken.
@_noAllocation
private func answerBatch(
  _ count: Int, now: Int64, _ listener: UDPListener, _ path: QueryPath, _ queries: ClientQueries
) -> Bool {
  var handedOver = false
  var index = 0
  while index < count {
    let message = listener.query(index)
    let output = listener.response()
    switch path.accept(message, from: listener.sender(index), .udp, now: now, into: output) {
    case .reply(let length): listener.reply(to: index, length: length)
    case .drop: break
    case .forward(let route):
      if handOver(index, message, route, now: now, listener, path, queries) {
        handedOver = true
      } else if case .reply(let length) = path.refuse(.servFail, ede: .other, message, .udp, output) {
        listener.reply(to: index, length: length)
      }
    }
    index &+= 1
  }
  _ = listener.send()
  return handedOver
}

/// False where no slot is free.
@_noAllocation
private func handOver(
  _ index: Int, _ message: UnsafeBufferPointer<UInt8>, _ route: UInt16, now: Int64, _ listener: UDPListener,
  _ path: QueryPath, _ queries: ClientQueries
) -> Bool {
  let slot = queries.take()
  guard slot >= 0, let octets = message.baseAddress else { return false }
  queries.fill(slot, path.query, of: octets, route: route, receivedAt: now, descriptor: listener.descriptor)
  listener.copyPeer(index, to: queries.peer(slot))
  queries.submit(slot)
  return true
}

private func udpPortReadable(_: Int32, _: Int16, _ context: UnsafeMutableRawPointer?) {
  Unmanaged<UDPPort>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.readable() }
}
