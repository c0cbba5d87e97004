// ListeningSockets.swift -- the sockets that are served: bound here, or by the service manager.

import DNSWire
import EventLoop
import Glibc
import Listener
import Logging
import ServiceManager

/// An address that is listened on.
package struct ListeningAddress: Sendable, Equatable, CustomStringConvertible {
  /// The address, with the port that the kernel chose where 0 was given.
  package var address: SocketAddress
  /// Whether queries come over UDP.
  package var isUDP = false
  /// Whether they come over TCP.
  package var isTCP = false

  /// `127.0.0.1:53, UDP and TCP`.
  package var description: String { "\(address), \(isUDP && isTCP ? "UDP and TCP" : isUDP ? "UDP" : "TCP")" }
}

/// The sockets of a forwarder. Resolver's loop only.
struct ListeningSockets {
  /// What every TCP listener is made with.
  struct Streams {
    var loop: EventLoop
    var table: TCPConnectionTable
    var handler: TCPListener.Handler
  }

  private(set) var datagrams: [UDPSocket] = []
  private(set) var streams: [TCPListener] = []

  /// Every address once, in the order of the sockets.
  var addresses: [ListeningAddress] {
    var list: [ListeningAddress] = []
    func entry(_ address: SocketAddress) -> Int {
      if let index = list.firstIndex(where: { $0.address == address }) { return index }
      list.append(ListeningAddress(address: address))
      return list.count - 1
    }
    for socket in datagrams { list[entry(socket.address)].isUDP = true }
    for listener in streams { list[entry(listener.address)].isTCP = true }
    return list
  }

  /// Binds every endpoint.
  ///
  /// - Throws: `StartError.listen`; a missing IPv6 loopback is only logged.
  init(binding endpoints: [SocketAddress], _ streams: Streams, _ logger: Logger) throws(StartError) {
    for endpoint in endpoints {
      do throws(ListenError) {
        let listener = try TCPListener(
          binding: endpoint, on: streams.loop, table: streams.table, handler: streams.handler)
        datagrams.append(try UDPSocket(binding: listener.address))
        self.streams.append(listener)
      } catch {
        guard endpoint.family == AF_INET6, error.code == EADDRNOTAVAIL || error.code == EAFNOSUPPORT else {
          throw .listen(error)
        }
        logger.warning("not listening on \(error.reason)")
      }
    }
    guard !datagrams.isEmpty else { throw .other("none of listen.addresses exists on this machine") }
  }

  /// Takes over what the service manager has bound.
  ///
  /// - Parameter endpoints: those of the configuration, which do not count; that they differ is logged.
  /// - Throws: `StartError.listen`
  init(
    adopting sockets: [InheritedSocket], insteadOf endpoints: [SocketAddress], _ streams: Streams, _ logger: Logger
  ) throws(StartError) {
    do throws(ListenError) {
      for socket in sockets {
        switch socket.kind {
        case .datagram: datagrams.append(try UDPSocket(adopting: socket.descriptor, boundTo: socket.address))
        case .stream:
          self.streams.append(
            try TCPListener(
              adopting: socket.descriptor, boundTo: socket.address, on: streams.loop, table: streams.table,
              handler: streams.handler))
        }
      }
    } catch { throw .listen(error) }
    let (given, configured) = (addresses.map(\.address), endpoints)
    if Set(given) != Set(configured) {
      func list(_ addresses: [SocketAddress]) -> String { addresses.map(\.description).joined(separator: ", ") }
      logger.warning(
        "listen.addresses (\(list(configured))) is not used: the service manager listens on \(list(given))")
    }
    for warning in InheritedSocket.warnings(sockets) { logger.warning("\(warning)") }
  }
}
