// HTTPServerError.swift -- the reasons why a server cannot listen.

import Glibc

/// The reason why an HTTP server cannot listen.
public enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  /// A system call for a listening socket failed: the call, the address and errno.
  case cannotListen(call: String, address: String, errno: Int32)
  /// The path of a Unix socket is empty, contains a NUL or exceeds the kernel's limit of 107 octets.
  case unusablePath(String)
  /// Another process listens on this Unix socket.
  case pathInUse(String)
  /// The path of a Unix socket is occupied by a file of another type, which is not removed: the path and the type.
  case pathOccupied(String, by: String)

  /// One human-readable line.
  public var description: String {
    switch self {
    case .cannotListen(let call, let address, let number):
      "cannot listen on \(address): \(call): \(String(cString: strerror(number)))"
    case .unusablePath(let path): "\"\(path)\" cannot be the path of a socket: 1 to 107 octets are allowed"
    case .pathInUse(let path): "another process listens on \(path)"
    case .pathOccupied(let path, let what): "there is \(what) at \(path), which is not removed"
    }
  }
}
