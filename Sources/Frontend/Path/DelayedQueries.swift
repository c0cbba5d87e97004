// DelayedQueries.swift -- queries over streams that wait because their client exceeds `listen.rate_limit`.

import EventLoop

/// The limits of delays; outside the class, whose metadata the hot path may not touch.
enum DelayLimit {
  /// The longest delay, in nanoseconds.
  static var longest: Int64 { @_noAllocation get { 1_000_000_000 } }
  /// The most octets of queries that wait on one loop.
  static let octets = 4 << 20
}

/// Delays queries for as long as `QueryPath.delay` says. One loop only.
///
/// UDP has no such queries: a client that waits there repeats its query.
final class DelayedQueries {
  private let loop: any Loop
  private let timers = TimerGroup()
  private var octets = 0

  init(on loop: any Loop) { self.loop = loop }

  /// Takes a copy of a query.
  ///
  /// - Parameters:
  ///   - delay: nanoseconds.
  ///   - answer: gets the query afterwards.
  /// - Returns: whether there is room for it. If not, `answer` is not called.
  func add(
    _ message: UnsafeBufferPointer<UInt8>, delayedBy delay: Int64,
    _ answer: @escaping (UnsafeBufferPointer<UInt8>) -> Void
  ) -> Bool {
    loop.assertCurrent()
    guard octets + message.count <= DelayLimit.octets else { return false }
    let copy = Array(message)
    octets += copy.count
    timers.add(after: .nanoseconds(delay), on: loop) { [self] in
      octets -= copy.count
      copy.withUnsafeBufferPointer(answer)
    }
    return true
  }
}
