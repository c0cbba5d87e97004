// Generation.swift -- one curl multi handle: the connections since the last change of network.
//
// libcurl may call its callbacks at any time during a call into it, so they only record. All other work is done from
// the loop: when a socket is ready, when a timer fires, or at the end of a turn with new transfers.

import CCurl
import EventLoop
import Glibc
import HTTPMessage

/// Transfers over one set of connections to one server. Owned by its origin; loop thread only.
final class Generation {
  /// Whether it accepts no new transfers and closes after its last one.
  var isDraining = false
  /// The transfers in flight, unordered.
  private(set) var active: [Transfer] = []
  /// The connections that libcurl reported, by descriptor.
  private(set) var sockets: [Int32: CurlSocket] = [:]

  /// libcurl's handle, owned; freed by `close`.
  private let handle: UnsafeMutableRawPointer
  private let loop: EventLoop
  private let settings: OriginSettings
  private unowned let origin: HTTPOrigin
  private var resting: [Transfer] = []
  /// Transfers that have not been added to libcurl.
  private let waiting = TransferQueue()
  /// The transfers of this turn.
  private var fresh: [Transfer] = []
  /// The number of transfers that have been added to libcurl.
  private var handedOver = 0
  /// Whether `start` is scheduled for the end of the turn.
  private var startsSoon = false
  /// Transfers that were added to libcurl since it last ran.
  private var offered: [Transfer] = []
  /// Maximum transfers in libcurl. With TLS it is one before the first response: until then libcurl does not know how
  /// many streams a server allows, and servers refuse excess streams.
  private var room: Int
  /// Whether a connection carries one transfer at a time. Unknown with TLS before the first response.
  private var isSequential: Bool
  private var isClosed = false
  /// Milliseconds after which libcurl wants a call, from its last request; negative for never.
  private var wish = -1
  private var wishChanged = false
  /// The time of the last response.
  private var lastResponse: BootInstant?
  private var timer: LoopTimer?

  /// Maximum idle handles to reuse, so that a burst does not configure new ones each time.
  private static let restingLimit = 256
  /// One connection for all streams (RFC 9113 section 9.1), and a second one when the first is full or closing.
  private static let multiplexedConnections = 2
  /// The number of simultaneous transfers from which their requests share segments.
  private static let corkedStart = 3
  /// Transfers in libcurl if no other limit is known; more than any server allows.
  private static let mostBegun = 1 << 20
  /// How many times in a row libcurl may ask to be called at once, before other events get their turn.
  private static let roundLimit = 8

  init(_ settings: OriginSettings, on loop: EventLoop, of origin: HTTPOrigin) throws(HTTPSetupError) {
    guard let multi = curl_multi_init() else { throw HTTPSetupError(description: "no memory for connections") }
    handle = multi
    self.settings = settings
    self.loop = loop
    self.origin = origin
    isSequential = settings.server.scheme == .http
    room = isSequential ? settings.options.maxConnections : 1
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = ccurl_multi_setopt_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    _ = ccurl_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, settings.options.maxConnections)
    limitConnections()
    _ = ccurl_multi_setopt_pointer(multi, CURLMOPT_SOCKETDATA, context)
    _ = ccurl_multi_setopt_socket_callback(multi, generationSocketDidChange)
    _ = ccurl_multi_setopt_pointer(multi, CURLMOPT_TIMERDATA, context)
    _ = ccurl_multi_setopt_timer_callback(multi, generationTimerDidChange)
  }

  deinit { precondition(isClosed, "a generation must be closed") }

  private var multi: UnsafeMutableRawPointer {
    assert(!isClosed, "a closed generation has no handle")
    return handle
  }

  /// Octets of content in all handles.
  var heldOctets: Int { (active + resting).reduce(0) { $0 + $1.heldOctets } }

  /// The number of handles, in use or idle.
  var handleCount: Int { active.count + resting.count }

  /// Queues a transfer. It starts at the end of the turn, together with all others of the turn.
  ///
  /// - Returns: the failure if it cannot be queued. The caller must then resume the continuation.
  func begin(
    _ request: HTTPRequest, timeout: Duration, _ continuation: UnsafeContinuation<HTTPResult, Never>
  ) -> HTTPFailure? {
    let context = Unmanaged.passUnretained(self).toOpaque()
    guard let transfer = resting.popLast() ?? Transfer(settings, generation: context) else {
      return HTTPFailure(.internal, "no memory for a transfer")
    }
    if let failure = transfer.prepare(request, isWatched: origin.isWatchful) {
      resting.append(transfer)
      return failure
    }
    transfer.continuation = continuation
    transfer.position = active.count
    active.append(transfer)
    transfer.timer = loop.schedule(after: timeout) { [unowned self, unowned transfer] in
      timeOut(transfer, after: timeout)
    }
    if !startsSoon { origin.startSoon() }
    startsSoon = true
    waiting.append(transfer, share: request.share)
    fresh.append(transfer)
    return nil
  }

  /// Adds the new transfers of the turn to libcurl and runs it once for all of them.
  func start() {
    startsSoon = false
    let batch = fresh
    fresh = []
    guard !isClosed, !waiting.isEmpty else { return }
    let corked = cork(batch)
    handOver()
    work(CURL_SOCKET_TIMEOUT, 0)
    for socket in corked { setCork(socket, false) }
    settle()
  }

  /// Adds as many transfers to libcurl as can begin. libcurl would prepare a transfer without a free connection now and
  /// again later.
  private func handOver() {
    let most = isProven || sockets.isEmpty ? min(room, Self.mostBegun) : 1
    while let transfer = waiting.next(free: most - handedOver) {
      if curl_multi_add_handle(multi, transfer.easy) == CURLM_OK {
        transfer.handedOverAt = loop.now
        handedOver += 1
        offered.append(transfer)
      } else {
        finish(transfer, .failure(HTTPFailure(.internal, "libcurl took no transfer")))
      }
    }
  }

  /// Whether the number of streams is known: for a connection of libcurl's, or because connections are sequential.
  private var isProven: Bool { isSequential || sockets.values.contains { $0.isMultiplexed } }

  /// Removes the transfers that libcurl could not begin, because the server allows no more streams or a connection is
  /// still being opened. libcurl would begin all of them at once on the next connection, before it knows how many
  /// streams that allows.
  private func takeBackOffered() {
    let idle = offered.filter { $0.handedOverAt != nil && !$0.hasConnection }
    offered = []
    guard !idle.isEmpty else { return }
    for transfer in idle.reversed() {
      detach(transfer)
      waiting.takeBack(transfer)
    }
    room = max(1, handedOver)
  }

  private func takeBack(_ transfer: Transfer) {
    waiting.ended(transfer)
    detach(transfer)
  }

  private func detach(_ transfer: Transfer) {
    curl_multi_remove_handle(multi, transfer.easy)
    handedOver -= 1
    transfer.handedOverAt = nil
    transfer.socket = nil
  }

  /// Restarts a transfer that libcurl gave up after retries, for example because of refused streams: the server now
  /// allows fewer. A refused stream was not processed (RFC 9113 section 8.7). Transfers then start one at a time until
  /// a response arrives on a new connection.
  private func startAgain(_ transfer: Transfer) {
    let share = transfer.share
    takeBack(transfer)
    transfer.isAgain = true
    waiting.append(transfer, share: share)
    if !isSequential { room = 1 }
  }

  private func limitConnections() {
    let most = settings.options.maxConnections
    let connections = isSequential ? most : min(most, Self.multiplexedConnections)
    _ = ccurl_multi_setopt_long(handle, CURLMOPT_MAX_HOST_CONNECTIONS, connections)
  }

  /// Updates the limits after a response.
  private func learn(from transfer: Transfer, httpVersion: Int) {
    if isSequential != (httpVersion == 1) {
      isSequential.toggle()
      limitConnections()
    }
    if isSequential {
      room = settings.options.maxConnections
    } else if let socket = transfer.socket, !socket.isMultiplexed {
      // libcurl now knows the limit of this connection. A transfer that cannot begin shows when it is reached.
      socket.isMultiplexed = true
      room = .max
    }
  }

  /// Fails all transfers and closes all connections. Later calls do nothing.
  func close(_ failure: HTTPFailure) {
    guard !isClosed else { return }
    while let transfer = active.last { finish(transfer, .failure(failure)) }
    isClosed = true
    timer?.cancel()
    resting = []
    _ = waiting.takeAll()
    fresh = []
    curl_multi_cleanup(handle)
    for socket in sockets.values { socket.disarm() }
    sockets = [:]
  }

  // MARK: - Events

  private func isReady(_ socket: CurlSocket, _ interest: Interest) {
    guard !isClosed else { return }
    guard !socket.wanted.isEmpty else {
      socket.disarm()
      return
    }
    let bits = (interest.contains(.read) ? CURL_CSELECT_IN : 0) | (interest.contains(.write) ? CURL_CSELECT_OUT : 0)
    work(socket.descriptor, bits)
    settle()
  }

  /// Fails a transfer whose time is up. The failure is `busy` if it waited for a connection most of the time, which is
  /// not the server's fault, and `timeout` otherwise; with TLS also `timeout` if no connection has carried a response
  /// yet.
  private func timeOut(_ transfer: Transfer, after time: Duration) {
    var atServer = isProven ? .zero : time
    if isProven, let start = transfer.handedOverAt, transfer.hasConnection { atServer = loop.now - start }
    let failure =
      atServer * 2 >= time
      ? HTTPFailure(.timeout, "no response in time") : HTTPFailure(.busy, "no free connection in time")
    finish(transfer, .failure(failure))
    settle()
  }

  private func isDue() {
    timer = nil
    work(CURL_SOCKET_TIMEOUT, 0)
    settle()
  }

  private func work(_ descriptor: Int32, _ bits: Int32) {
    // libcurl sets its timer again during this call if it needs one.
    if descriptor == CURL_SOCKET_TIMEOUT { wish = -1 }
    var running: Int32 = 0
    wishChanged = true
    curl_multi_socket_action(multi, descriptor, bits, &running)
  }

  /// Finishes completed transfers, calls libcurl again if it asks for it, and sets its timer.
  private func settle() {
    drain()
    handOver()
    var rounds = 0
    while !isClosed, wish == 0, rounds < Self.roundLimit {
      work(CURL_SOCKET_TIMEOUT, 0)
      drain()
      handOver()
      rounds += 1
    }
    guard !isClosed else { return }
    if wishChanged {
      wishChanged = false
      timer?.cancel()
      timer = wish < 0 ? nil : loop.schedule(after: .milliseconds(wish)) { [unowned self] in isDue() }
    }
    if isDraining, active.isEmpty { origin.didDrain(self) }
  }

  /// Finishes the transfers that libcurl reports as done. The last one may close the generation.
  private func drain() {
    var remaining: Int32 = 0
    while !isClosed, let message = curl_multi_info_read(multi, &remaining) {
      let (easy, code) = (message.pointee.easy_handle, message.pointee.data.result)
      guard let easy, let transfer = transfer(of: easy) else { continue }
      if !transfer.isAgain, transfer.wasRepeated(code) {
        startAgain(transfer)
      } else {
        finish(transfer, transfer.result(code, isFirst: lastResponse == nil))
      }
    }
    // After the loop above, because a failed transfer has no connection either.
    if !isClosed, !offered.isEmpty { takeBackOffered() }
  }

  private func finish(_ transfer: Transfer, _ result: HTTPResult) {
    guard let continuation = transfer.continuation else { return }
    transfer.continuation = nil
    transfer.timer?.cancel()
    transfer.timer = nil
    var result = result
    let began = transfer.handedOverAt
    switch result {
    case .response(let response):
      learn(from: transfer, httpVersion: response.httpVersion)
      lastResponse = loop.now
    case .failure(var failure):
      failure.wasSent = transfer.wasSent
      result = .failure(failure)
    }
    if transfer.handedOverAt == nil {
      waiting.remove(transfer)
      waiting.ended(transfer)
    } else {
      takeBack(transfer)
    }
    let last = active.removeLast()
    if last !== transfer {
      active[transfer.position] = last
      last.position = transfer.position
    }
    transfer.rest()
    if resting.count < Self.restingLimit { resting.append(transfer) }
    if transfer.heardCalm { origin.enhanceCalm() }
    // The connections are alive if a response arrived in the second half of the transfer's time.
    let isAlive = if let began, let last = lastResponse { last - began >= loop.now - last } else { false }
    origin.didFinish(self, result, isLifeless: !isAlive)
    continuation.resume(returning: result)
    // Waiting transfers would exceed the server's limit as well.
    if case .failure(let failure) = result, failure.kind == .calm {
      for next in waiting.takeAll() { finish(next, result) }
    }
  }

  // MARK: - Corking

  /// Corks connections while several requests are written, so that they share segments and the server wakes up once:
  /// with 16 simultaneous transfers over loopback, 20 µs each instead of 34 µs. A single POST already takes two writes.
  ///
  /// - Returns: the corked connections.
  private func cork(_ batch: [Transfer]) -> [CurlSocket] {
    guard batch.count >= Self.corkedStart || batch.contains(where: { $0.isPost }) else { return [] }
    let shared = sockets.values.filter { $0.isMultiplexed }
    guard shared.count <= batch.count else { return [] }
    for socket in shared { setCork(socket, true) }
    return shared
  }

  private func setCork(_ socket: CurlSocket, _ isOn: Bool) {
    guard sockets[socket.descriptor] === socket else { return }
    var value: Int32 = isOn ? 1 : 0
    setsockopt(socket.descriptor, Int32(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}

// MARK: - libcurl's callbacks

extension Generation {
  private func transfer(of easy: UnsafeMutableRawPointer) -> Transfer? {
    guard let context = ccurl_getinfo_pointer(easy, CURLINFO_PRIVATE) else { return nil }
    return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  }

  fileprivate func socketDidChange(_ easy: UnsafeMutableRawPointer?, _ descriptor: Int32, _ what: Int32) {
    guard what != CURL_POLL_REMOVE else {
      sockets[descriptor]?.wanted = []
      return
    }
    let socket: CurlSocket
    if let known = sockets[descriptor] {
      socket = known
    } else {
      socket = CurlSocket(descriptor)
      sockets[descriptor] = socket
    }
    if let easy { transfer(of: easy)?.socket = socket }
    socket.wanted = what == CURL_POLL_IN ? .read : what == CURL_POLL_OUT ? .write : [.read, .write]
    socket.arm(on: loop) { [unowned self, unowned socket] interest in isReady(socket, interest) }
  }

  fileprivate func socketWillClose(_ descriptor: Int32) {
    sockets.removeValue(forKey: descriptor)?.disarm()
  }

  fileprivate func timerDidChange(_ milliseconds: Int) {
    wish = milliseconds
    wishChanged = true
  }
}

private func generationSocketDidChange(
  _ easy: UnsafeMutableRawPointer?, _ descriptor: Int32, _ what: Int32, _ context: UnsafeMutableRawPointer?,
  _: UnsafeMutableRawPointer?
) -> Int32 {
  Unmanaged<Generation>.fromOpaque(context!).takeUnretainedValue().socketDidChange(easy, descriptor, what)
  return 0
}

private func generationTimerDidChange(
  _: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
  Unmanaged<Generation>.fromOpaque(context!).takeUnretainedValue().timerDidChange(milliseconds)
  return 0
}

/// libcurl's callback that closes a socket.
func generationSocketWillClose(_ context: UnsafeMutableRawPointer?, _ descriptor: Int32) -> Int32 {
  Unmanaged<Generation>.fromOpaque(context!).takeUnretainedValue().socketWillClose(descriptor)
  return Glibc.close(descriptor)
}
