// QueryExchanger.swift -- carries a query to a server and its response back.
//
// On the loop's thread only.

import EventLoop

/// Carries queries. `SocketExchanger` uses the network, the scripts of tests do not.
protocol QueryExchanger: AnyObject, Sendable {
  /// The source of time and timers.
  var clock: any Loop { get }
  /// The number of replies that match no query.
  var ignoredReplies: UInt64 { get }
  /// Sends a query and waits for its response until the deadline.
  func exchange(
    _ query: PreparedQuery, with server: SocketAddress, over transport: ExchangeTransport, until deadline: BootInstant
  ) async -> ExchangeOutcome
}

/// The transport protocol of a message: UDP or TCP.
enum ExchangeTransport {
  case datagram
  case stream
}

/// Uses the sockets of this machine, a new one for each exchange.
final class SocketExchanger: QueryExchanger, @unchecked Sendable {
  let loop: EventLoop
  /// Receives any message. Exchanges use its contents before they return to the loop.
  var buffer = [UInt8](repeating: 0, count: 65_535)
  var ignoredReplies: UInt64 = 0
  var clock: any Loop { loop }

  init(loop: EventLoop) { self.loop = loop }

  func exchange(
    _ query: PreparedQuery, with server: SocketAddress, over transport: ExchangeTransport, until deadline: BootInstant
  ) async -> ExchangeOutcome {
    let exchange: Exchange =
      switch transport {
      case .datagram: DatagramExchange(exchanger: self, query: query, server: server)
      case .stream: StreamExchange(exchanger: self, query: query, server: server)
      }
    return await exchange.run(until: deadline)
  }
}
