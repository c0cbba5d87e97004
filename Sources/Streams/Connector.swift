// Connector.swift -- opens a connection to the first of a server's addresses that takes one (RFC 8305).

import EventLoop
import Glibc

/// Octets that the peer does not acknowledge within this time indicate a dead path: the kernel would retransmit for 15
/// minutes.
public func setUserTimeout(_ time: Duration, _ descriptor: Int32) {
  var milliseconds = UInt32(clamping: time.nanoseconds / 1_000_000)
  setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<UInt32>.size))
}

/// Why no address took a connection.
public struct ConnectFailure: Error, Equatable {
  /// The `errno` of the last attempt.
  public var systemError: Int32
}

/// Attempts to connect. Reports once, never while it is created. Loop thread only.
public final class Connector {
  /// A socket that is connected, which the receiver owns, and the address that took the connection.
  public typealias Connected = (descriptor: Int32, address: SocketAddress)
  public typealias Report = (Result<Connected, ConnectFailure>) -> Void

  private struct Attempt {
    var descriptor: Int32
    var address: SocketAddress
    var event: LoopEvent
  }

  /// Addresses that are tried: those that fail at once are all tried in one turn of the loop.
  private static let addressLimit = 16
  /// The longest time between attempts at two addresses (RFC 8305 section 5).
  public static let longestDelay = Duration.milliseconds(250)
  /// Seconds of silence after which TCP asks whether the peer is there, and between two such questions.
  public static let (keepAliveIdle, keepAliveInterval) = (30 as Int32, 10 as Int32)

  private let loop: EventLoop
  private let userTimeout: Duration
  private let delay: Duration
  private var left: ArraySlice<SocketAddress>
  private var attempts: [Attempt] = []
  private var lastError = EADDRNOTAVAIL
  private let timer = OwnedTimer()
  private var report: Report?

  /// Starts at the first of the addresses, and at each other one when the one before has failed or a delay has passed.
  ///
  /// - Parameters:
  ///   - time: what the caller waits at most; the delay is so short that each address is tried within it. Nil for the delay
  ///     of RFC 8305, 250 ms.
  ///   - userTimeout: see `setUserTimeout`.
  public init(
    to addresses: [SocketAddress], within time: Duration? = nil, userTimeout: Duration, on loop: EventLoop,
    report: @escaping Report
  ) {
    self.loop = loop
    self.userTimeout = userTimeout
    let left = addresses.prefix(Self.addressLimit)
    self.left = left
    delay = min(Self.longestDelay, time.map { $0 / (left.count + 1) } ?? Self.longestDelay)
    self.report = report
    timer.set(after: .zero, on: loop, for: self) { $0.startNext() }
  }

  deinit { cancel() }

  /// Closes all sockets and reports nothing.
  public func cancel() {
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
      if !left.isEmpty { timer.set(after: delay, on: loop, for: self) { $0.startNext() } }
      return
    }
    if attempts.isEmpty { end(.failure(ConnectFailure(systemError: lastError))) }
  }

  /// Returns a socket that connects; nil if that has failed already.
  private func start(_ address: SocketAddress) -> Int32? {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.family, kind, 0)
    guard descriptor >= 0 else {
      lastError = errno
      return nil
    }
    if address.family != AF_UNIX { tune(descriptor) }
    let status = address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) }
    guard status == 0 || errno == EINPROGRESS else {
      lastError = errno
      close(descriptor)
      return nil
    }
    return descriptor
  }

  private func tune(_ descriptor: Int32) {
    setUserTimeout(userTimeout, descriptor)
    for (level, option, value) in [
      (Int32(IPPROTO_TCP), TCP_NODELAY, 1), (SOL_SOCKET, SO_KEEPALIVE, 1),
      (Int32(IPPROTO_TCP), TCP_KEEPIDLE, Self.keepAliveIdle),
      (Int32(IPPROTO_TCP), TCP_KEEPINTVL, Self.keepAliveInterval),
    ] as [(Int32, Int32, Int32)] {
      var value = value
      setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
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

  private func end(_ result: Result<Connected, ConnectFailure>) {
    let report = report
    cancel()
    report?(result)
  }
}
