// ListeningSocket.swift -- creates listening sockets from binary addresses and paths; never resolves a name.

import EventLoop
import Glibc

/// A listening socket. `deinit` closes it unless `release` was called.
struct ListeningSocket: ~Copyable {
  let descriptor: Int32
  private static let backlog: Int32 = 1024

  private init(family: Int32, for address: String) throws(HTTPServerError) {
    descriptor = try ListeningSocket.open(family, for: address)
  }

  /// Creates a socket that listens on a TCP address.
  static func make(on address: SocketAddress) throws(HTTPServerError) -> ListeningSocket {
    let socket = try ListeningSocket(family: address.family, for: address.description)
    socket.enable(SO_REUSEADDR, of: SOL_SOCKET)
    if address.family == AF_INET6 { socket.enable(IPV6_V6ONLY, of: Int32(IPPROTO_IPV6)) }
    // Accepted sockets inherit the option: the second write of a reply must not wait for the first to be acknowledged.
    socket.enable(TCP_NODELAY, of: Int32(IPPROTO_TCP))
    guard address.withSockaddr({ bind(socket.descriptor, .init(__sockaddr__: $0), $1) }) == 0 else {
      throw .cannotListen(call: "bind", address: address.description, errno: errno)
    }
    try socket.listen(for: address.description)
    return socket
  }

  /// Creates a socket that listens on a path with the permission bits `mode`.
  static func make(onPath path: String, mode: mode_t) throws(HTTPServerError) -> ListeningSocket {
    guard let address = SocketAddress(unixPath: path) else { throw .unusablePath(path) }
    let socket = try ListeningSocket(family: AF_UNIX, for: path)
    try removeLeftover(path, address)
    // The kernel creates the path with the descriptor's mode minus the umask, so no other user can connect before
    // chmod.
    fchmod(socket.descriptor, mode)
    guard address.withSockaddr({ bind(socket.descriptor, .init(__sockaddr__: $0), $1) }) == 0 else {
      throw .cannotListen(call: "bind", address: path, errno: errno)
    }
    chmod(path, mode)
    try socket.listen(for: path)
    return socket
  }

  deinit { close(descriptor) }

  /// Transfers ownership of the descriptor to the caller.
  consuming func release() { discard self }

  /// The bound address, with the port that the kernel chose.
  var boundAddress: SocketAddress? { SocketAddress(boundTo: descriptor) }

  private func enable(_ option: Int32, of level: Int32) {
    var yes: Int32 = 1
    setsockopt(descriptor, level, option, &yes, socklen_t(MemoryLayout<Int32>.size))
  }

  private func listen(for address: String) throws(HTTPServerError) {
    guard Glibc.listen(descriptor, ListeningSocket.backlog) == 0 else {
      throw .cannotListen(call: "listen", address: address, errno: errno)
    }
  }

  private static func open(_ family: Int32, for address: String) throws(HTTPServerError) -> Int32 {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(family, type, 0)
    guard descriptor >= 0 else { throw .cannotListen(call: "socket", address: address, errno: errno) }
    return descriptor
  }

  /// Removes the socket of a dead process; throws if a process listens on it or if the file is not a socket.
  private static func removeLeftover(_ path: String, _ address: SocketAddress) throws(HTTPServerError) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else { throw .pathOccupied(path, by: kind(status.st_mode)) }
    let probe = try open(AF_UNIX, for: path)
    defer { close(probe) }
    guard address.withSockaddr({ connect(probe, .init(__sockaddr__: $0), $1) }) != 0, errno == ECONNREFUSED else {
      throw .pathInUse(path)
    }
    unlink(path)
  }

  /// A human-readable name for the type of a file.
  private static func kind(_ mode: mode_t) -> String {
    switch mode & S_IFMT {
    case S_IFREG: "a plain file"
    case S_IFDIR: "a folder"
    case S_IFLNK: "a symbolic link"
    default: "something that is no socket"
    }
  }
}
