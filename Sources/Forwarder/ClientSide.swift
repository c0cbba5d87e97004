// ClientSide.swift -- where clients meet the daemon: sockets, listener threads and TCP connections, from binding to the last answer.
//
// Resolver's loop only, or while it does not run.

import Configuration
import EventLoop
import Frontend
import Glibc
import Listener
import Logging
import Resolver
import ServiceManager
import Telemetry
import Upstreams

/// Listens on the configured addresses or on inherited sockets, and ends when everything that was read is answered.
final class ClientSide {
  /// Whether it has stopped reading queries.
  private(set) var isStopping = false
  private(set) var threads: [ListenerThread] = []
  let queries: ClientQueries
  let outbox: UDPOutbox
  let connections: TCPConnectionTable
  let frontend: StreamFrontend
  /// The encrypted listeners; nil without any.
  private(set) var encrypted: EncryptedSide?
  private let loop: EventLoop
  private let resolver: Resolver
  private let inherited: [InheritedSocket]
  private let occasional: OccasionalLog
  private var listeners: [TCPListener] = []
  /// What is already logged about queries beyond the rate limit.
  private var excesses = ExcessReports()
  private let (drainTimer, drainCheckTimer) = (OwnedTimer(), OwnedTimer())

  /// How long SIGTERM waits for queries in flight.
  private static let drainTime = Duration.seconds(2)
  /// How long TCP clients have after that to receive their last answers.
  private static let lastWords = Duration.milliseconds(200)
  /// How often it checks whether everything is answered.
  private static let drainCheck = Duration.milliseconds(10)

  /// - Parameters:
  ///   - inherited: sockets from the service manager, which are served instead of `listen.addresses`.
  ///   - replies: sends answers to queries in slots; those over UDP by `outbox`.
  init(
    _ listen: Configuration.Listen, _ tables: QueryTables, inherited: [InheritedSocket], _ replies: ReplySender,
    _ outbox: UDPOutbox, _ resolver: Resolver, counters: QueryCounters, log: QueryLog, _ occasional: OccasionalLog,
    on loop: EventLoop
  ) {
    self.inherited = inherited
    queries = replies.queries
    self.outbox = outbox
    self.resolver = resolver
    self.occasional = occasional
    self.loop = loop
    connections = TCPConnectionTable(
      limits: TCPLimits(connections: listen.tcpConnections, perClient: listen.tcpPerClient, idle: listen.tcpIdle))
    connections.log(to: occasional)
    let frontend = StreamFrontend(
      tables, queries: queries, loop: loop, counters: counters, tap: log.makeTap()
    ) { slot in
      resolver.assumeIsolated { $0.queue(slot) }
    }
    self.frontend = frontend
    replies.sendOverStream = { [weak self] response, transport, ticket in
      if transport == .tcp {
        frontend.deliver(response, for: ticket)
      } else {
        self?.encrypted?.thread.outbox.add(response, for: ticket)
      }
    }
  }

  // MARK: Begin

  /// Listens; `start` serves.
  ///
  /// - Parameter makePort: makes what one thread serves.
  /// - Returns: the sockets, with the ports that the kernel chose for port 0.
  /// - Throws: `StartError.listen` if an address cannot be bound, `StartError.other` for any other failure. An IPv6
  ///   address that the machine does not have is only logged.
  func bind(
    _ listen: Configuration.Listen, _ logger: Logger, makePort: (UDPSocket) throws -> UDPPort
  ) throws(StartError) -> ListeningSockets {
    let streams = ListeningSockets.Streams(loop: loop, table: connections) { [frontend] in frontend.accept($0, $1) }
    let endpoints = SocketAddress.existing(listen.addresses, inherited.isEmpty ? logger : nil)
    let sockets =
      inherited.isEmpty
      ? try ListeningSockets(binding: endpoints, streams, logger)
      : try ListeningSockets(adopting: inherited, insteadOf: endpoints, streams, logger)
    listeners = sockets.streams
    for listener in listeners {
      listener.onFailure = { [occasional] code in
        let text = "a TCP connection is not accepted: \(String(cString: strerror(code)))"
        occasional.log(.warning, reason: text, now: BootInstant.now.nanoseconds, text)
      }
    }
    let workers = listen.workers == 0 ? sysconf(Int32(_SC_NPROCESSORS_ONLN)) : listen.workers
    for socket in sockets.datagrams {
      do { try addThreads(for: socket, count: workers, makePort) } catch {
        throw .other("no listener thread for \(socket.address): \(error)")
      }
    }
    return sockets
  }

  /// Serves with these encrypted listeners as well.
  func add(_ encrypted: EncryptedSide) { self.encrypted = encrypted }

  /// The threads other than the resolver's.
  var watchedThreads: [any WatchedThread] { threads + (encrypted.map { [$0.thread] } ?? []) }

  /// Makes the threads of one socket, the last helper first: each wakes the one made before it.
  private func addThreads(for socket: UDPSocket, count: Int, _ makePort: (UDPSocket) throws -> UDPPort) throws {
    var helper: ListenerThread?
    for left in (0..<count).reversed() {
      let name = "listener \(left + 1) of \(socket.address)"
      let thread = try ListenerThread(makePort(socket), left == 0 ? .first : .helper, helper: helper, name: name)
      threads.append(thread)
      helper = thread
    }
  }

  /// Starts the listener threads.
  func start() throws(StartError) {
    do throws(StartError) {
      for thread in threads { try thread.start() }
      try encrypted?.start()
    } catch {
      join()
      throw error
    }
  }

  /// Waits until the listener threads have ended.
  func join() {
    for thread in threads { thread.join() }
    encrypted?.thread.join()
  }

  /// Switches to other tables; the listener threads follow a moment later.
  ///
  /// - Parameter renewal: the files of the encrypted listeners, if they were read again.
  func use(_ preparation: Preparation, _ renewal: EncryptedFiles.Renewal?) {
    frontend.use(preparation.tables)
    for thread in threads { thread.offer(preparation.tables) }
    if let policy = preparation.encrypted {
      encrypted?.use(policy, preparation.configuration.encrypted, renewal)
    }
  }

  /// Whether every thread uses the tables of the last call of `use`. While this returns false, call it again a little later.
  func hasTakenTables() -> Bool {
    threads.allSatisfy { $0.hasTakenTables() } && encrypted?.thread.hasTakenPolicy ?? true
  }

  // MARK: End

  /// Stops reading, and stops the loop when the queries in flight are answered, at the latest after 2 s.
  func stop() {
    guard !isStopping else { return }
    isStopping = true
    stopWhenDone()
    for listener in listeners { listener.stop() }
    connections.drain()
    encrypted?.thread.drain()
    drainTimer.set(after: ClientSide.drainTime, on: loop, for: self) {
      $0.resolver.assumeIsolated { $0.giveUp() }
      $0.drainTimer.set(after: ClientSide.lastWords, on: $0.loop, for: $0) {
        $0.connections.closeAll()
        $0.loop.stop()
      }
    }
  }

  /// Checks periodically: the last answer may come from a job, after which no event ends the loop's wait, and listener
  /// threads may still hand over queries that they have read.
  private func stopWhenDone() {
    let running = threads.filter { !$0.stop() }
    if running.isEmpty, queries.inUse == 0, connections.count == 0, encrypted?.thread.hasDrained ?? true {
      loop.stop()
    } else {
      drainCheckTimer.set(after: ClientSide.drainCheck, on: loop, for: self) { $0.stopWhenDone() }
    }
  }

  // MARK: Turns

  /// Logs what clients were refused. Called in every turn: a listener thread wakes the loop when there is something to log.
  func logRefusals(by preparation: Preparation) {
    let tables = preparation.tables
    if let text = excesses.next(of: tables.rateLimit) {
      occasional.log(.warning, reason: "rate_limit", now: BootInstant.now.nanoseconds, text)
    }
    let now = loop.now.nanoseconds
    if let refused = tables.access.takeRefused(now: now) {
      occasional.log(.info, reason: "listen.allow", now: now, refused.text)
    }
    if let refused = preparation.encrypted?.tables.access.takeRefused(now: now) {
      occasional.log(.info, reason: "encrypted.allow", now: now, refused.text)
    }
  }
}

extension SocketAddress {
  /// The addresses to listen on: without those whose interface this machine does not have.
  ///
  /// - Parameter logger: gets a line for each of these; nil for no lines.
  static func existing(_ endpoints: [Endpoint], _ logger: Logger?) -> [SocketAddress] {
    endpoints.compactMap { endpoint in
      let address = SocketAddress(endpoint)
      guard endpoint.zone != nil, address.scope == 0 else { return address }
      logger?.warning("not listening on \(endpoint): this machine has no such interface")
      return nil
    }
  }
}
