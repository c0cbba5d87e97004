// InheritedSocket.swift -- checks a socket that the service manager has bound and passed to the daemon.

import EventLoop
import Glibc

/// The reason why a passed descriptor cannot be served.
public struct InheritedSocketError: Error, Sendable, CustomStringConvertible {
  public let descriptor: Int32
  /// The name from `FileDescriptorName=`; may be empty.
  public let name: String
  /// What is wrong with it, as a predicate such as "is not a socket".
  public let reason: String

  /// What was found and what is expected, in one line.
  public var description: String {
    let label = name.isEmpty ? "" : " (\(name))"
    return "descriptor \(descriptor)\(label) from the service manager \(reason);"
      + " expected a UDP socket or a listening TCP socket, bound to an IPv4 or IPv6 address"
  }
}

/// A bound socket from the service manager. Its owner closes it.
public struct InheritedSocket: Sendable {
  /// The transport.
  public enum Kind: Sendable, Equatable {
    /// UDP.
    case datagram
    /// TCP, listening.
    case stream
  }

  /// The descriptor, with FD_CLOEXEC set.
  public let descriptor: Int32
  /// The transport.
  public let kind: Kind
  /// The address that the socket is bound to.
  public let address: SocketAddress

  private static let multipathTCP: Int32 = 262

  /// Checks a descriptor and sets FD_CLOEXEC.
  ///
  /// - Throws: `InheritedSocketError` if DNS cannot be served on it.
  public init(_ handed: ServiceEnvironment.HandedDescriptor) throws(InheritedSocketError) {
    let descriptor = handed.number
    func refusal(_ reason: String) -> InheritedSocketError {
      InheritedSocketError(descriptor: descriptor, name: handed.name, reason: reason)
    }
    guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw refusal("is not open") }
    guard let type = InheritedSocket.option(SO_TYPE, of: descriptor) else { throw refusal("is not a socket") }
    guard let address = SocketAddress(boundTo: descriptor), address.family == AF_INET || address.family == AF_INET6
    else { throw refusal("is a socket of another address family") }
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

  /// One line for each address with only one of the two transports: DNS needs both (RFC 7766 section 5).
  public static func warnings(_ sockets: [InheritedSocket]) -> [String] {
    sockets.compactMap { socket in
      guard !sockets.contains(where: { $0.kind != socket.kind && $0.address == socket.address }) else { return nil }
      let (there, missing) = socket.kind == .datagram ? ("UDP", "TCP") : ("TCP", "UDP")
      return "the service manager passed a \(there) socket at \(socket.address) but no \(missing) socket"
    }
  }

  private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
  }
}
