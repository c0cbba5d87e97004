// Connector.swift -- opens a TCP connection to the first of a server's addresses that takes one (RFC 8305).

import EventLoop
import Glibc

/// The delay between attempts at two addresses (RFC 8305 section 5).
let happyEyeballsDelay = Duration.milliseconds(250)
/// Seconds of silence after which TCP asks whether the peer is there, and between two such questions.
let (keepAliveIdle, keepAliveInterval) = (30 as Int32, 10 as Int32)

/// Octets that the server does not acknowledge for so long indicate a dead path: the kernel would retransmit for 15
/// minutes.
func setUserTimeout(_ time: Duration, _ descriptor: Int32) {
  var milliseconds = UInt32(clamping: time.nanoseconds / 1_000_000)
  setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<UInt32>.size))
}

/// Attempts to connect. Reports once, never while it is created. Loop thread only.
final class Connector {
  /// A socket that is connected, which the receiver owns, or why no address took a connection.
  typealias Report = (Result<(descriptor: Int32, address: SocketAddress), HTTPFailure>) -> Void

  private struct Attempt {
    var descriptor: Int32
    var address: SocketAddress
    var event: LoopEvent
  }

  /// Addresses that are tried: those that fail at once are all tried in one turn of the loop.
  private static let addressLimit = 16

  private let loop: EventLoop
  private let userTimeout: Duration
  private var left: ArraySlice<SocketAddress>
  private var attempts: [Attempt] = []
  private var lastError = ECONNREFUSED
  private let timer = OwnedTimer()
  private var report: Report?

  /// Starts at the first of the addresses, and at each other one when the one before has failed or 250 ms have passed.
  init(to addresses: [SocketAddress], userTimeout: Duration, on loop: EventLoop, report: @escaping Report) {
    self.loop = loop
    self.userTimeout = userTimeout
    left = addresses.prefix(Self.addressLimit)
    self.report = report
    timer.set(after: .zero, on: loop, for: self) { $0.startNext() }
  }

  deinit { cancel() }

  /// Closes all sockets and reports nothing.
  func cancel() {
    timer.cancel()
    report = nil
    let descriptors = attempts.map(\.descriptor)
    // Events go before their descriptors are closed.
    attempts = []
    for descriptor in descriptors { close(descriptor) }
  }

  private func startNext() {
    timer.cancel()
    while let address = left.popFirst() {
      guard let descriptor = start(address) else { continue }
      let event = LoopEvent(on: loop, descriptor: descriptor, .write, for: self) { $0.isReady(descriptor) }
      attempts.append(Attempt(descriptor: descriptor, address: address, event: event))
      if !left.isEmpty { timer.set(after: happyEyeballsDelay, on: loop, for: self) { $0.startNext() } }
      return
    }
    if attempts.isEmpty { end(.failure(HTTPFailure(connecting: lastError))) }
  }

  /// Returns a socket that connects; nil if that has failed already.
  private func start(_ address: SocketAddress) -> Int32? {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.family, kind, 0)
    guard descriptor >= 0 else {
      lastError = errno
      return nil
    }
    setUserTimeout(userTimeout, descriptor)
    for (level, option, value) in [
      (Int32(IPPROTO_TCP), TCP_NODELAY, 1), (SOL_SOCKET, SO_KEEPALIVE, 1),
      (Int32(IPPROTO_TCP), TCP_KEEPIDLE, keepAliveIdle), (Int32(IPPROTO_TCP), TCP_KEEPINTVL, keepAliveInterval),
    ] as [(Int32, Int32, Int32)] {
      var value = value
      setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
    let status = address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) }
    guard status == 0 || errno == EINPROGRESS else {
      lastError = errno
      close(descriptor)
      return nil
    }
    return descriptor
  }

  private func isReady(_ descriptor: Int32) {
    guard let index = attempts.firstIndex(where: { $0.descriptor == descriptor }) else { return }
    // The event goes before its descriptor is closed or gets another one.
    let address = attempts.remove(at: index).address
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
    if error == 0 {
      end(.success((descriptor, address)))
    } else {
      lastError = error
      close(descriptor)
      startNext()
    }
  }

  private func end(_ result: Result<(descriptor: Int32, address: SocketAddress), HTTPFailure>) {
    let report = report
    cancel()
    report?(result)
  }
}
