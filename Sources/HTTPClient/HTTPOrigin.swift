// HTTPOrigin.swift -- one server: sends requests to it and decides when to renew its connections.
//
// Used on its loop's thread only. Released there too, or after the loop has ended.

import EventLoop
import HTTPMessage

/// One server and the connections to it.
///
/// Connections belong to generations. A new generation opens new connections at once, while transfers on the old ones
/// continue to their end. It starts after two timeouts in a row, or when a caller reports a change of network.
///
/// An address that takes connections and leaves a request without an answer is doubted, unless it has answered others lately.
/// Then a second generation, the trial, begins at another address, and the first answer with status 200 decides which of the
/// two stays. Until then a client whose request got no answer at the present address sends its next one to the trial, and
/// other clients' requests stay where they are.
public final class HTTPOrigin: HTTPTransport {
  public let server: HTTPServerAddress
  /// The number of generations so far.
  public private(set) var generationCount = 1

  let loop: EventLoop
  private let settings: OriginSettings
  private var current: Generation?
  /// The second generation while the address of the current one is doubted.
  private var trial: Generation?
  /// Clients whose next request goes to the trial.
  private var triers: Set<UInt64> = []
  private var draining: [Generation] = []
  /// Those in progress.
  private var handshakes: [Handshake] = []
  private var timeoutsInARow = 0
  private var isClosed = false
  /// Whether a transfer was cut off since the last response. Later transfers are then watched for the server's reason,
  /// for which libcurl has to compose log texts.
  private(set) var isWatchful = false

  /// Timeouts in a row after which the connections count as dead.
  private static let timeoutLimit = 2
  /// The most clients that are remembered while an address is doubted.
  private static let mostTriers = 1024

  /// Connects with the first request.
  ///
  /// - Throws: `HTTPSetupError` for an unusable certificate file, a malformed pin, or a proxy whose host is not an
  ///   address.
  public init(
    _ server: HTTPServerAddress, options: HTTPClientOptions = HTTPClientOptions(), on loop: EventLoop
  ) throws(HTTPSetupError) {
    self.server = server
    self.loop = loop
    settings = try OriginSettings(server, options)
    let order = ConnectionOrder(server, settings.addresses, hasProxy: !options.proxy.isEmpty)
    current = try Generation(settings, order, on: loop, of: self)
  }

  deinit { close() }

  /// The number of transfers that have not ended.
  public var inFlight: Int { sum { $0.active.count } }

  /// The number of connections that are open or being opened.
  public var connectionCount: Int { sum { $0.connectionCount } }

  /// Octets of responses in all handles, in use or idle.
  public var heldOctets: Int { sum { $0.heldOctets } }

  /// The number of transfers in use or idle, each with a handle if libcurl carries it.
  public var handleCount: Int { sum { $0.transferCount } }

  private func sum(_ count: (Generation) -> Int) -> Int {
    draining.reduce((current.map(count) ?? 0) + (trial.map(count) ?? 0)) { $0 + count($1) }
  }

  /// Sends a request and waits until the transfer ends, at the latest after `timeout`.
  ///
  /// Must be called on the loop. Does not respond to task cancellation.
  public nonisolated(nonsending) func send(
    _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration
  ) async -> HTTPResult {
    // Unsafe only if a continuation is resumed twice or never: `Generation.finish` removes it before it resumes it.
    await withUnsafeContinuation { continuation in
      if let failure = begin(request, for: owner, timeout: timeout, continuation) {
        continuation.resume(returning: .failure(failure))
      }
    }
  }

  /// - Returns: the failure if the transfer cannot begin.
  private func begin(
    _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration,
    _ continuation: UnsafeContinuation<HTTPResult, Never>
  ) -> HTTPFailure? {
    assert(loop.isCurrent, "an origin is used on its loop only")
    guard let current, !isClosed else { return HTTPFailure(.cancelled, "the origin is closed") }
    guard settings.isReachable else { return .noAddress }
    guard inFlight < settings.options.maxInFlight else {
      return HTTPFailure(.busy, "\(settings.options.maxInFlight) transfers are in flight")
    }
    let isForTrial = trial != nil && triers.remove(owner?.clientShare ?? 0) != nil
    return (isForTrial ? trial! : current).begin(request, for: owner, timeout: timeout, continuation)
  }

  /// Makes later requests open new connections; transfers in flight continue on the old ones.
  public func renewConnections() {
    endTrial()
    renewCurrent()
  }

  private func renewCurrent() {
    timeoutsInARow = 0
    guard let old = current, !isClosed, let fresh = try? Generation(settings, old.order, on: loop, of: self) else {
      return
    }
    current = fresh
    generationCount += 1
    drain(old)
  }

  private func drain(_ old: Generation) {
    old.isDraining = true
    draining.append(old)
    if old.active.isEmpty { didDrain(old) }
  }

  /// A client's request has got no answer at an address that has not answered others lately.
  private func doubt(_ generation: Generation, by client: UInt64) {
    guard let current else { return }
    if generation === current, trial != nil {
      if triers.count < Self.mostTriers { triers.insert(client) }
      return
    }
    // A trial without an answer goes on at the next address, or else on new connections to its own.
    let order = generation.order.next(besides: current.order) ?? (generation === current ? nil : generation.order)
    guard let order, let next = try? Generation(settings, order, on: loop, of: self) else { return }
    if generation === current { triers.insert(client) }
    let old = trial
    trial = next
    if let old { drain(old) }
  }

  private func endTrial() {
    guard let old = trial else { return }
    (trial, triers) = (nil, [])
    drain(old)
  }

  /// A request has been answered with status 200.
  private func decide(_ generation: Generation) {
    guard let current, let winner = trial else { return }
    if generation === winner {
      (self.current, trial, triers) = (winner, nil, [])
      (timeoutsInARow, generationCount) = (0, generationCount + 1)
      drain(current)
    } else if generation.order === current.order {
      endTrial()
    }
  }

  /// The addresses that went behind others, as text.
  public var silentAddresses: Set<String> { Set(current?.order.silent.map(\.host) ?? []) }

  /// Whether there is a connection that carries requests.
  public var isConnected: Bool { current?.isOpen ?? false }

  /// When the last octet of HTTP arrived, or the last handshake succeeded.
  public var heardAt: BootInstant { settings.heardAt }

  /// Opens a connection without a request. If only that shows that the server is there, the older connections are dead, and
  /// what they carry is sent once more.
  public nonisolated(nonsending) func handshake(timeout: Duration) async -> HTTPFailure? {
    assert(loop.isCurrent, "an origin is used on its loop only")
    let (order, first) = (current?.order, current?.order.addresses.first)
    let failure: HTTPFailure? = await withUnsafeContinuation { continuation in
      guard let current, !isClosed else {
        return continuation.resume(returning: HTTPFailure(.cancelled, "the origin is closed"))
      }
      guard settings.isReachable else { return continuation.resume(returning: .noAddress) }
      let handshake = Handshake(on: loop, timeout: timeout, continuation)
      handshakes.append(handshake)
      current.shakeHands(handshake)
    }
    handshakes.removeAll { $0.isOver }
    if let failure {
      // Streams begin each handshake at another address. libcurl would go on with the first one, if that is still the same.
      if failure.isOfAddress, !settings.carriesStreams, let order, order === current?.order,
        order.addresses.first == first, order.putFirstLast()
      {
        renewConnections()
      }
    } else {
      settings.isHeard(at: loop.now)
    }
    return failure
  }

  /// Fails the transfers in flight, and opens new connections for later ones: the server cannot be reached.
  public func abandon(_ failure: HTTPFailure) {
    renewConnections()
    let lost = draining
    draining = []
    for generation in lost { generation.close(failure) }
  }

  /// Fails all transfers with `cancelled` and closes the connections. Later requests fail the same way.
  public func close() {
    guard !isClosed else { return }
    isClosed = true
    let failure = HTTPFailure(.cancelled, "the origin is closed")
    for handshake in handshakes { handshake.end(failure) }
    for generation in draining { generation.close(failure) }
    draining = []
    trial?.close(failure)
    current?.close(failure)
    (trial, current) = (nil, nil)
  }

  /// Starts the new transfers after the jobs that are ready now, which may add more.
  func startSoon() {
    // Each request passes here, and `startTask` would allocate once more.
    nonisolated(unsafe) let origin = self
    Task(executorPreference: loop) {
      for generation in origin.draining { generation.start() }
      origin.trial?.start()
      origin.current?.start()
    }
  }

  private func noteWhetherCutOff(_ result: HTTPResult) {
    switch result {
    case .response: isWatchful = false
    case .failure(let failure): if failure.kind == .reset { isWatchful = true }
    }
  }

  /// Learns the time, and counts timeouts of the current connections; those of old connections are not counted.
  ///
  /// - Parameters:
  ///   - isLifeless: whether no other response arrived in the second half of the transfer's time.
  ///   - isUnanswered: whether an address that has not answered others lately left the request without an answer.
  func didFinish(
    _ generation: Generation, _ result: HTTPResult, of client: UInt64, isLifeless: Bool, isUnanswered: Bool
  ) {
    noteWhetherCutOff(result)
    if server.scheme == .https, case .response(let response) = result, let date = response.date {
      settings.options.certificateClock?.learn(date, now: loop.now)
    }
    guard !isClosed else { return }
    if case .response(let response) = result, response.status == 200 { decide(generation) }
    if isUnanswered, generation === current || generation === trial { doubt(generation, by: client) }
    guard generation === current else { return }
    switch result {
    // The transfer waited for other transfers or made room for them, which says nothing about the connections.
    case .failure(let failure) where failure.kind == .busy || failure.kind == .cancelled: return
    // Some questions take long on any connection.
    case .failure(let failure) where failure.kind == .timeout && !isLifeless: return
    case .failure(let failure) where failure.kind == .timeout: timeoutsInARow += 1
    default: timeoutsInARow = 0
    }
    if timeoutsInARow >= Self.timeoutLimit { renewCurrent() }
  }

  /// Closes a generation that has no more transfers.
  func didDrain(_ generation: Generation) {
    draining.removeAll { $0 === generation }
    generation.close(HTTPFailure(.cancelled, "the connections were renewed"))
  }
}
