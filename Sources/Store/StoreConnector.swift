// StoreConnector.swift -- connects to the first of the store's addresses that accepts (RFC 8305).

import EventLoop
import Glibc

/// Connection attempts to several addresses. Reports once, never during `init`. Loop thread only.
final class StoreConnector {
  /// A connected socket, which the receiver owns, and its address; or why all addresses failed.
  typealias Report = (Result<(descriptor: Int32, address: SocketAddress), StoreFault>) -> Void

  /// TCP keepalive: seconds before the first probe, and between probes.
  private static let (keepAliveIdle, keepAliveInterval) = (30 as Int32, 10 as Int32)
  /// Milliseconds for which data may stay unacknowledged (TCP_USER_TIMEOUT); by default the kernel retransmits for 15
  /// minutes.
  private static let userTimeout: Int32 = 30_000
  /// The longest delay between attempts at two addresses (RFC 8305 section 5).
  private static let longestDelay = Duration.milliseconds(250)
  /// The most addresses that are tried.
  private static let addressLimit = 8

  private struct Attempt {
    var descriptor: Int32
    var address: SocketAddress
    var event: LoopEvent
  }

  private let loop: EventLoop
  private let delay: Duration
  private var left: ArraySlice<SocketAddress>
  private var attempts: [Attempt] = []
  private var lastError = EADDRNOTAVAIL
  private let timer = OwnedTimer()
  private var report: Report?

  /// Tries the addresses in order. The next one starts when the one before has failed, or after a delay.
  ///
  /// - Parameter time: the caller's timeout; the delay is short enough that each address is tried within it.
  init(to addresses: [SocketAddress], within time: Duration, on loop: EventLoop, report: @escaping Report) {
    self.loop = loop
    self.report = report
    left = addresses.prefix(StoreConnector.addressLimit)
    delay = min(StoreConnector.longestDelay, time / (left.count + 1))
    timer.set(after: .zero, on: loop, for: self) { $0.startNext() }
  }

  deinit { cancel() }

  /// Closes all sockets; nothing is reported.
  func cancel() {
    timer.cancel()
    report = nil
    let descriptors = attempts.map(\.descriptor)
    // Release the events before their descriptors are closed.
    attempts = []
    for descriptor in descriptors { close(descriptor) }
  }

  private func startNext() {
    timer.cancel()
    while let address = left.popFirst() {
      guard let descriptor = start(address) else { continue }
      let event = LoopEvent(on: loop, descriptor: descriptor, .write, for: self) { $0.finish(descriptor) }
      attempts.append(Attempt(descriptor: descriptor, address: address, event: event))
      if !left.isEmpty { timer.set(after: delay, on: loop, for: self) { $0.startNext() } }
      return
    }
    if attempts.isEmpty { end(.failure(.unreachable(lastError))) }
  }

  /// Returns a socket that is connecting; nil if that failed immediately.
  private func start(_ address: SocketAddress) -> Int32? {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.family, kind, 0)
    guard descriptor >= 0 else {
      lastError = errno
      return nil
    }
    if address.family != AF_UNIX { StoreConnector.tune(descriptor) }
    let status = address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) }
    guard status == 0 || errno == EINPROGRESS else {
      lastError = errno
      close(descriptor)
      return nil
    }
    return descriptor
  }

  private static func tune(_ descriptor: Int32) {
    for (level, option, value) in [
      (Int32(IPPROTO_TCP), TCP_NODELAY, 1), (SOL_SOCKET, SO_KEEPALIVE, 1),
      (Int32(IPPROTO_TCP), TCP_KEEPIDLE, keepAliveIdle), (Int32(IPPROTO_TCP), TCP_KEEPINTVL, keepAliveInterval),
      (Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, userTimeout),
    ] as [(Int32, Int32, Int32)] {
      var value = value
      setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
  }

  private func finish(_ descriptor: Int32) {
    guard let index = attempts.firstIndex(where: { $0.descriptor == descriptor }) else { return }
    // Release the event before its descriptor is closed or gets another event.
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

  private func end(_ result: Result<(descriptor: Int32, address: SocketAddress), StoreFault>) {
    let report = report
    cancel()
    report?(result)
  }
}

extension SocketAddress {
  /// The address of a Unix socket; nil if the path is empty or too long.
  init?(unixPath path: String) {
    var form = sockaddr_un()
    form.sun_family = sa_family_t(AF_UNIX)
    let octets = Array(path.utf8)
    // One octet is for the terminating NUL.
    guard !octets.isEmpty, octets.count < MemoryLayout.size(ofValue: form.sun_path) else { return nil }
    withUnsafeMutableBytes(of: &form.sun_path) { $0.copyBytes(from: octets) }
    guard let address = withUnsafeBytes(of: form, { SocketAddress(copying: $0) }) else { return nil }
    self = address
  }
}
