// HTTPOrigin.swift -- one server: sends requests to it and decides when its connections are renewed.
//
// Used on its loop's thread only; released there too, or after the loop has ended.

import EventLoop

/// One server and the connections to it.
///
/// Connections belong to generations. A new generation opens new ones at once, while the transfers on the old ones go on
/// to their end: after two timeouts in a row, or when somebody knows that the network has changed.
public final class HTTPOrigin: HTTPTransport, @unchecked Sendable {
  /// The server.
  public let server: HTTPServerAddress
  /// How many generations there have been.
  public private(set) var generationCount = 1

  let loop: EventLoop
  /// The time by which the server is spared.
  var clock: () -> BootInstant
  private let settings: OriginSettings
  private var current: Generation?
  private var draining: [Generation] = []
  private var timeoutsInARow = 0
  private var isClosed = false
  private var calm: CalmPause
  /// Whether a transfer was cut off since the last response: then the next ones are watched for the server's reason,
  /// which costs libcurl the composition of texts.
  private(set) var isWatchful = false

  /// Timeouts in a row after which the connections are taken for dead.
  private static let timeoutLimit = 2

  /// An origin that connects with the first request.
  ///
  /// - Throws: `HTTPSetupError` for a certificate file that cannot be used, or a proxy that is no address.
  public init(
    _ server: HTTPServerAddress, options: HTTPClientOptions = HTTPClientOptions(), on loop: EventLoop
  ) throws(HTTPSetupError) {
    self.server = server
    self.loop = loop
    clock = { [unowned loop] in loop.now }
    calm = CalmPause(shortest: options.calmPause)
    settings = try OriginSettings(server, options)
    current = try Generation(settings, on: loop, of: self)
  }

  deinit { close() }

  /// Transfers that have not come to their end.
  public var inFlight: Int { draining.reduce(current?.active.count ?? 0) { $0 + $1.active.count } }

  /// Connections that are open or being opened.
  public var connectionCount: Int { draining.reduce(current?.sockets.count ?? 0) { $0 + $1.sockets.count } }

  /// Octets of responses that handles hold, those of transfers in flight and those that are kept for later.
  public var heldOctets: Int { draining.reduce(current?.heldOctets ?? 0) { $0 + $1.heldOctets } }

  /// libcurl's handles, in use or kept for later.
  public var handleCount: Int { draining.reduce(current?.handleCount ?? 0) { $0 + $1.handleCount } }

  /// Sends a request and waits for the end of the transfer, which comes within `timeout`.
  ///
  /// Must be called on the loop. A task's cancellation is not regarded.
  public nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult {
    // Unsafe only where a continuation is resumed twice or never: `Generation.finish` takes it out before it resumes it.
    await withUnsafeContinuation { continuation in
      if let failure = begin(request, timeout: timeout, continuation) {
        continuation.resume(returning: .failure(failure))
      }
    }
  }

  /// - Returns: why the transfer cannot begin.
  private func begin(
    _ request: HTTPRequest, timeout: Duration, _ continuation: UnsafeContinuation<HTTPResult, Never>
  ) -> HTTPFailure? {
    assert(loop.isCurrent, "an origin is used on its loop only")
    guard let current, !isClosed else { return HTTPFailure(.cancelled, "the origin is closed") }
    guard settings.isReachable else {
      return HTTPFailure(.unreachable, "the server has no address of the family that may be used")
    }
    if calm.isOn(at: clock()) {
      return HTTPFailure(.calm, "the server asked for fewer transfers a moment ago")
    }
    guard inFlight < settings.options.maxInFlight else {
      return HTTPFailure(.busy, "\(settings.options.maxInFlight) transfers are in flight")
    }
    return current.begin(request, timeout: timeout, continuation)
  }

  /// Lets later requests open new connections; those in flight go on over the old ones.
  public func renewConnections() {
    timeoutsInARow = 0
    guard let old = current, !isClosed, let fresh = try? Generation(settings, on: loop, of: self) else { return }
    current = fresh
    generationCount += 1
    old.isDraining = true
    draining.append(old)
    if old.active.isEmpty { didDrain(old) }
  }

  /// Ends all transfers with `cancelled` and closes the connections.
  public func close() {
    guard !isClosed else { return }
    isClosed = true
    let failure = HTTPFailure(.cancelled, "the origin is closed")
    for generation in draining { generation.close(failure) }
    draining = []
    current?.close(failure)
    current = nil
  }

  /// Starts the new transfers after the jobs that are ready now, which may bring more.
  func startSoon() {
    Task(executorPreference: loop) { [self] in
      for generation in draining { generation.start() }
      current?.start()
    }
  }

  /// Pauses, because the server has asked for fewer transfers. Transfers that were in flight report it again.
  func enhanceCalm() { calm.begin(at: clock()) }

  private func noteWhetherCutOff(_ result: HTTPResult) {
    switch result {
    case .response:
      isWatchful = false
      calm.answered(at: clock())
    case .failure(let failure): if failure.kind == .reset { isWatchful = true }
    }
  }

  /// Learns the time, and counts timeouts of the present connections; those of old ones say nothing new.
  ///
  /// - Parameter isLifeless: whether no other response has come in the latter part of the transfer's time.
  func didFinish(_ generation: Generation, _ result: HTTPResult, isLifeless: Bool) {
    noteWhetherCutOff(result)
    if server.scheme == .https, case .response(let response) = result, let date = response.date {
      settings.options.certificateClock?.learn(date, now: loop.now)
    }
    guard generation === current, !isClosed else { return }
    switch result {
    // It waited for others, which says nothing of the connections.
    case .failure(let failure) where failure.kind == .busy: return
    // Some questions take long, whoever carries them.
    case .failure(let failure) where failure.kind == .timeout && !isLifeless: return
    case .failure(let failure) where failure.kind == .timeout: timeoutsInARow += 1
    default: timeoutsInARow = 0
    }
    if timeoutsInARow >= Self.timeoutLimit { renewConnections() }
  }

  /// Closes a generation that has no more transfers.
  func didDrain(_ generation: Generation) {
    draining.removeAll { $0 === generation }
    generation.close(HTTPFailure(.cancelled, "the connections were renewed"))
  }
}
