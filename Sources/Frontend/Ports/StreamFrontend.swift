// TCPFrontend.swift -- queries over TCP: the same query path as over UDP, on the resolver's loop.

import CSocket
import DNSWire
import EventLoop
import FairShares
import Glibc
import Listener
import Logging
import Telemetry

/// Answers queries that arrive over TCP. Resolver's loop only.
package final class TCPFrontend {
  private var path: QueryPath
  private let queries: ClientQueries
  private let replies: ReplySender
  private let loop: any Loop
  /// Hands a filled slot to the resolver.
  private let submit: (Int) -> Void
  private let output: UnsafeMutablePointer<UInt8>
  private let delayed: DelayedQueries
  /// Receives each query that is answered at once, where queries are logged.
  package var log: QueryLog?

  /// - Parameters:
  ///   - loop: the resolver's loop.
  ///   - counters: the counters of queries over TCP.
  ///   - submit: takes the slot of a query that must wait; called on the loop.
  package init(
    _ tables: QueryTables, queries: ClientQueries, replies: ReplySender, loop: any Loop,
    counters: QueryCounters = QueryCounters(), submit: @escaping (Int) -> Void
  ) {
    path = QueryPath(tables, counters)
    delayed = DelayedQueries(on: loop)
    self.queries = queries
    self.replies = replies
    self.loop = loop
    self.submit = submit
    output = .allocate(capacity: 65535 + ResponseWriter.overhead)
  }

  deinit { output.deallocate() }

  /// Uses those tables from now on.
  package func use(_ tables: QueryTables) {
    loop.assertCurrent()
    path = path.successor(tables)
  }

  /// Accepts one query, and answers it as soon as the rate limit allows.
  package func accept(_ connection: TCPConnection, _ message: UnsafeBufferPointer<UInt8>) {
    loop.assertCurrent()
    let now = BootInstant.now.nanoseconds
    path.options = connection.options
    let delay = withUnsafePointer(to: connection.client.storage) { path.delay(of: $0, over: .tcp, now: now) }
    guard delay > 0 else { return answer(connection, message, since: now) }
    let isTaken = delayed.add(message, delayedBy: delay) { [self] message in
      guard connection.isOpen else { return connection.discard() }
      answer(connection, message, since: now)
    }
    guard !isTaken else { return }
    guard case .reply(let length) = path.turnAway(message, .tcp, into: output) else { return connection.discard() }
    send(length: length, to: connection, for: message, since: now)
  }

  /// Answers one query, now or through the resolver.
  private func answer(_ connection: TCPConnection, _ message: UnsafeBufferPointer<UInt8>, since arrival: Int64) {
    let now = BootInstant.now.nanoseconds
    path.options = connection.options
    let outcome = withUnsafePointer(to: connection.client.storage) {
      path.accept(message, from: $0, .tcp, now: now, into: output)
    }
    switch outcome {
    case .reply(let length): send(length: length, to: connection, for: message, since: arrival)
    case .replyAndRefresh(let length, let route):
      send(length: length, to: connection, for: message, since: arrival)
      _ = handOver(message, of: connection, route: route, wantsAnswer: false, since: arrival)
    case .drop: connection.discard()
    case .forward(let route):
      if handOver(message, of: connection, route: route, wantsAnswer: true, since: arrival) {
        path.tally.count(.miss, .tcp)
      } else if case .reply(let length) = path.refuse(.servFail, ede: .other, to: message, over: .tcp, into: output) {
        send(length: length, to: connection, for: message, since: arrival)
      }
    }
  }

  /// Hands a query to the resolver; false if no slot is free.
  private func handOver(
    _ message: UnsafeBufferPointer<UInt8>, of connection: TCPConnection, route: UInt16, wantsAnswer: Bool,
    since arrival: Int64
  ) -> Bool {
    let slot = withUnsafePointer(to: connection.client.storage) { queries.take(ClientKey($0)) }
    guard slot >= 0, let octets = message.baseAddress else { return false }
    queries.fill(
      slot, path.query, of: octets, over: .tcp, options: path.options, route: route, rule: path.lastEnd.rule,
      receivedAt: arrival,
      descriptor: -1)
    queries.slots[slot].wantsAnswer = wantsAnswer
    queries.peer(slot).pointee.address = connection.client.storage
    if wantsAnswer { replies.setStream(for: slot) { connection.send($0) } }
    submit(slot)
    return true
  }

  private func send(
    length: Int, to connection: TCPConnection, for message: UnsafeBufferPointer<UInt8>, since arrival: Int64
  ) {
    connection.send(UnsafeBufferPointer(start: output, count: length))
    let (now, receivedAt) = (BootInstant.now, BootInstant(nanoseconds: arrival))
    path.tally.count(answers: 1, took: (now - receivedAt).nanoseconds)
    log?.add(logged(connection, message, receivedAt: receivedAt, took: now - receivedAt))
  }

  private func logged(
    _ connection: TCPConnection, _ message: UnsafeBufferPointer<UInt8>, receivedAt: BootInstant, took: Duration
  ) -> LoggedQuery {
    let name = QueryReader.headerLength..<(QueryReader.headerLength + path.query.nameLength)
    return LoggedQuery(
      receivedAt: receivedAt, took: took, client: connection.client.octets, transport: .tcp,
      name: name.upperBound <= message.count ? Array(message[name]) : [], type: path.query.type,
      code: path.lastEnd.code, rule: path.lastEnd.rule,
      outcome: .atOnce(QueryFate(rawValue: Int(path.lastEnd.fate)) ?? .invalid))
  }
}

extension TCPConnection {
  /// Its idle timeout (RFC 7828).
  fileprivate var options: StreamOptions {
    StreamOptions(keepalive: Int32(clamping: idleTimeout.nanoseconds / 100_000_000))
  }
}

extension TCPConnectionTable {
  /// Logs what happens to new connections when the table is full, once a minute for each case.
  package func log(to occasional: OccasionalLog) {
    let limits = limits
    onShortage = { shortage in
      let (text, kind) = shortage.description(limits)
      occasional.log(shortage.isRefused ? .warning : .info, reason: kind, now: BootInstant.now.nanoseconds, text)
    }
  }
}

extension TCPConnectionTable.Shortage {
  fileprivate func description(_ limits: TCPLimits) -> (text: String, kind: String) {
    switch (isOwnLimit, isRefused) {
    case (true, true):
      (
        "a TCP connection from \(client) is closed: its client has \(limits.perClient) with queries in flight; "
          + "listen.tcp_per_client allows more", "tcp-client-refused"
      )
    case (true, false):
      (
        "a TCP connection from \(client) takes the place of an idle one of its client, which has \(limits.perClient); "
          + "listen.tcp_per_client allows more", "tcp-client-displaced"
      )
    case (false, true):
      (
        "a TCP connection from \(client) is closed: all \(limits.connections) places have queries in flight, "
          + "\(most.count) of them of the client of \(most.client); listen.tcp_connections allows more", "tcp-refused"
      )
    case (false, false):
      (
        "a TCP connection from \(client) takes the place of another one: all \(limits.connections) are taken, "
          + "\(most.count) of them by the client of \(most.client); listen.tcp_connections allows more", "tcp-displaced"
      )
    }
  }
}
