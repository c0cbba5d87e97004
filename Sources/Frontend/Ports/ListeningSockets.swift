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
package struct ListeningSockets {
  /// What every TCP listener is made with.
  package struct Streams {
    var loop: EventLoop
    var table: TCPConnectionTable
    var handler: TCPListener.Handler

    package init(loop: EventLoop, table: TCPConnectionTable, handler: @escaping TCPListener.Handler) {
      self.loop = loop
      self.table = table
      self.handler = handler
    }
  }

  package private(set) var datagrams: [UDPSocket] = []
  package private(set) var streams: [TCPListener] = []

  /// Every address once, in the order of the sockets.
  package var addresses: [ListeningAddress] {
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
  package init(binding endpoints: [SocketAddress], _ streams: Streams, _ logger: Logger) throws(StartError) {
    for endpoint in endpoints {
      do throws(ListenError) {
        let (datagram, stream) = try ListeningSockets.pair(at: endpoint, streams)
        datagrams.append(datagram)
        self.streams.append(stream)
      } catch {
        guard endpoint.family == AF_INET6, error.code == EADDRNOTAVAIL || error.code == EAFNOSUPPORT else {
          throw .listen(error)
        }
        logger.warning("not listening on \(error.reason)")
      }
    }
    guard !datagrams.isEmpty else { throw .other("none of listen.addresses exists on this machine") }
  }

  /// How many ports the kernel may choose for an endpoint of port 0.
  private static let portAttempts = 16

  /// UDP and TCP at one endpoint. Where its port is 0, the kernel chooses a port that is free for TCP; if a program has
  /// that port for UDP, the kernel chooses another one.
  private static func pair(at endpoint: SocketAddress, _ streams: Streams) throws(ListenError) -> (
    UDPSocket, TCPListener
  ) {
    // Those stay bound meanwhile, so that the kernel does not choose their ports again.
    var refused: [TCPListener] = []
    while true {
      let listener = try TCPListener(
        binding: endpoint, on: streams.loop, table: streams.table, handler: streams.handler)
      do throws(ListenError) {
        return (try UDPSocket(binding: listener.address), listener)
      } catch {
        refused.append(listener)
        guard error.code == EADDRINUSE, endpoint.port == 0, refused.count < portAttempts else { throw error }
      }
    }
  }

  /// Takes over what the service manager has bound.
  ///
  /// - Parameter endpoints: those of the configuration, which do not count; that they differ is logged.
  /// - Throws: `StartError.listen`
  package init(
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
