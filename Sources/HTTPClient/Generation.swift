// Generation.swift -- transfers over one set of connections: those that wait, and those that its carrier has.

import EventLoop
import HTTPMessage

/// Carries transfers over connections to one server. Loop thread only.
///
/// It takes the transfers from its generation (`Generation.next`) as it has room, and reports how each one ended.
protocol Carrier: AnyObject {
  /// The number of connections that are open or being opened.
  var connectionCount: Int { get }
  /// Whether a connection has shown that the server is there. Before that, time that passes is the server's.
  var isProven: Bool { get }
  /// Whether there is a connection that carries requests, so that a transfer without one waits for other transfers.
  var isOpen: Bool { get }
  /// Whether transfers that wait do so because of others, and not because the server is not there.
  var isBusy: Bool { get }
  /// Whether a transfer has or had a connection or a stream.
  func hasConnection(_ transfer: Transfer) -> Bool
  /// The address that a transfer's connection has or had, unless a proxy connects; nil if it is not known.
  func address(of transfer: Transfer) -> SocketAddress?
  /// Whether the request of a transfer may have reached the server.
  func wasSent(_ transfer: Transfer) -> Bool
  /// Takes waiting transfers, at the end of a turn that added some or in which one has timed out.
  func start(_ fresh: [Transfer])
  /// Drops a transfer that has ended or goes back into the queue.
  func detach(_ transfer: Transfer)
  /// Opens a connection without a request.
  func shakeHands(_ handshake: Handshake)
  /// Closes all connections. No transfer has them any more.
  func close()
}

/// Transfers over one set of connections to one server. Owned by its origin; loop thread only.
final class Generation {
  /// Whether it accepts no new transfers and closes after its last one.
  var isDraining = false
  /// The transfers in flight, unordered.
  private(set) var active: [Transfer] = []
  private(set) var lastResponse: BootInstant?
  private(set) var isClosed = false

  let loop: EventLoop
  /// At which addresses its connections begin.
  let order: ConnectionOrder
  private let settings: OriginSettings
  private unowned let origin: HTTPOrigin
  private var carrier: any Carrier
  private var resting: [Transfer] = []
  /// Transfers that the carrier does not have yet.
  private let waiting = TransferQueue()
  /// The transfers of this turn.
  private var fresh: [Transfer] = []
  /// Whether `start` is scheduled for the end of the turn.
  private var startsSoon = false

  /// Maximum idle transfers to reuse, so that a burst does not configure new ones each time.
  private static let restingLimit = 256

  init(
    _ settings: OriginSettings, _ order: ConnectionOrder, on loop: EventLoop, of origin: HTTPOrigin
  ) throws(HTTPSetupError) {
    self.settings = settings
    self.order = order
    self.loop = loop
    self.origin = origin
    if settings.carriesStreams {
      let streams = HTTP2Carrier(settings, order, on: loop)
      carrier = streams
      streams.generation = self
    } else {
      let curl = try CurlCarrier(settings, order, on: loop)
      carrier = curl
      curl.generation = self
    }
  }

  deinit { precondition(isClosed, "a generation must be closed") }

  /// Octets of content in all transfers.
  var heldOctets: Int { (active + resting).reduce(0) { $0 + $1.heldOctets } }

  /// The number of transfers, in use or idle.
  var transferCount: Int { active.count + resting.count }

  /// Whether there is a connection that carries requests.
  var isOpen: Bool { !isClosed && carrier.isOpen }

  /// The number of connections that are open or being opened.
  var connectionCount: Int { isClosed ? 0 : carrier.connectionCount }

  /// Whether a transfer was cut off since the last response.
  var isWatchful: Bool { origin.isWatchful }

  /// The number of transfers that wait for a connection or a stream.
  var waitingCount: Int { waiting.count }

  /// Queues a transfer. It starts at the end of the turn, together with all others of the turn.
  ///
  /// - Returns: the failure if it cannot be queued. The caller must then resume the continuation.
  func begin(
    _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration,
    _ continuation: UnsafeContinuation<HTTPResult, Never>
  ) -> HTTPFailure? {
    let transfer = resting.popLast() ?? Transfer()
    if let failure = transfer.prepare(request, settings) {
      resting.append(transfer)
      return failure
    }
    transfer.continuation = continuation
    transfer.owner = owner
    transfer.generation = self
    transfer.position = active.count
    active.append(transfer)
    transfer.timer.set(after: timeout, on: loop, for: transfer) { $0.generation?.timeOut($0, after: timeout) }
    startSoon()
    append(transfer)
    fresh.append(transfer)
    owner?.isCarried(by: transfer)
    return nil
  }

  /// Lets waiting transfers begin at the end of the turn.
  private func startSoon() {
    if !startsSoon { origin.startSoon() }
    startsSoon = true
  }

  private func append(_ transfer: Transfer) {
    waiting.append(transfer, client: transfer.owner?.clientShare ?? 0, domain: transfer.owner?.domainShare ?? 0)
  }

  /// Passes the new transfers of the turn to the carrier at once.
  func start() {
    guard startsSoon, !isClosed else { return }
    startsSoon = false
    let batch = fresh
    fresh = []
    carrier.start(batch)
    if !waiting.isEmpty { wait(batch) }
    endIfDrained()
  }

  /// Marks waiting transfers as queued, so that their owners do not count that time, if they wait for other transfers
  /// and not for the server.
  private func wait(_ transfers: [Transfer]) {
    guard !isClosed else { return }
    if carrier.isBusy { for transfer in transfers where transfer.isWaiting { waitForOthers(transfer) } }
    makeRoom()
  }

  /// A transfer that waits for others does so only for clients.
  private func waitForOthers(_ transfer: Transfer) {
    transfer.isQueued = true
    if transfer.hasNoClients { finish(transfer, .failure(.noClients)) }
  }

  /// Lets a waiting transfer also take a turn of another client.
  func isJoined(_ transfer: Transfer, by client: UInt64) {
    waiting.join(transfer, client: client)
    if transfer.isWaiting { startSoon() }
  }

  /// Ends a transfer without clients if it waits, or if another one waits for its place. `begin` may call this, through the
  /// owner: then the transfer is the last of the turn, and `start` finds out whether it has to wait.
  func isLate(_ transfer: Transfer) {
    if transfer.isWaiting, fresh.last !== transfer { finish(transfer, .failure(.noClients)) }
    makeRoom()
    endIfDrained()
  }

  /// Ends transfers without clients, as many as there are others that wait, first those of the client that has the most in
  /// flight. One stays: its reply would show that the server is back.
  private func makeRoom() {
    guard !waiting.isEmpty else { return }
    let late = active.filter { $0.hasNoClients && !$0.isWaiting }
    guard late.count > 1 else { return }
    let places = late.map { ($0, waiting.countOfClient($0)) }.sorted { $0.1 > $1.1 }
    for (transfer, _) in places.dropLast().prefix(waiting.count) { finish(transfer, .failure(.noClients)) }
    startSoon()
  }

  /// Fails all transfers and closes all connections. Later calls do nothing.
  func close(_ failure: HTTPFailure) {
    guard !isClosed else { return }
    while let transfer = active.last { finish(transfer, .failure(failure)) }
    isClosed = true
    resting = []
    _ = waiting.takeAll()
    fresh = []
    carrier.close()
  }

  /// Fails a transfer whose time is up. The failure is `busy` if it waited for a connection most of the time while others
  /// were answered, which is not the server's fault, and `timeout` otherwise.
  fileprivate func timeOut(_ transfer: Transfer, after time: Duration) {
    let isProven = carrier.isProven && settings.answeredAt + time >= loop.now
    var atServer = isProven ? .zero : time
    if isProven, let start = transfer.handedOverAt, carrier.hasConnection(transfer) { atServer = loop.now - start }
    let failure =
      atServer * 2 >= time
      ? HTTPFailure(.timeout, "no response in time") : HTTPFailure(.busy, "no free connection in time")
    // That the host takes no more connections is no limit of ours.
    finish(transfer, .failure(transfer.handedOverAt == nil ? transfer.refusedConnection ?? failure : failure))
    // Not at once: another one whose time is up as well would take its place, and be sent for no client.
    startSoon()
  }
}

// MARK: - For its carrier

extension Generation {
  /// Dequeues the next transfer that may begin.
  ///
  /// - Parameter free: the number of transfers that may begin, including this one.
  func next(free: Int) -> Transfer? {
    guard let transfer = waiting.next(free: free) else { return nil }
    transfer.handedOverAt = loop.now
    if transfer.isQueued {
      transfer.isQueued = false
      transfer.owner?.gotConnection()
    }
    return transfer
  }

  /// Opens a connection without a request.
  func shakeHands(_ handshake: Handshake) { carrier.shakeHands(handshake) }

  /// Returns transfers that have not begun to the front of the queue, in their order.
  func takeBack(_ transfers: [Transfer]) {
    for transfer in transfers.reversed() {
      carrier.detach(transfer)
      transfer.handedOverAt = nil
      waiting.takeBack(transfer)
    }
    wait(transfers)
  }

  /// Queues a transfer once more that the server has not processed, or ends it if it must not be sent once more.
  func startAgain(_ transfer: Transfer) {
    let wasSent = carrier.wasSent(transfer)
    guard !transfer.hasNoClients else { return finish(transfer, .failure(.noClients)) }
    guard !wasSent || transfer.mayRepeat() else { return finish(transfer, .failure(.notRepeated)) }
    waiting.ended(transfer)
    if wasSent { transfer.timesSent += 1 }
    carrier.detach(transfer)
    transfer.handedOverAt = nil
    transfer.repeats += 1
    transfer.forgetResponse()
    append(transfer)
  }

  /// Ends a transfer.
  func finish(_ transfer: Transfer, _ result: HTTPResult) {
    guard let continuation = transfer.continuation else { return }
    transfer.continuation = nil
    transfer.timer.cancel()
    var result = result
    let began = transfer.handedOverAt
    var isUnanswered = false
    switch result {
    case .response(let response):
      lastResponse = loop.now
      settings.answeredAt = loop.now
      if response.status == 200 { order.isAnswered(at: loop.now, by: carrier.address(of: transfer)) }
    case .failure(var failure):
      failure.timesSent = transfer.timesSent + (began != nil && carrier.wasSent(transfer) ? 1 : 0)
      result = .failure(failure)
    }
    // The connections are alive if a response arrived in the second half of the transfer's time.
    let isAlive = if let began, let last = lastResponse { last - began >= loop.now - last } else { false }
    if case .failure(let failure) = result, failure.kind == .timeout, !isAlive,
      let address = carrier.address(of: transfer)
    {
      isUnanswered = !order.isProven(address, at: loop.now)
    }
    if began == nil { waiting.remove(transfer) }
    waiting.ended(transfer)
    if began != nil {
      carrier.detach(transfer)
      transfer.handedOverAt = nil
    }
    let last = active.removeLast()
    if last !== transfer {
      active[transfer.position] = last
      last.position = transfer.position
    }
    let client = transfer.owner?.clientShare ?? 0
    transfer.rest()
    if resting.count < Self.restingLimit { resting.append(transfer) }
    origin.didFinish(self, result, of: client, isLifeless: !isAlive, isUnanswered: isUnanswered)
    continuation.resume(returning: result)
    // Waiting transfers would exceed the server's limit as well.
    if case .failure(let failure) = result, failure.kind == .calm { failWaiting(failure) }
  }

  func failWaiting(_ failure: HTTPFailure) {
    for transfer in waiting.takeAll() { finish(transfer, .failure(failure)) }
  }

  /// Tells the origin if the last transfer has ended. May close this generation.
  func endIfDrained() {
    if isDraining, active.isEmpty, !isClosed { origin.didDrain(self) }
  }

  /// Passes the waiting transfers to libcurl from now on, because the server does not speak HTTP/2.
  func fallBackToCurl() {
    guard !isClosed else { return }
    settings.lacksHTTP2 = true
    // Those that are on a connection which takes no more.
    for transfer in active where transfer.handedOverAt != nil { startAgain(transfer) }
    carrier.close()
    do {
      let curl = try CurlCarrier(settings, order, on: loop)
      carrier = curl
      curl.generation = self
      curl.speaksHTTP1()
      curl.start([])
    } catch {
      failWaiting(HTTPFailure(.internal, error.description))
    }
  }
}
