// Wire.swift -- how a query gets to a server, and its response back.
//
// On the loop's thread only.

import EventLoop

/// Carries queries. `SocketWire` does so over the network, and the scripts of tests do without.
protocol Wire: AnyObject, Sendable {
  /// What times are taken from.
  var clock: any Loop { get }
  /// Replies that belonged to no query.
  var ignoredReplies: UInt64 { get }
  /// Sends a query and waits, until the deadline, for what belongs to it.
  func exchange(
    _ query: PreparedQuery, with server: SocketAddress, over transport: WireTransport, until deadline: BootInstant
  ) async -> ExchangeOutcome
}

/// What a message travels in.
enum WireTransport {
  case datagram
  case stream
}

/// The sockets of this machine: a new one for each exchange.
final class SocketWire: Wire, @unchecked Sendable {
  let loop: EventLoop
  /// Room for any message; what it holds is used up before the loop goes on.
  var buffer = [UInt8](repeating: 0, count: 65_535)
  var ignoredReplies: UInt64 = 0
  var clock: any Loop { loop }

  init(loop: EventLoop) { self.loop = loop }

  func exchange(
    _ query: PreparedQuery, with server: SocketAddress, over transport: WireTransport, until deadline: BootInstant
  ) async -> ExchangeOutcome {
    let exchange: Exchange =
      switch transport {
      case .datagram: DatagramExchange(wire: self, query: query, server: server)
      case .stream: StreamExchange(wire: self, query: query, server: server)
      }
    return await exchange.run(until: deadline)
  }
}
