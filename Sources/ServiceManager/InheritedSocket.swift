// InheritedSocket.swift -- a socket that the service manager has bound, and whether it is one that can be served.

import EventLoop
import Glibc

/// Why a descriptor that was handed over cannot be served.
public struct InheritedSocketError: Error, Sendable, CustomStringConvertible {
  /// The descriptor.
  public let descriptor: Int32
  /// Its name; empty where it has none.
  public let name: String
  /// What it is instead, as in "is no socket".
  public let reason: String

  /// What was found and what is allowed, in one line.
  public var description: String {
    let label = name.isEmpty ? "" : " (\(name))"
    return "descriptor \(descriptor)\(label) of the service manager \(reason);"
      + " UDP sockets and listening TCP sockets, bound to an IPv4 or IPv6 address, can be served"
  }
}

/// A bound socket from the service manager. Whoever takes it over closes it.
public struct InheritedSocket: Sendable {
  /// What queries come in.
  public enum Kind: Sendable, Equatable {
    /// UDP.
    case datagram
    /// TCP, listening.
    case stream
  }

  /// The descriptor; it is closed in programs that this one starts.
  public let descriptor: Int32
  /// What queries come in.
  public let kind: Kind
  /// Where it is bound.
  public let address: SocketAddress

  private static let multipathTCP: Int32 = 262

  /// Looks at a descriptor.
  ///
  /// - Throws: `InheritedSocketError` where it is anything but a socket that DNS can be served on.
  public init(_ handed: ServiceEnvironment.HandedDescriptor) throws(InheritedSocketError) {
    let descriptor = handed.number
    func refusal(_ reason: String) -> InheritedSocketError {
      InheritedSocketError(descriptor: descriptor, name: handed.name, reason: reason)
    }
    guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw refusal("is not open") }
    guard let type = InheritedSocket.option(SO_TYPE, of: descriptor) else { throw refusal("is no socket") }
    guard let address = SocketAddress(boundTo: descriptor),
      address.family == AF_INET || address.family == AF_INET6
    else {
      throw refusal("is a socket of another address family")
    }
    let transport = InheritedSocket.option(SO_PROTOCOL, of: descriptor)
    switch (UInt32(type), transport) {
    case (SOCK_DGRAM.rawValue, Int32(IPPROTO_UDP)):
      guard SocketAddress(peerOf: descriptor) == nil else { throw refusal("is a connected UDP socket") }
      kind = .datagram
    case (SOCK_STREAM.rawValue, Int32(IPPROTO_TCP)), (SOCK_STREAM.rawValue, InheritedSocket.multipathTCP):
      guard InheritedSocket.option(SO_ACCEPTCONN, of: descriptor) == 1 else {
        throw refusal("is a TCP socket that does not listen")
      }
      kind = .stream
    default: throw refusal("is a socket of another type (\(type), protocol \(transport ?? 0))")
    }
    guard address.port != 0 else { throw refusal("is not bound to a port") }
    self.descriptor = descriptor
    self.address = address
  }

  /// What is odd about a set of sockets, a line each: an address with only one of the two transports, over which some
  /// queries cannot be asked (RFC 7766 section 5).
  public static func warnings(_ sockets: [InheritedSocket]) -> [String] {
    sockets.compactMap { socket in
      guard !sockets.contains(where: { $0.kind != socket.kind && $0.address == socket.address }) else { return nil }
      let (there, missing) = socket.kind == .datagram ? ("UDP", "TCP") : ("TCP", "UDP")
      return "the service manager has handed over \(there) at \(socket.address), and no \(missing)"
    }
  }

  private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
  }
}
