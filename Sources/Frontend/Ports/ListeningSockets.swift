// ListeningSockets.swift -- the listening sockets, which the daemon or the service manager binds.

import DNSWire
import EventLoop
import Glibc
import Listener
import Logging
import ServiceManager

/// An address that the daemon listens on.
package struct ListeningAddress: Sendable, Equatable, CustomStringConvertible {
  /// The address, with the port that the kernel chose for port 0.
  package var address: SocketAddress
  /// Whether the daemon receives queries over UDP there.
  package var isUDP = false
  /// Whether the daemon receives queries over TCP there.
  package var isTCP = false
  /// What is spoken there in place of plain DNS, as `DoT`; nil for plain DNS.
  package private(set) var service: String?

  package init(address: SocketAddress, service: String? = nil) {
    self.address = address
    self.service = service
  }

  /// What clients speak there.
  package var transport: String { service ?? (isUDP && isTCP ? "UDP and TCP" : isUDP ? "UDP" : "TCP") }

  /// `127.0.0.1:53, UDP and TCP`.
  package var description: String { "\(address), \(transport)" }
}

/// The sockets of a forwarder. Resolver's loop only.
package struct ListeningSockets {
  /// The arguments that all TCP listeners share.
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

  /// Binds UDP and TCP at every endpoint.
  ///
  /// - Throws: `StartError.listen` if an endpoint cannot be bound, `StartError.other` if none exists. An IPv6 address
  ///   that the machine does not have is only logged.
  package init(binding endpoints: [SocketAddress], _ streams: Streams, _ logger: Logger) throws(StartError) {
    for endpoint in endpoints {
      do throws(ListenError) {
        let (datagram, stream) = try ListeningSockets.pair(at: endpoint, streams)
        datagrams.append(datagram)
        self.streams.append(stream)
      } catch {
        guard error.isMissingIPv6 else { throw .listen(error) }
        logger.warning("not listening on \(error.reason)")
      }
    }
    guard !datagrams.isEmpty else { throw .other("none of listen.addresses exists on this machine") }
  }

  /// The most ports that the kernel may choose for an endpoint with port 0.
  private static let portAttempts = 16

  /// Binds UDP and TCP at one endpoint. If its port is 0, the kernel chooses a port that is free for TCP; if another
  /// program uses that port for UDP, the kernel chooses another one.
  private static func pair(at endpoint: SocketAddress, _ streams: Streams) throws(ListenError) -> (
    UDPSocket, TCPListener
  ) {
    // These stay bound until a pair is found, so that the kernel does not choose their ports again.
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

  /// Adopts the sockets that the service manager has bound.
  ///
  /// - Parameter endpoints: the endpoints of the configuration, which are not used; a difference is logged.
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
