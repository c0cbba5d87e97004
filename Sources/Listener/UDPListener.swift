// UDPListener.swift -- receives queries in batches and sends responses.
//
// It has no callbacks: a listener thread calls `receive`, answers each query, then calls `send`.

import CEvent
import CSocket
import EventLoop
import Glibc

/// A failure to listen on an address.
public struct ListenError: Error, Sendable {
  public let address: SocketAddress
  /// `udp` or `tcp`.
  public let transport: String
  /// The system's error number.
  public let code: Int32

  public init(address: SocketAddress, transport: String, code: Int32) {
    self.address = address
    self.transport = transport
    self.code = code
  }

  /// Whether this machine does not have the IPv6 address, or no IPv6 at all. The other addresses can be served.
  public var isMissingIPv6: Bool { address.family == AF_INET6 && (code == EADDRNOTAVAIL || code == EAFNOSUPPORT) }

  /// The human-readable reason: `udp 127.0.0.1:53: Address already in use`.
  public var reason: String { "\(transport) \(address): \(String(cString: strerror(code)))" }
}

/// A bound UDP socket. Any thread may send through it.
public final class UDPSocket: Sendable {
  /// The descriptor; closed on deinit.
  public let descriptor: Int32
  /// The bound address; if port 0 was given, with the port that the kernel chose.
  public let address: SocketAddress

  /// - Throws: `ListenError` with the system's reason.
  public init(binding address: SocketAddress) throws(ListenError) {
    let isWildcard = address.octets.allSatisfy { $0 == 0 }
    let descriptor = address.withSockaddr { datagram_socket($0, $1, isWildcard ? 1 : 0) }
    guard descriptor >= 0 else { throw ListenError(address: address, transport: "udp", code: errno) }
    self.descriptor = descriptor
    self.address = SocketAddress(boundTo: descriptor) ?? address
  }

  /// Takes over a socket bound by another process, and closes it on deinit.
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

  /// Octets in the receive queue, and datagrams (modulo 2³²) that the kernel dropped because the queue was full; nil if the
  /// kernel does not report them.
  public var backlog: (octets: Int, dropped: Int)? {
    var (octets, dropped) = (UInt32(0), UInt32(0))
    guard datagram_queue(descriptor, &octets, &dropped) == 0 else { return nil }
    return (Int(octets), Int(dropped))
  }
}

/// One thread's buffers for batches on a socket, which several threads may share.
public final class UDPListener {
  public let socket: UDPSocket
  /// The socket's descriptor; any thread may send late responses through it.
  public let descriptor: Int32
  private let batch: OpaquePointer

  /// Datagrams per system call.
  public static let batchSize = 64
  /// Octets per query buffer, large enough for any datagram. Unused pages are never touched, and the odd size spreads the
  /// beginnings of a batch's queries over different sets of the CPU cache.
  public static let querySize = 65_536 + 192

  /// Allocates buffers for `socket`.
  ///
  /// - Parameter responseSize: the largest response in octets.
  /// - Throws: `ListenError` if memory is exhausted.
  public init(on socket: UDPSocket, responseSize: Int) throws(ListenError) {
    guard let batch = datagram_batch_create(UInt32(UDPListener.batchSize), UDPListener.querySize, responseSize) else {
      throw ListenError(address: socket.address, transport: "udp", code: ENOMEM)
    }
    self.socket = socket
    self.batch = batch
    descriptor = socket.descriptor
  }

  deinit { datagram_batch_free(batch) }

  /// Receives up to `batchSize` queries and returns their number; 0 if none is pending.
  ///
  /// - Parameter waiting: whether to block until the first query arrives or a signal interrupts the thread.
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

  /// Copies the addressing that a late response to query `index` needs.
  @_noAllocation
  public func copyPeer(_ index: Int, to peer: UnsafeMutablePointer<datagram_peer>) {
    datagram_batch_peer(batch, UInt32(truncatingIfNeeded: index), peer)
  }

  /// The buffer for the next response.
  @_noAllocation
  public func response() -> UnsafeMutablePointer<UInt8> { datagram_batch_response(batch) }

  /// Queues the response in `response()` for the sender of query `index`.
  @_noAllocation
  public func reply(to index: Int, length: Int) {
    datagram_batch_reply(batch, UInt32(truncatingIfNeeded: index), length)
  }

  /// Sends the queued responses; returns the number of datagrams that the kernel refused.
  @_noAllocation
  public func send() -> Int { Int(datagram_batch_send(batch, descriptor)) }
}
