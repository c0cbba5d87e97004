// UDPListener.swift -- receives queries in batches and sends responses.
//
// It calls nobody: a listener's thread calls `receive`, answers each query, calls `send`.

import CEvent
import CSocket
import EventLoop
import Glibc

/// Why an address could not be listened on.
public struct ListenError: Error, Sendable {
  /// The address.
  public let address: SocketAddress
  /// `udp` or `tcp`.
  public let transport: String
  /// The system's error number.
  public let code: Int32

  /// That error for that address.
  public init(address: SocketAddress, transport: String, code: Int32) {
    self.address = address
    self.transport = transport
    self.code = code
  }

  /// What failed, for a person: `udp 127.0.0.1:53: Address already in use`.
  public var reason: String { "\(transport) \(address): \(String(cString: strerror(code)))" }
}

/// A bound UDP socket. Any thread may send through it.
public final class UDPSocket: Sendable {
  /// The descriptor; closed with the object.
  public let descriptor: Int32
  /// The address that was bound, with the port that the kernel chose where it was 0.
  public let address: SocketAddress

  /// Binds `address`.
  ///
  /// - Throws: `ListenError` with the system's reason.
  public init(binding address: SocketAddress) throws(ListenError) {
    let isWildcard = address.octets.allSatisfy { $0 == 0 }
    let descriptor = address.withSockaddr { datagram_socket($0, $1, isWildcard ? 1 : 0) }
    guard descriptor >= 0 else { throw ListenError(address: address, transport: "udp", code: errno) }
    self.descriptor = descriptor
    self.address = SocketAddress(boundTo: descriptor) ?? address
  }

  /// Takes over a socket that another program has bound, and closes it with the object.
  ///
  /// - Throws: `ListenError` with the system's reason; the descriptor is then closed.
  public init(adopting descriptor: Int32, boundTo address: SocketAddress) throws(ListenError) {
    let isWildcard = address.octets.allSatisfy { $0 == 0 }
    guard datagram_socket_adopt(descriptor, address.family, isWildcard ? 1 : 0) == 0 else {
      let code = errno
      close(descriptor)
      throw ListenError(address: address, transport: "udp", code: code)
    }
    self.descriptor = descriptor
    self.address = address
  }

  deinit { close(descriptor) }

  /// Octets that wait to be received, and datagrams so far (modulo 2³²) that the kernel dropped for want of room; nil where
  /// it does not tell.
  public var backlog: (octets: Int, dropped: Int)? {
    var (octets, dropped) = (UInt32(0), UInt32(0))
    guard datagram_queue(descriptor, &octets, &dropped) == 0 else { return nil }
    return (Int(octets), Int(dropped))
  }
}

/// One thread's batch of buffers for a socket that threads may share.
public final class UDPListener {
  /// The socket.
  public let socket: UDPSocket
  /// The socket's descriptor; replies that come later are sent through it from any thread.
  public let descriptor: Int32
  private let batch: OpaquePointer

  /// Datagrams of one system call.
  public static let batchSize = 64
  /// Octets kept of a query: any datagram fits. Pages that no query reaches are never touched, and the odd size keeps the
  /// beginnings of a batch's queries out of the same sets of the processor's cache.
  public static let querySize = 65_536 + 192

  /// Buffers for `socket`.
  ///
  /// - Parameter responseSize: octets that a response may take.
  /// - Throws: `ListenError` where there is no memory.
  public init(on socket: UDPSocket, responseSize: Int) throws(ListenError) {
    guard let batch = datagram_batch_create(UInt32(UDPListener.batchSize), UDPListener.querySize, responseSize) else {
      throw ListenError(address: socket.address, transport: "udp", code: ENOMEM)
    }
    self.socket = socket
    self.batch = batch
    descriptor = socket.descriptor
  }

  deinit { datagram_batch_free(batch) }

  /// Receives what is there, at most `batchSize` queries; 0 where there is nothing.
  ///
  /// - Parameter waiting: whether to wait for the first one; a signal ends the wait.
  @_noAllocation
  public func receive(waiting: Bool = false) -> Int {
    let count = datagram_batch_receive(batch, descriptor, waiting ? 1 : 0)
    return count < 0 ? 0 : Int(count)
  }

  /// The octets of received query `index`; valid until the next `receive`.
  @_noAllocation
  public func query(_ index: Int) -> UnsafeBufferPointer<UInt8> {
    var length = 0
    let start = datagram_batch_query(batch, UInt32(truncatingIfNeeded: index), &length)
    return UnsafeBufferPointer(start: start, count: length)
  }

  /// The sender of query `index`; valid until the next `receive`.
  @_noAllocation
  public func sender(_ index: Int) -> UnsafePointer<sockaddr_storage> {
    datagram_batch_address(batch, UInt32(truncatingIfNeeded: index))
  }

  /// Copies what a reply that comes later needs to reach the sender of query `index`.
  @_noAllocation
  public func copyPeer(_ index: Int, to peer: UnsafeMutablePointer<datagram_peer>) {
    datagram_batch_peer(batch, UInt32(truncatingIfNeeded: index), peer)
  }

  /// Room for the next response.
  @_noAllocation
  public func response() -> UnsafeMutablePointer<UInt8> { datagram_batch_response(batch) }

  /// Queues the response that was written to `response()` for the sender of query `index`.
  @_noAllocation
  public func reply(to index: Int, length: Int) {
    datagram_batch_reply(batch, UInt32(truncatingIfNeeded: index), length)
  }

  /// Sends what is queued; returns how many datagrams the kernel refused.
  @_noAllocation
  public func send() -> Int { Int(datagram_batch_send(batch, descriptor)) }
}
