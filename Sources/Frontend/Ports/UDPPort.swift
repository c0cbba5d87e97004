// UDPPort.swift -- serves one listener thread's UDP socket on the hot path, a batch at a time.

import CSocket
import DNSWire
import EventLoop
import FairShares
import Listener

/// Serves a UDP socket on one thread.
package struct UDPPort {
  private let listener: UDPListener
  /// The thread's query path, which a reload replaces.
  let paths: PathExchange
  private let queries: ClientQueries
  private let resolverLoop: EventLoop
  private let tap: QueryTap

  /// - Parameter tap: the thread's own, for the query log.
  package init(
    _ listener: UDPListener, path: QueryPath, queries: ClientQueries, resolverLoop: EventLoop,
    tap: QueryTap = QueryTap()
  ) {
    self.listener = listener
    paths = PathExchange(path)
    self.queries = queries
    self.resolverLoop = resolverLoop
    self.tap = tap
  }

  /// Receives and answers a batch of queries.
  ///
  /// - Parameters:
  ///   - waiting: whether to wait for the first query.
  ///   - whenFull: called before the lookups if there may be more queries than one batch holds.
  /// - Returns: whether there may be more queries.
  func serve(waiting: Bool, whenFull: () -> Void) -> Bool {
    let count = listener.receive(waiting: waiting)
    // Read after the wait: every query that arrives after a reload is answered with the new tables.
    let path = paths.current
    guard count > 0 else { return false }
    let isFull = count == UDPListener.batchSize
    if isFull { whenFull() }
    let now = BootInstant.now.nanoseconds
    let isLogging = tap.isOn
    let batch = answerBatch(of: listener, count: count, by: path, to: queries, tap: tap, isLogging: isLogging, now: now)
    if batch.handedOver || path.hasUnreported(now: now) { resolverLoop.wake() }
    if batch.answers > 0 {
      let end = BootInstant.now.nanoseconds
      path.tally.count(answers: batch.answers, took: end &- now)
      if isLogging, tap.publish(at: end) { resolverLoop.wake() }
    }
    return isFull
  }
}

/// The result of a batch.
private struct AnsweredBatch {
  /// Queries that were answered at once.
  var answers = 0
  /// Whether the resolver must be woken.
  var handedOver = false

  @_noAllocation
  init() {}
}

/// Answers the queries whose answers are at hand and hands the others to the resolver.
///
/// - Parameter isLogging: whether `tap` receives the answered queries.
@_noAllocation
private func answerBatch(
  of listener: UDPListener, count: Int, by path: QueryPath, to queries: ClientQueries, tap: QueryTap, isLogging: Bool,
  now: Int64
) -> AnsweredBatch {
  var batch = AnsweredBatch()
  var index = 0
  while index < count {
    let message = listener.query(index)
    let output = listener.response()
    switch path.accept(message, from: listener.sender(index), .udp, now: now, into: output) {
    case .reply(let length):
      listener.reply(to: index, length: length)
      batch.answers &+= 1
      if isLogging { tap.add(path, message, from: listener.sender(index), .udp, receivedAt: now) }
    case .replyAndRefresh(let length, let route):
      listener.reply(to: index, length: length)
      batch.answers &+= 1
      if isLogging { tap.add(path, message, from: listener.sender(index), .udp, receivedAt: now) }
      if handOver(message, at: index, of: listener, by: path, to: queries, route: route, wantsAnswer: false, now: now) {
        batch.handedOver = true
      }
    case .drop: break
    case .forward(let route):
      if handOver(message, at: index, of: listener, by: path, to: queries, route: route, wantsAnswer: true, now: now) {
        batch.handedOver = true
        path.tally.count(.miss, .udp)
      } else if case .reply(let length) = path.refuse(.servFail, ede: .other, to: message, over: .udp, into: output) {
        listener.reply(to: index, length: length)
        batch.answers &+= 1
        if isLogging { tap.add(path, message, from: listener.sender(index), .udp, receivedAt: now) }
      }
    }
    index &+= 1
  }
  let unsent = listener.send()
  if unsent > 0 { path.tally.count(unsent: unsent) }
  return batch
}

/// Hands a query to the resolver; false if no slot is free.
@_noAllocation
private func handOver(
  _ message: UnsafeBufferPointer<UInt8>, at index: Int, of listener: UDPListener, by path: QueryPath,
  to queries: ClientQueries, route: UInt16, wantsAnswer: Bool, now: Int64
) -> Bool {
  let slot = queries.take(ClientKey(listener.sender(index)))
  guard slot >= 0, let octets = message.baseAddress else { return false }
  queries.fill(
    slot, path.query, of: octets, over: .udp, route: route, rule: path.lastEnd.rule, receivedAt: now,
    descriptor: listener.descriptor)
  queries.slots[slot].wantsAnswer = wantsAnswer
  listener.copyPeer(index, to: queries.peer(slot))
  queries.submit(slot)
  return true
}
