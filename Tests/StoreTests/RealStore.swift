// RealStore.swift -- a real server on a Unix socket.

import EventLoop
import Glibc
import Store
import TestSupport
import Testing

/// A store that runs as long as the object lives.
final class RealStore: Sendable {
  let folder: TemporaryFolder
  private let port: ReservedPort?
  private let pid: pid_t

  /// Starts a store, or starts one again in the folder of one that has ended, and waits until it takes connections.
  ///
  /// - Parameters:
  ///   - lines: of its configuration.
  ///   - port: what they name.
  init(
    _ server: StoreServer, _ lines: [String] = [], in folder: TemporaryFolder = TemporaryFolder(),
    port: ReservedPort? = nil
  ) throws {
    self.folder = folder
    self.port = port
    folder.remove("socket")
    let usual = [
      "port 0", "unixsocket \(folder.path)/socket", "save \"\"", "appendonly no", "dir \(folder.path)",
      "logfile \(folder.path)/log", "daemonize no",
    ]
    let file = folder.write((usual + lines).map { "\($0)\n" }.joined(), to: "store.conf")
    // It ends with the thread that starts it, at the latest with this process.
    pid = try start(["setpriv", "--pdeathsig", "KILL", "--", server.program(in: folder.path), file])
    let path = folder.path(of: "socket")
    try #require(comes { RealStore.takes(path) }, "\(String(decoding: folder.read("log") ?? [], as: UTF8.self))")
  }

  deinit {
    kill(pid, SIGKILL)
    while waitpid(pid, nil, 0) < 0, errno == EINTR {}
  }

  var settings: StoreSettings {
    var settings = StoreSettings(at: .socket(path: folder.path(of: "socket")))
    settings.fleet.timeout = .seconds(5)
    settings.fleet.connectTimeout = .seconds(10)
    return settings
  }

  func signal(_ number: Int32) { kill(pid, number) }

  /// Whether a server listens at a path.
  private static func takes(_ path: String) -> Bool {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var form = sockaddr_un()
    form.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &form.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    guard let address = withUnsafeBytes(of: form, { SocketAddress(copying: $0) }) else { return false }
    return address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) } == 0
  }
}

/// A port of loopback for one server, as long as the object lives.
///
/// The socket is bound and does not listen: a server may bind as well, with SO_REUSEADDR, but the kernel does not
/// choose the port for any other socket.
final class ReservedPort: Sendable {
  let number: UInt16
  private let descriptor: Int32

  init() {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    let address = SocketAddress(octets: [127, 0, 0, 1], port: 0)!
    _ = address.withSockaddr { bind(descriptor, .init(__sockaddr__: $0), $1) }
    number = SocketAddress(boundTo: descriptor)?.port ?? 0
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }
}
