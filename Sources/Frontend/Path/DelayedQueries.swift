// DelayedQueries.swift -- queries over streams that wait because their client exceeds `listen.rate_limit`.

import EventLoop
import FairShares

/// The limits of delays; outside the class, whose metadata the hot path may not touch.
enum DelayLimit {
  /// The longest delay, in nanoseconds.
  static var longest: Int64 { @_noAllocation get { 1_000_000_000 } }
  /// The most octets of queries that wait on one loop.
  static let octets = 4 << 20
  /// The most octets of one client's: it cannot take the room of others.
  static let octetsOfClient = octets / 8
}

/// Delays queries for as long as `QueryPath.delay` says. One loop only.
///
/// UDP has no such queries: a client that waits there repeats its query.
final class DelayedQueries {
  private let loop: any Loop
  private let timers = TimerGroup()
  private var octets = 0
  /// Of each client that has queries here.
  private var octetsOfClients: [ClientKey: Int] = [:]

  init(on loop: any Loop) { self.loop = loop }

  /// Takes a copy of a query.
  ///
  /// - Parameters:
  ///   - client: who asks.
  ///   - delay: nanoseconds.
  ///   - answer: gets the query afterwards.
  /// - Returns: whether there is room for it. If not, `answer` is not called.
  func add(
    _ message: UnsafeBufferPointer<UInt8>, of client: ClientKey, delayedBy delay: Int64,
    _ answer: @escaping (UnsafeBufferPointer<UInt8>) -> Void
  ) -> Bool {
    loop.assertCurrent()
    let own = octetsOfClients[client, default: 0] + message.count
    guard octets + message.count <= DelayLimit.octets, own <= DelayLimit.octetsOfClient else { return false }
    let copy = Array(message)
    octets += copy.count
    octetsOfClients[client] = own
    timers.add(after: .nanoseconds(delay), on: loop) { [self] in
      remove(copy.count, of: client)
      copy.withUnsafeBufferPointer(answer)
    }
    return true
  }

  private func remove(_ count: Int, of client: ClientKey) {
    octets -= count
    let rest = octetsOfClients[client, default: 0] - count
    octetsOfClients[client] = rest > 0 ? rest : nil
  }
}
