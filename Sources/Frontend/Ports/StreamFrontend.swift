// StreamFrontend.swift -- queries over TCP, TLS and HTTPS: the same query path as over UDP, on the loop of their listeners.
//
// A query that has to wait takes a slot and gets a ticket. The resolver answers by the ticket, on its own loop or through a
// `StreamOutbox`, and the client that has the ticket gets the answer.

import CSocket
import DNSWire
import EventLoop
import FairShares
import Glibc
import Listener
import Logging
import Synchronization
import Telemetry

/// Who has asked a query over a stream. One loop only.
protocol StreamClient: AnyObject {
  /// The client's address, for rules, limits and logs.
  var client: SocketAddress { get }
  /// The number of the client's token in `TokenLabels`; 0 for none.
  var token: UInt16 { get }
  /// Whether an answer can still be sent.
  var isOpen: Bool { get }
  var options: StreamOptions { get }
  /// Sends the response to one query; it is valid during the call.
  func send(_ response: UnsafeBufferPointer<UInt8>)
  /// Ends one query without an answer.
  func discard()
  /// Ends one query that would wait too long for `listen.rate_limit`. Only over DoH.
  func refuseExcess()
}

/// Answers queries that arrive over streams of one loop. That loop only.
package final class StreamFrontend {
  private var path: QueryPath
  private let queries: ClientQueries
  private let loop: any Loop
  /// Hands a filled slot to the resolver.
  private let submit: (Int) -> Void
  private let output: UnsafeMutablePointer<UInt8>
  private let delayed: DelayedQueries
  private let tap: QueryTap
  private let wakeResolver: () -> Void
  /// The clients of queries that wait for the resolver, by their tickets.
  private var waiting: [UInt64: any StreamClient] = [:]
  private var lastTicket: UInt64 = 0

  /// - Parameters:
  ///   - loop: the loop of the listeners.
  ///   - counters: the counters of queries over these streams.
  ///   - tap: the loop's own, for the query log.
  ///   - submit: takes the slot of a query that must wait.
  ///   - wakeResolver: called when the resolver's loop has something to log.
  package init(
    _ tables: QueryTables, queries: ClientQueries, loop: any Loop, counters: QueryCounters = QueryCounters(),
    tap: QueryTap = QueryTap(), submit: @escaping (Int) -> Void, wakeResolver: @escaping () -> Void = {}
  ) {
    path = QueryPath(tables, counters)
    delayed = DelayedQueries(on: loop)
    self.queries = queries
    self.loop = loop
    self.tap = tap
    self.submit = submit
    self.wakeResolver = wakeResolver
    output = .allocate(capacity: 65535 + ResponseWriter.overhead)
  }

  deinit { output.deallocate() }

  /// Uses those tables from now on.
  package func use(_ tables: QueryTables) {
    loop.assertCurrent()
    path = path.successor(tables)
  }

  /// Accepts one query over TCP.
  package func accept(_ connection: TCPConnection, _ message: UnsafeBufferPointer<UInt8>) {
    accept(message, from: connection, over: .tcp)
  }

  /// Accepts one query, and answers it as soon as the rate limit allows.
  func accept(_ message: UnsafeBufferPointer<UInt8>, from client: any StreamClient, over transport: QueryTransport) {
    loop.assertCurrent()
    let now = BootInstant.now.nanoseconds
    path.options = client.options
    let delay = withUnsafePointer(to: client.client.storage) { path.delay(of: $0, over: transport, now: now) }
    guard delay != 0 else { return answer(message, from: client, over: transport, since: now) }
    defer { if path.hasUnreported(now: now) { wakeResolver() } }
    guard delay != BucketLimit.refused else { return client.refuseExcess() }
    let isTaken = delayed.add(message, of: ClientKey(client.client), delayedBy: delay) { [self] message in
      guard client.isOpen else { return client.discard() }
      answer(message, from: client, over: transport, since: now)
    }
    guard !isTaken else { return }
    guard case .reply(let length) = path.turnAway(message, transport, into: output) else { return client.discard() }
    send(length: length, to: client, for: message, over: transport, since: now)
  }

  /// Passes on the resolver's answer to a query.
  package func deliver(_ response: UnsafeBufferPointer<UInt8>, for ticket: UInt64) {
    loop.assertCurrent()
    waiting.removeValue(forKey: ticket)?.send(response)
  }

  /// Answers one query, now or through the resolver.
  private func answer(
    _ message: UnsafeBufferPointer<UInt8>, from client: any StreamClient, over transport: QueryTransport,
    since arrival: Int64
  ) {
    let now = BootInstant.now.nanoseconds
    path.options = client.options
    let outcome = withUnsafePointer(to: client.client.storage) {
      path.accept(message, from: $0, transport, now: now, into: output)
    }
    switch outcome {
    case .reply(let length): send(length: length, to: client, for: message, over: transport, since: arrival)
    case .replyAndRefresh(let length, let route):
      send(length: length, to: client, for: message, over: transport, since: arrival)
      _ = handOver(message, of: client, over: transport, route: route, wantsAnswer: false, since: arrival)
    case .drop: client.discard()
    case .forward(let route):
      if handOver(message, of: client, over: transport, route: route, wantsAnswer: true, since: arrival) {
        path.tally.count(.miss, transport)
      } else if case .reply(let length) = path.refuse(
        .servFail, ede: .other, to: message, over: transport, into: output)
      {
        send(length: length, to: client, for: message, over: transport, since: arrival)
      }
    }
  }

  /// Hands a query to the resolver; false if no slot is free.
  private func handOver(
    _ message: UnsafeBufferPointer<UInt8>, of client: any StreamClient, over transport: QueryTransport, route: UInt16,
    wantsAnswer: Bool, since arrival: Int64
  ) -> Bool {
    let address = client.client.storage
    let slot = withUnsafePointer(to: address) { queries.take(ClientKey($0)) }
    guard slot >= 0, let octets = message.baseAddress else { return false }
    queries.fill(
      slot, path.query, of: octets, over: transport, options: path.options, route: route, rule: path.lastEnd.rule,
      receivedAt: arrival, descriptor: -1)
    queries.slots[slot].wantsAnswer = wantsAnswer
    queries.slots[slot].token = client.token
    queries.peer(slot).pointee.address = address
    if wantsAnswer {
      lastTicket += 1
      queries.slots[slot].ticket = lastTicket
      waiting[lastTicket] = client
    }
    submit(slot)
    return true
  }

  private func send(
    length: Int, to client: any StreamClient, for message: UnsafeBufferPointer<UInt8>, over transport: QueryTransport,
    since arrival: Int64
  ) {
    if tap.isOn {
      withUnsafePointer(to: client.client.storage) {
        tap.add(path, message, from: $0, transport, receivedAt: arrival, token: client.token)
      }
    }
    client.send(UnsafeBufferPointer(start: output, count: length))
    let end = BootInstant.now.nanoseconds
    path.tally.count(answers: 1, took: end - arrival)
    if tap.publish(at: end) || path.hasUnreported(now: end) { wakeResolver() }
  }
}

/// Carries the resolver's answers to the loop of other listeners. Any thread.
package final class StreamOutbox: Sendable {
  private let loop: EventLoop
  private let answers = Mutex(Answers())

  private struct Answers: Sendable {
    var octets: [UInt8] = []
    /// The ticket of each answer, and where it ends in `octets`.
    var ends: [(ticket: UInt64, end: Int)] = []
  }

  package init(to loop: EventLoop) { self.loop = loop }

  /// Adds a copy of an answer, and wakes the loop.
  package func add(_ response: UnsafeBufferPointer<UInt8>, for ticket: UInt64) {
    answers.withLock {
      $0.octets.append(contentsOf: response)
      $0.ends.append((ticket, $0.octets.count))
    }
    loop.wake()
  }

  /// Passes on what was added since the last call. The loop's thread only.
  func drain(_ deliver: (UnsafeBufferPointer<UInt8>, _ ticket: UInt64) -> Void) {
    var taken = Answers()
    answers.withLock { swap(&$0, &taken) }
    guard !taken.ends.isEmpty else { return }
    taken.octets.withUnsafeBufferPointer { octets in
      var begin = 0
      for (ticket, end) in taken.ends {
        deliver(UnsafeBufferPointer(rebasing: octets[begin..<end]), ticket)
        begin = end
      }
    }
  }
}

extension TCPConnection: StreamClient {
  var token: UInt16 { UInt16(truncatingIfNeeded: mark) }

  /// Its idle timeout (RFC 7828), and padding where the octets are encrypted (RFC 8467).
  var options: StreamOptions {
    StreamOptions(keepalive: Int32(clamping: idleTimeout.nanoseconds / 100_000_000), isPadded: tls != nil)
  }

  /// Not called: such queries wait as long as there is room.
  func refuseExcess() { discard() }
}

extension TCPConnectionTable {
  /// Logs what happens to new connections when the table is full, once a minute for each case.
  package func log(to occasional: OccasionalLog) {
    let limits = limits
    onShortage = { $0.log(to: occasional, limits, .listen) }
  }
}

extension TCPConnectionTable.Shortage {
  /// Logs it once a minute for each case.
  ///
  /// - Parameter place: the section with the limits.
  func log(to occasional: OccasionalLog, _ limits: TCPLimits, _ place: AccessPolicy.Place) {
    let (text, kind) = description(limits, place)
    occasional.log(isRefused ? .warning : .info, reason: kind, now: BootInstant.now.nanoseconds, text)
  }

  private func description(_ limits: TCPLimits, _ place: AccessPolicy.Place) -> (text: String, kind: String) {
    let (word, perClient, connections) =
      switch place {
      case .listen: ("a TCP", "listen.tcp_per_client", "listen.tcp_connections")
      case .encrypted: ("an encrypted", "encrypted.per_client", "encrypted.connections")
      }
    // Strangers come to the encrypted listeners: the log has their networks.
    func name(_ client: SocketAddress) -> String {
      switch place {
      case .listen: "\(client)"
      case .encrypted: ClientKey(client).networkText
      }
    }
    let (client, most) = (name(client), (client: name(most.client), count: most.count))
    switch (isOwnLimit, isRefused) {
    case (true, true):
      return (
        "\(word) connection from \(client) is closed: its client has \(limits.perClient) with queries in flight; "
          + "\(perClient) allows more", "\(perClient) refused"
      )
    case (true, false):
      return (
        "\(word) connection from \(client) takes the place of an idle one of its client, which has \(limits.perClient); "
          + "\(perClient) allows more", "\(perClient) displaced"
      )
    case (false, true):
      return (
        "\(word) connection from \(client) is closed: all \(limits.connections) places have queries in flight, "
          + "\(most.count) of them of the client of \(most.client); \(connections) allows more",
        "\(connections) refused"
      )
    case (false, false):
      return (
        "\(word) connection from \(client) takes the place of another one: all \(limits.connections) are taken, "
          + "\(most.count) of them by the client of \(most.client); \(connections) allows more",
        "\(connections) displaced"
      )
    }
  }
}
