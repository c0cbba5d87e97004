// ServiceNotifier.swift -- reports state changes to the service manager (sd_notify(3)), without libsystemd.

import Glibc

/// A message to the service manager.
public enum ServiceMessage: Sendable, Equatable {
  /// The daemon is serving; also sent after a reload.
  case ready
  /// The daemon is reloading its configuration; `ready` follows, also if the reload failed.
  case reloading
  /// The daemon is shutting down.
  case stopping
  /// The watchdog's keep-alive.
  case watchdog
  /// A human-readable status line.
  case status(String)

  /// Whether to block while the service manager is busy. The other messages are repeated anyway.
  fileprivate var isWorthWaiting: Bool {
    switch self {
    case .ready, .reloading, .stopping: true
    case .watchdog, .status: false
    }
  }

  /// The assignments of sd_notify(3), one per line.
  func text(monotonicMicroseconds: Int64) -> String {
    switch self {
    case .ready: "READY=1\n"
    case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds)\n"
    case .stopping: "STOPPING=1\n"
    case .watchdog: "WATCHDOG=1\n"
    case .status(let line): "STATUS=\(ServiceMessage.oneLine(line))\n"
    }
  }

  /// Replaces control characters: a line break would begin another assignment.
  private static func oneLine(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
  }
}

/// The service manager's notify socket. Any thread.
public final class ServiceNotifier: Sendable {
  private let descriptor: Int32
  private let address: sockaddr_un
  private let addressLength: socklen_t

  /// The longest time, in seconds, that a message waits for room in the service manager's socket.
  private static let patience = 1

  /// A socket by its name in `NOTIFY_SOCKET`: a path, or `@` and an abstract name. The receiver need not exist yet: each
  /// message looks it up again, because a service manager may be replaced.
  ///
  /// - Returns: nil if the name is invalid or no descriptor is available.
  public init?(_ name: String) {
    var octets = Array(name.utf8)
    guard octets.first == UInt8(ascii: "/") || octets.first == UInt8(ascii: "@") else { return nil }
    let isAbstract = octets[0] == UInt8(ascii: "@")
    if isAbstract { octets[0] = 0 }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // A path is terminated by a NUL, an abstract name by its length.
    let room = MemoryLayout.size(ofValue: address.sun_path) - (isAbstract ? 0 : 1)
    guard octets.count > 1, octets.count <= room else { return nil }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: octets) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    var patience = timeval(tv_sec: ServiceNotifier.patience, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    self.descriptor = descriptor
    self.address = address
    addressLength = socklen_t(MemoryLayout<sa_family_t>.size + octets.count + (isAbstract ? 0 : 1))
  }

  deinit { close(descriptor) }

  /// Sends messages in one datagram. May block for a second if one of them changes the state.
  ///
  /// - Returns: whether they were sent.
  @discardableResult
  public func send(_ messages: ServiceMessage...) -> Bool {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let microseconds = Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    let text = messages.map { $0.text(monotonicMicroseconds: microseconds) }.joined()
    return send(Array(text.utf8), waiting: messages.contains { $0.isWorthWaiting })
  }

  private func send(_ octets: [UInt8], waiting: Bool) -> Bool {
    let flags = Int32(MSG_NOSIGNAL) | (waiting ? 0 : Int32(MSG_DONTWAIT))
    return withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        while true {
          let address = __CONST_SOCKADDR_ARG(__sockaddr__: pointer)
          let sent = sendto(descriptor, octets, octets.count, flags, address, addressLength)
          guard sent < 0, errno == EINTR else { return sent == octets.count }
        }
      }
    }
  }
}
