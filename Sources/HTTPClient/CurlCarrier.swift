// CurlCarrier.swift -- carries transfers by one multi handle of libcurl: HTTP/1.1, proxies, and HTTP/2 through a proxy.
//
// libcurl may call its callbacks at any time during a call into it, so they only record. All other work is done from
// the loop: when a socket is ready, when a timer fires, or at the end of a turn with new transfers.

import CCurl
import EventLoop
import Glibc
import HTTPMessage

/// Transfers and connections of one multi handle. Owned by its generation; loop thread only.
final class CurlCarrier: Carrier {
  unowned var generation: Generation!
  /// The connections that libcurl reported, by descriptor.
  private(set) var sockets: [Int32: CurlSocket] = [:]

  /// Connections for the next transfers, while each connection carries one at a time.
  private let spares: SpareConnections
  /// Handshakes in progress.
  private var handshakes: [CurlHandshake] = []
  /// The address of the server, or of its proxy, that has carried a response.
  private var peer: SocketAddress?
  private let sweep = OwnedTimer()

  /// libcurl's handle, owned; freed by `close`.
  private let handle: UnsafeMutableRawPointer
  let loop: EventLoop
  private let settings: OriginSettings
  let order: ConnectionOrder
  /// The number of transfers that have been added to libcurl.
  private var handedOver = 0
  /// Transfers that were added to libcurl since it last ran.
  private var offered: [Transfer] = []
  /// Maximum transfers in libcurl. With TLS it is one before the first response: until then libcurl does not know how
  /// many streams a server allows, and servers refuse excess streams.
  private var room: Int
  /// Whether a connection carries one transfer at a time. Unknown with TLS before the first response.
  private var isSequential: Bool
  /// Whether the server's host has refused a connection beside open ones.
  private var isFull = false
  private var isClosed = false
  /// Milliseconds after which libcurl wants a call, from its last request; negative for never.
  private var wish = -1
  private var wishChanged = false
  private let timer = OwnedTimer()
  /// Calls of libcurl in a row in which nothing of a response came, as while a server lets TLS write nothing, and has octets
  /// to read or keys to update.
  private var idleCalls = 0
  /// The pause before libcurl is called again; nil for none.
  var pauseTime: Duration? { idleCalls > Self.mostIdleCalls ? Self.idlePause : nil }

  /// A server that was heard within this time is there …
  private static let moment = Duration.seconds(2)
  /// … and within this time has probably only names that hang on the connections of a new generation.
  private static let memory = Duration.seconds(10)
  /// One connection for all streams (RFC 9113 section 9.1), and a second one when the first is full or closing.
  private static let multiplexedConnections = 2
  /// The number of simultaneous transfers from which their requests share segments.
  private static let corkedStart = 3
  /// Transfers in libcurl if no other limit is known; more than any server allows.
  private static let mostBegun = 1 << 20
  /// How many times in a row libcurl may ask to be called at once, before other events get their turn.
  private static let roundLimit = 8
  /// The time after which none begins.
  private static let roundTime = Duration.milliseconds(1)
  /// Many handshakes side by side take a few hundred.
  private static let mostIdleCalls = 512
  private static let idlePause = Duration.milliseconds(2)

  init(_ settings: OriginSettings, _ order: ConnectionOrder, on loop: EventLoop) throws(HTTPSetupError) {
    guard let multi = curl_multi_init() else { throw HTTPSetupError(description: "no memory for connections") }
    handle = multi
    self.settings = settings
    self.order = order
    self.loop = loop
    spares = SpareConnections(userTimeout: settings.options.userTimeout, on: loop)
    isSequential = settings.server.scheme == .http || settings.lacksHTTP2
    room = isSequential ? settings.options.maxConnections : 1
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = ccurl_multi_setopt_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    _ = ccurl_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, settings.options.maxConnections)
    limitConnections()
    _ = ccurl_multi_setopt_pointer(multi, CURLMOPT_SOCKETDATA, context)
    _ = ccurl_multi_setopt_socket_callback(multi, carrierSocketDidChange)
    _ = ccurl_multi_setopt_pointer(multi, CURLMOPT_TIMERDATA, context)
    _ = ccurl_multi_setopt_timer_callback(multi, carrierTimerDidChange)
  }

  deinit { precondition(isClosed, "a carrier must be closed") }

  private var multi: UnsafeMutableRawPointer {
    assert(!isClosed, "a closed carrier has no handle")
    return handle
  }

  var connectionCount: Int { sockets.values.count { !$0.isShutDown } + spares.count }

  /// Whether the number of streams is known: for a connection of libcurl's, or because connections are sequential.
  var isProven: Bool { isSequential || sockets.values.contains { $0.isMultiplexed } }

  var isOpen: Bool { generation.lastResponse != nil && !sockets.isEmpty }

  var isBusy: Bool { isOpen || isSequential && !sockets.isEmpty && settings.heardAt + Self.memory >= loop.now }

  func hasConnection(_ transfer: Transfer) -> Bool { transfer.handle?.hasConnection == true }

  func wasSent(_ transfer: Transfer) -> Bool { transfer.handle?.wasSent == true }

  func address(of transfer: Transfer) -> SocketAddress? { transfer.handle?.peer }

  /// Something of a response has arrived.
  func isHeard() {
    idleCalls = 0
    settings.isHeard(at: loop.now)
  }

  /// Connects without a request, and closes the connection.
  func shakeHands(_ handshake: Handshake) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    guard !isClosed, let attempt = CurlHandshake(handshake, settings, order, carrier: context) else {
      return handshake.end(HTTPFailure(.internal, "libcurl took no handshake"))
    }
    handshakes.append(attempt)
    limitConnections()
    curl_multi_add_handle(multi, attempt.easy)
    handshake.onEnd = { [weak self, weak attempt] in
      if let attempt { self?.end(attempt) }
    }
    work(CURL_SOCKET_TIMEOUT, 0)
    pump()
  }

  /// Not from within libcurl's call: the caller is the handshake's timer, or `drain`.
  private func end(_ attempt: CurlHandshake) {
    handshakes.removeAll { $0 === attempt }
    guard !isClosed else { return }
    curl_multi_remove_handle(multi, attempt.easy)
    limitConnections()
  }

  /// Notes that the server was found to speak HTTP/1.1 only.
  func speaksHTTP1() {
    isSequential = true
    limitConnections()
    room = settings.options.maxConnections
  }

  /// Adds the new transfers of the turn to libcurl and runs it once for all of them.
  func start(_ fresh: [Transfer]) {
    let corked = cork(fresh)
    handOver()
    work(CURL_SOCKET_TIMEOUT, 0)
    for socket in corked { setCork(socket, false) }
    pump()
  }

  /// Adds as many transfers to libcurl as can begin. libcurl would prepare a transfer without a free connection now and
  /// again later.
  private func handOver() {
    let most = isProven || sockets.isEmpty ? min(room, Self.mostBegun) : 1
    while let transfer = generation.next(free: most - handedOver) {
      if let handle = prepared(transfer), curl_multi_add_handle(multi, handle.easy) == CURLM_OK {
        handedOver += 1
        handle.isHandedOver = true
        offered.append(transfer)
      } else {
        generation.finish(transfer, .failure(HTTPFailure(.internal, "libcurl took no transfer")))
      }
    }
  }

  /// The transfer's handle, with its request; nil without memory.
  private func prepared(_ transfer: Transfer) -> CurlHandle? {
    if transfer.handle == nil { transfer.handle = CurlHandle(transfer, settings, self) }
    transfer.handle?.prepare(isWatched: generation.isWatchful)
    return transfer.handle
  }

  /// Removes the transfers that libcurl could not begin, because the server allows no more streams or a connection is
  /// still being opened. libcurl would begin all of them at once on the next connection, before it knows how many
  /// streams that allows.
  private func takeBackOffered() {
    let idle = offered.filter { $0.handedOverAt != nil && !hasConnection($0) }
    offered = []
    guard !idle.isEmpty else { return }
    room = max(1, handedOver - idle.count)
    generation.takeBack(idle)
  }

  func detach(_ transfer: Transfer) {
    guard let handle = transfer.handle, handle.isHandedOver else { return }
    handle.isHandedOver = false
    curl_multi_remove_handle(multi, handle.easy)
    handedOver -= 1
    handle.socket = nil
  }

  private func limitConnections() {
    let most = settings.options.maxConnections
    let connections = (isSequential ? most : min(most, Self.multiplexedConnections)) + handshakes.count
    _ = ccurl_multi_setopt_long(handle, CURLMOPT_MAX_HOST_CONNECTIONS, connections)
  }

  /// Updates the limits after a response.
  private func learn(from handle: CurlHandle, httpVersion: Int) {
    if isSequential != (httpVersion == 1) {
      isSequential.toggle()
      limitConnections()
      if !isSequential { settings.lacksHTTP2 = false }
    }
    if isSequential {
      let most = settings.options.maxConnections
      // After a refusal one more connection is tried for each response.
      room = isFull ? min(room + 1, most) : most
      if room == most { isFull = false }
      if peer == nil, let descriptor = handle.socket?.descriptor { peer = SocketAddress(peerOf: descriptor) }
    } else if let socket = handle.socket, !socket.isMultiplexed {
      // libcurl now knows the limit of this connection. A transfer that cannot begin shows when it is reached.
      socket.isMultiplexed = true
      room = .max
    }
  }

  func close() {
    guard !isClosed else { return }
    for attempt in handshakes { attempt.handshake.end(HTTPFailure(.cancelled, "the connections are closed")) }
    isClosed = true
    timer.cancel()
    sweep.cancel()
    spares.closeAll()
    curl_multi_cleanup(handle)
    for socket in sockets.values { socket.disarm() }
    sockets = [:]
  }

  // MARK: - Events

  func isReady(_ socket: CurlSocket, _ interest: Interest) {
    guard !isClosed else { return }
    guard !socket.wanted.isEmpty else {
      socket.disarm()
      return
    }
    let bits = (interest.contains(.read) ? CURL_CSELECT_IN : 0) | (interest.contains(.write) ? CURL_CSELECT_OUT : 0)
    work(socket.descriptor, bits)
    pump()
  }

  private func isDue() {
    work(CURL_SOCKET_TIMEOUT, 0)
    pump()
  }

  private func work(_ descriptor: Int32, _ bits: Int32) {
    // libcurl sets its timer again during this call if it needs one.
    if descriptor == CURL_SOCKET_TIMEOUT { wish = -1 }
    var running: Int32 = 0
    wishChanged = true
    idleCalls += 1
    settings.beginCallOfCurl()
    curl_multi_socket_action(multi, descriptor, bits, &running)
  }

  /// Finishes completed transfers, calls libcurl again if it asks for it, and sets its timer.
  private func pump() {
    guard !isClosed else { return }
    drain()
    handOverIfOpen()
    var rounds = 0
    let end = loop.preciseNow + Self.roundTime
    while !isClosed, wish == 0, pauseTime == nil, rounds < Self.roundLimit, loop.preciseNow < end {
      work(CURL_SOCKET_TIMEOUT, 0)
      drain()
      handOverIfOpen()
      rounds += 1
    }
    guard !isClosed else { return }
    if wishChanged {
      wishChanged = false
      let time = max(.milliseconds(wish), pauseTime ?? .zero)
      if wish < 0 { timer.cancel() } else { timer.set(after: time, on: loop, for: self) { $0.isDue() } }
    }
    growAhead()
    generation.endIfDrained()
  }

  private func handOverIfOpen() {
    if !isClosed { handOver() }
  }

  /// Finishes the transfers that libcurl reports as done. The last one may close the carrier.
  private func drain() {
    var remaining: Int32 = 0
    while !isClosed, let message = curl_multi_info_read(multi, &remaining) {
      let (easy, code) = (message.pointee.easy_handle, message.pointee.data.result)
      if let attempt = handshakes.first(where: { $0.easy == easy }) {
        attempt.ended(code)
        continue
      }
      guard let easy, let transfer = transfer(of: easy), let handle = transfer.handle else { continue }
      if transfer.repeats == 0, handle.mayStartAgain(code) {
        // The server now allows fewer. A refused stream was not processed (RFC 9113 section 8.7). Transfers then start
        // one at a time until a response arrives on a new connection.
        generation.startAgain(transfer)
        if !isSequential { room = 1 }
      } else {
        let result = handle.result(code, isFirst: generation.lastResponse == nil)
        if case .failure(let failure) = result, failure.isOfHandshake, transfer.repeats < order.addresses.count - 1,
          let peer = handle.peer, order.putLast(peer)
        {
          // The next address may shake hands.
          generation.startAgain(transfer)
          continue
        }
        if case .failure(let failure) = result, failure.kind == .refused, hasOthersAtServer(transfer) {
          // The host takes no more connections, and the transfer waits for one of those that it has.
          transfer.refusedConnection = failure
          (room, isFull) = (max(1, handedOver - 1), true)
          generation.takeBack([transfer])
          continue
        }
        if case .response(let response) = result { learn(from: handle, httpVersion: response.httpVersion) }
        generation.finish(transfer, result)
      }
    }
    // After the loop above, because a failed transfer has no connection either.
    if !isClosed, !offered.isEmpty { takeBackOffered() }
  }

  // MARK: - Connections that carry one transfer at a time

  /// Whether other transfers wait for their response, from a server that has said something a moment ago.
  private func hasOthersAtServer(_ transfer: Transfer) -> Bool {
    guard isSequential, settings.heardAt + Self.moment >= loop.now else { return false }
    return generation.active.contains { $0 !== transfer && wasSent($0) && hasConnection($0) }
  }

  /// The number of connections that wait for a transfer.
  var spareCount: Int { spares.count }

  /// Takes a connection that was opened ahead, which libcurl then owns.
  func takeSpare(to address: SocketAddress) -> Int32? { spares.take(to: address) }

  /// Opens connections before transfers need them.
  private func growAhead() {
    guard isSequential, let peer else { return }
    if !sweep.isSet, sockets.count + spares.count > 1 { armSweep() }
    guard handedOver > 1, !generation.isDraining else { return }
    let wanted = ConnectionGrowth.sequentialConnections(for: handedOver, most: settings.options.maxConnections)
    let missing = wanted - max(handedOver, sockets.count) - spares.count
    if missing > 0 { spares.open(missing, to: peer) }
  }

  private func armSweep() {
    sweep.set(after: settings.options.surplusTime, on: loop, for: self) {
      $0.closeSurplus()
      if $0.connectionCount > 1 { $0.armSweep() }
    }
  }

  /// Closes connections that nothing has needed for a while, all but one.
  private func closeSurplus() {
    guard isSequential else { return }
    let (now, time) = (loop.now, settings.options.surplusTime)
    spares.close(openFor: time)
    var left = connectionCount
    for socket in sockets.values where left > 1 && socket.wanted.isEmpty && !socket.isShutDown {
      guard let since = socket.idleSince, now - since >= time else { continue }
      socket.isShutDown = true
      socket.disarm()
      shutdown(socket.descriptor, Int32(SHUT_RDWR))
      left -= 1
    }
  }

  // MARK: - Corking

  /// Corks connections while several requests are written, so that they share segments and the server wakes up once:
  /// with 16 simultaneous transfers over loopback, 20 µs each instead of 34 µs. A single POST already takes two writes.
  ///
  /// - Returns: the corked connections.
  private func cork(_ batch: [Transfer]) -> [CurlSocket] {
    guard batch.count >= Self.corkedStart || batch.contains(where: { $0.request.method == .post }) else { return [] }
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

extension CurlCarrier {
  private func transfer(of easy: UnsafeMutableRawPointer) -> Transfer? {
    guard let context = ccurl_getinfo_pointer(easy, CURLINFO_PRIVATE) else { return nil }
    return Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  }

  fileprivate func socketDidChange(_ easy: UnsafeMutableRawPointer?, _ descriptor: Int32, _ what: Int32) {
    guard what != CURL_POLL_REMOVE else {
      sockets[descriptor]?.wanted = []
      sockets[descriptor]?.idleSince = loop.now
      return
    }
    let socket: CurlSocket
    if let known = sockets[descriptor] {
      socket = known
    } else {
      socket = CurlSocket(descriptor, of: self)
      sockets[descriptor] = socket
    }
    if let easy, let transfer = transfer(of: easy) { transfer.handle?.socket = socket }
    socket.wanted = what == CURL_POLL_IN ? .read : what == CURL_POLL_OUT ? .write : [.read, .write]
    socket.arm(on: loop)
  }

  fileprivate func socketWillClose(_ descriptor: Int32) { sockets.removeValue(forKey: descriptor)?.disarm() }

  fileprivate func timerDidChange(_ milliseconds: Int) {
    wish = milliseconds
    wishChanged = true
  }
}

private func carrierSocketDidChange(
  _ easy: UnsafeMutableRawPointer?, _ descriptor: Int32, _ what: Int32, _ context: UnsafeMutableRawPointer?,
  _: UnsafeMutableRawPointer?
) -> Int32 {
  Unmanaged<CurlCarrier>.fromOpaque(context!).takeUnretainedValue().socketDidChange(easy, descriptor, what)
  return 0
}

private func carrierTimerDidChange(
  _: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
  Unmanaged<CurlCarrier>.fromOpaque(context!).takeUnretainedValue().timerDidChange(milliseconds)
  return 0
}

/// libcurl's callback that closes a socket.
func carrierSocketWillClose(_ context: UnsafeMutableRawPointer?, _ descriptor: Int32) -> Int32 {
  Unmanaged<CurlCarrier>.fromOpaque(context!).takeUnretainedValue().socketWillClose(descriptor)
  return Glibc.close(descriptor)
}
