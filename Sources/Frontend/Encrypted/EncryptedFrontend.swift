// EncryptedFrontend.swift -- DNS over TLS and over HTTPS: who is let in, and what serves a connection then.
//
// A connection that is refused is closed before its TLS handshake: that costs nothing, and tells a scanner nothing. The order:
// the PROXY header of a trusted proxy, `allow`, `new_per_second`, then the places of all clients.

import DNSWire
import EventLoop
import FairShares
import Glibc
import HTTPServer
import Listener
import Logging
import Streams
import Telemetry

/// The encrypted listeners. Belongs to one loop, which nothing else blocks; before that runs, to the thread that makes it.
package final class EncryptedFrontend {
  /// What is spoken on an address.
  package enum Service: String, Sendable {
    case dot = "DoT"
    case doh = "DoH"
    case dohPlain = "DoH without TLS"
  }

  /// What the listeners need of the daemon. Any thread may use it.
  package struct Surroundings {
    /// Receives what waits for the resolver.
    package var queries: ClientQueries
    package var counters: QueryCounters
    package var tap: QueryTap
    package var labels: TokenLabels
    package var connectionCounters: EncryptedCounters
    package var occasional: OccasionalLog
    package var wakeResolver: () -> Void

    package init(
      queries: ClientQueries, counters: QueryCounters, tap: QueryTap, labels: TokenLabels,
      connectionCounters: EncryptedCounters, occasional: OccasionalLog, wakeResolver: @escaping () -> Void
    ) {
      self.queries = queries
      self.counters = counters
      self.tap = tap
      self.labels = labels
      self.connectionCounters = connectionCounters
      self.occasional = occasional
      self.wakeResolver = wakeResolver
    }
  }

  private let loop: EventLoop
  private var policy: EncryptedPolicy
  private let table: TCPConnectionTable
  private let streams: StreamFrontend
  private let doh: DoHFrontend
  private let http1: HTTPServer
  private let http2: HTTP2Server
  private let buffer = ReadBuffer(capacity: EncryptedFrontend.readSize)
  private let dotTLS: TLSServer?
  private let dohTLS: TLSServer?
  private let surroundings: Surroundings
  private var acceptors: [Acceptor] = []
  /// Connections whose PROXY header is awaited, by their descriptors.
  private var headers: [Int32: ProxyReader] = [:]
  /// The number of connections that the counters know of.
  private var counted = 0

  /// Octets that one read brings at most: a TLS record's.
  private static let readSize = 16_384
  private static let patience = StreamPatience(handshake: .seconds(5), reading: .seconds(10))

  /// - Parameters:
  ///   - limits: those of the configuration; the others are set here.
  ///   - pair: the certificate; nil without listeners that use TLS.
  package init(
    _ policy: EncryptedPolicy, _ limits: TCPLimits, certificate pair: CertificatePair?, _ surroundings: Surroundings,
    on loop: EventLoop
  ) {
    self.loop = loop
    self.policy = policy
    self.surroundings = surroundings
    var places = limits
    (places.inFlight, places.unsent, places.patience) = (64, 262_144, EncryptedFrontend.patience)
    table = TCPConnectionTable(limits: places)
    let (queries, wakeResolver) = (surroundings.queries, surroundings.wakeResolver)
    streams = StreamFrontend(
      policy.tables, queries: queries, loop: loop, counters: surroundings.counters, tap: surroundings.tap,
      submit: { slot in
        queries.submit(slot)
        wakeResolver()
      }, wakeResolver: wakeResolver)
    let doh = DoHFrontend(policy, streams, surroundings.labels)
    self.doh = doh
    var bounds = HTTPServer.Limits()
    (bounds.idle, bounds.bodyOctets, bounds.takesAnyMethod) = (limits.idle, DoHLimit.octets, true)
    http1 = HTTPServer(on: loop, limits: bounds) { doh.handle($0, $1) }
    http2 = HTTP2Server(on: loop, handler: doh)
    dotTLS = pair.flatMap { TLSServer($0, protocols: ["dot"], on: loop) }
    dohTLS = pair.flatMap { TLSServer($0, protocols: ["h2", "http/1.1"], on: loop) }
    dotTLS?.accepts = { [weak self] in self?.accepts(serverName: $0) ?? false }
    table.onShortage = { [weak self] in self?.note($0) }
  }

  /// Listens on an address; port 0 lets the kernel choose one.
  ///
  /// - Returns: the bound address.
  /// - Throws: `ListenError` with the system's reason.
  package func listen(on address: SocketAddress, as service: Service) throws(ListenError) -> SocketAddress {
    let (descriptor, bound) = try TCPListener.open(address)
    let acceptor = Acceptor(of: descriptor, on: loop) { [weak self] in self?.accepted($0, $1, service) }
    guard let acceptor else {
      close(descriptor)
      throw ListenError(address: address, transport: "tcp", code: ENOMEM)
    }
    acceptor.onFailure = { [occasional = surroundings.occasional] code in
      let text = "a connection for \(service.rawValue) is not accepted: \(String(cString: strerror(code)))"
      occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
    }
    acceptors.append(acceptor)
    return bound
  }

  /// Follows another policy from now on. Connections whose token is no longer accepted are closed.
  package func use(_ policy: EncryptedPolicy) {
    self.policy = policy
    doh.policy = policy
    streams.use(policy.tables)
    table.forEach { if !stillAccepts($0) { $0.close() } }
  }

  /// Uses another certificate for handshakes from now on.
  package func use(_ pair: CertificatePair) {
    let servers = [dotTLS, dohTLS].compactMap { $0 }
    guard !servers.allSatisfy({ $0.use(pair) }) else { return }
    surroundings.occasional.log(
      .error, reason: "certificate", now: loop.now.nanoseconds, "no memory for the new certificate; reload the daemon")
  }

  /// Passes on the resolver's answer to a query.
  package func deliver(_ response: UnsafeBufferPointer<UInt8>, for ticket: UInt64) {
    streams.deliver(response, for: ticket)
  }

  /// Stops accepting and reading; connections close when their queries are answered.
  package func drain() {
    for acceptor in acceptors { acceptor.stop() }
    let descriptors = Array(headers.keys)
    // Their events end before the descriptors that these watch.
    headers = [:]
    for descriptor in descriptors { close(descriptor) }
    table.drain()
  }

  /// Closes every connection at once.
  package func closeAll() { table.closeAll() }

  /// The number of connections that have a place.
  package var count: Int { table.count }

  // MARK: - Accepting

  private func accepted(_ descriptor: Int32, _ peer: SocketAddress?, _ service: Service) {
    guard let peer else { return refuse(descriptor, nil) }
    guard policy.isProxy(peer) else {
      let isForwarder = service == .dohPlain && policy.isForwarder(peer)
      return admit(descriptor, peer, service, isProxy: isForwarder, isForwarder: isForwarder)
    }
    // A trusted proxy, but not one that may take every descriptor.
    guard headers.count < table.limits.connections else { return refuse(descriptor, .full) }
    headers[descriptor] = ProxyReader(descriptor, on: loop) { [weak self] header in
      guard let self, headers.removeValue(forKey: descriptor) != nil else { return }
      switch header {
      case .client(let client, _): admit(descriptor, client, service, isProxy: false, isForwarder: false)
      case .local: admit(descriptor, peer, service, isProxy: true, isForwarder: false)
      case .incomplete, .refused:
        refuse(descriptor, .proxy)
        noteProxy(peer)
      }
    }
  }

  /// - Parameters:
  ///   - isProxy: whether the number of the client's connections says nothing.
  ///   - isForwarder: whether each of its requests names its client.
  private func admit(
    _ descriptor: Int32, _ client: SocketAddress, _ service: Service, isProxy: Bool, isForwarder: Bool
  ) {
    let now = loop.now
    let key = ClientKey(client)
    guard isForwarder || withUnsafePointer(to: client.storage, { policy.tables.access.allows($0) }) else {
      if policy.tables.access.hasUnreported(now: now.nanoseconds) { surroundings.wakeResolver() }
      return refuse(descriptor, .allow)
    }
    guard isProxy || policy.newConnections.take(key.value, now: now.nanoseconds) != BucketLimit.refused else {
      noteExcess(client, now)
      return refuse(descriptor, .rate)
    }
    guard table.admits(client, isProxy: isProxy, now: now) else {
      // `note` has counted it.
      return refuse(descriptor, nil)
    }
    let server: TLSServer? =
      switch service {
      case .dot: dotTLS
      case .doh: dohTLS
      case .dohPlain: nil
      }
    let tls = server?.connection(over: descriptor)
    guard service == .dohPlain || tls != nil else { return refuse(descriptor, nil) }
    if service == .dot {
      TCPConnection(descriptor, client, tls, loop, table) { [streams] in
        streams.accept($1, from: $0, over: .dot)
      } shookHands: { [weak self] connection, isComplete in
        self?.shookHands(connection, isComplete)
      }
    } else {
      DoHConnection(descriptor, client, isForwarder: isForwarder, tls, dohService)
    }
  }

  private lazy var dohService = DoHConnection.Service(
    loop: loop, table: table, http1: http1, http2: http2, buffer: buffer, patience: EncryptedFrontend.patience
  ) { [weak self] in self?.count($0, isComplete: $1) }

  private func refuse(_ descriptor: Int32, _ reason: EncryptedRefusal?) {
    if let reason { surroundings.connectionCounters.count(reason) }
    close(descriptor)
  }

  /// Tells the counters how many connections are open.
  func countOpen() {
    guard table.count != counted else { return }
    counted = table.count
    surroundings.connectionCounters.setOpen(counted)
  }

  // MARK: - TLS and tokens

  /// A connection for DoT has its token from here on. It may have been removed during the handshake.
  private func shookHands(_ connection: TCPConnection, _ isComplete: Bool) {
    if let tls = connection.tls { count(tls, isComplete: isComplete) }
    connection.mark = tokenNumber(of: connection.tls)
    if isComplete, !stillAccepts(connection) { connection.close() }
  }

  private func count(_ tls: TLSConnection, isComplete: Bool) {
    if isComplete {
      surroundings.connectionCounters.count(tls.isResumed ? .resumed : .full)
    } else if tls.hasHeard {
      // Otherwise it was a proxy's check, or a scanner's look at the port.
      surroundings.connectionCounters.count(.failed)
    }
  }

  private func accepts(serverName: String?) -> Bool {
    policy.tokens == nil || policy.token(inServerName: serverName) != nil
  }

  private func tokenNumber(of tls: TLSConnection?) -> Int {
    policy.token(inServerName: tls?.serverName).map { Int(surroundings.labels.number(of: $0)) } ?? 0
  }

  /// Whether a connection may stay: its token is accepted, or it has not shown one yet; and its proxy is trusted, if it is one.
  private func stillAccepts(_ connection: any PlacedConnection) -> Bool {
    if let connection = connection as? DoHConnection, connection.isForwarder, !policy.isForwarder(connection.client) {
      return false
    }
    guard let tokens = policy.tokens else { return true }
    guard let entry = surroundings.labels.entry(UInt16(connection.mark)) else {
      // Over HTTPS each request shows its token.
      return (connection as? TCPConnection)?.shakesHands ?? true
    }
    return tokens.accepts(entry)
  }

  // MARK: - Notes

  private func noteExcess(_ client: SocketAddress, _ now: BootInstant) {
    surroundings.occasional.log(
      .info, reason: "encrypted.new_per_second", now: now.nanoseconds,
      "a client in \(ClientKey(client).networkText) opens more connections than encrypted.new_per_second allows; those beyond it are closed"
    )
  }

  private func noteProxy(_ peer: SocketAddress) {
    surroundings.occasional.log(
      .warning, reason: "encrypted.proxy_protocol", now: loop.now.nanoseconds,
      "a proxy in \(ClientKey(peer).networkText) sends no PROXY header of version 2, or one that is not accepted")
  }

  private func note(_ shortage: TCPConnectionTable.Shortage) {
    if shortage.isRefused {
      surroundings.connectionCounters.count(shortage.isOwnLimit ? .client : .full)
    } else {
      surroundings.connectionCounters.countDisplaced()
    }
    shortage.log(to: surroundings.occasional, table.limits, .encrypted)
  }
}

extension ClientKey {
  /// The client's network, for logs.
  var networkText: String { network.map { "\($0)" } ?? "an unknown network" }
}
