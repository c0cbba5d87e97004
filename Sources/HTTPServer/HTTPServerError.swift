// HTTPServerError.swift -- why a server could not be made or could not listen.

import Glibc

/// Why an HTTP server could not be made, or could not listen.
public enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  /// libevent had no memory for a server.
  case noServer
  /// A system call failed on the way to a listening socket: which one, for which address, and errno.
  case cannotListen(call: String, address: String, errno: Int32)
  /// The path of a Unix socket is empty or longer than the kernel takes (107 octets).
  case unusablePath(String)
  /// Another process answers on this Unix socket.
  case pathInUse(String)
  /// Something that is no socket has the path of a Unix socket: what it is. It stays there.
  case pathOccupied(String, by: String)
  /// The certificate chain or the private key is no PEM text of the kind, or they do not belong together.
  case unusableCertificate(String)

  /// One line for a person.
  public var description: String {
    switch self {
    case .noServer: "libevent could not make an HTTP server"
    case .cannotListen(let call, let address, let number):
      "cannot listen on \(address): \(call): \(String(cString: strerror(number)))"
    case .unusablePath(let path): "\"\(path)\" cannot be the path of a socket: 1 to 107 octets are allowed"
    case .pathInUse(let path): "another process listens on \(path)"
    case .pathOccupied(let path, let what): "there is \(what) at \(path), which is not removed"
    case .unusableCertificate(let reason): "the server's certificate cannot be used: \(reason)"
    }
  }
}
