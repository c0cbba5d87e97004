// ServiceNotifier.swift -- tells the service manager how the program fares (sd_notify(3)), without libsystemd.

import Glibc

/// What a service manager is told.
public enum ServiceMessage: Sendable, Equatable {
  /// The program serves, or serves again after it has read its configuration anew.
  case ready
  /// It reads its configuration anew; `ready` follows, also where that has failed.
  case reloading
  /// It is about to end.
  case stopping
  /// It is alive.
  case watchdog
  /// How it fares, in one line for a person.
  case status(String)

  /// Whether the message is worth waiting for a service manager that is busy: otherwise the next one says the same.
  fileprivate var isWorthWaiting: Bool {
    switch self {
    case .ready, .reloading, .stopping: true
    case .watchdog, .status: false
    }
  }

  /// The assignments that stand for it, a line each.
  func text(monotonicMicroseconds: Int64) -> String {
    switch self {
    case .ready: "READY=1\n"
    case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds)\n"
    case .stopping: "STOPPING=1\n"
    case .watchdog: "WATCHDOG=1\n"
    case .status(let line): "STATUS=\(ServiceMessage.oneLine(line))\n"
    }
  }

  /// A line break would begin another assignment.
  private static func oneLine(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
  }
}

/// A service manager's socket for such messages. Any thread.
public final class ServiceNotifier: Sendable {
  private let descriptor: Int32
  private let address: sockaddr_un
  private let addressLength: socklen_t

  /// Seconds that a message waits at most for room in the service manager's socket.
  private static let patience = 1

  /// A socket by its name in `NOTIFY_SOCKET`: a path, or a name in the abstract name space behind `@`. Nobody needs to be
  /// there yet; each message looks for the receiver anew, since a service manager may be replaced.
  ///
  /// - Returns: nil where the name can be no such socket's, or there is no descriptor.
  public init?(_ name: String) {
    var octets = Array(name.utf8)
    guard octets.first == UInt8(ascii: "/") || octets.first == UInt8(ascii: "@") else { return nil }
    let isAbstract = octets[0] == UInt8(ascii: "@")
    if isAbstract { octets[0] = 0 }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // A path ends with an octet that is 0, an abstract name with its length.
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

  /// Sends messages together.
  ///
  /// - Returns: whether they were taken.
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
