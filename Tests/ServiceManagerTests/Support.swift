// Support.swift -- the service manager's end of a notify socket, and sockets to pass.

import EventLoop
import Glibc
import ServiceManager
import Testing

/// A receiving notify socket with a unique name.
final class ManagerSocket {
  /// The name in the form of `NOTIFY_SOCKET`.
  let name: String
  private let descriptor: Int32
  private let path: String?

  init(isAbstract: Bool) throws {
    let unique = "httpdnsd-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
    name = isAbstract ? "@\(unique)" : "/tmp/\(unique)"
    path = isAbstract ? nil : name
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let octets = isAbstract ? [0] + Array(unique.utf8) : Array(name.utf8) + [0]
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: octets) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + octets.count)
    let outcome = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), length)
      }
    }
    try #require(outcome == 0)
  }

  deinit {
    close(descriptor)
    if let path { unlink(path) }
  }

  /// The next pending message; nil if no message is pending.
  func receive() -> String? {
    var octets = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &octets, octets.count, Int32(MSG_DONTWAIT))
    return count < 0 ? nil : String(decoding: octets[..<count], as: UTF8.self)
  }
}

/// A descriptor that is closed on deinit.
final class Descriptor {
  /// An address that cannot be bound, perhaps because another test has it.
  struct Taken: Error { let address: String }

  let number: Int32

  init(_ number: Int32) throws {
    try #require(number >= 0, "\(String(cString: strerror(errno)))")
    self.number = number
  }

  deinit { close(number) }

  /// Creates a socket of that type, bound if an address is given.
  convenience init(
    _ type: __socket_type, family: Int32 = AF_INET, transport: Int32 = 0, at text: String? = nil
  ) throws {
    try self.init(socket(family, Int32(type.rawValue), transport))
    guard let text else { return }
    let address = try #require(SocketAddress(text: text))
    guard address.withSockaddr({ Glibc.bind(number, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0 else {
      throw Taken(address: text)
    }
  }

  /// The socket as one passed by the service manager.
  func inherited(_ name: String = "") throws -> InheritedSocket {
    let variables = ["LISTEN_PID": "7", "LISTEN_FDS": "1", "LISTEN_FDNAMES": name]
    var handed = try #require(ServiceEnvironment(process: 7) { variables[$0] }.descriptors.first)
    handed.number = number
    return try InheritedSocket(handed)
  }
}

/// A waiting thread that completes a turn when it is nudged, unless it is stuck.
final class ScriptedThread: WatchedThread {
  let name: String
  var turns: UInt64 = 0
  var nudges = 0
  /// The number of nudges that are lost before one works; nil for a stuck thread.
  var lostNudges: Int? = 0

  init(_ name: String) { self.name = name }

  func nudge() {
    nudges += 1
    guard let lost = lostNudges else { return }
    if lost == 0 { turns += 1 } else { lostNudges = lost - 1 }
  }
}
