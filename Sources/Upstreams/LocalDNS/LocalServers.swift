// LocalServers.swift -- the plain resolvers that a route uses.

import Configuration
import DNSWire
import EventLoop

/// The plain resolvers of a route, in order.
package struct LocalServers: Sendable, Hashable {
  /// One resolver, or the resolvers of the network.
  package enum Entry: Sendable, Hashable {
    /// The resolvers that the network announces.
    case system
    /// A resolver at a fixed address.
    case address(SocketAddress)
  }

  /// The resolvers; an empty list means no LocalDNS.
  package var entries: [Entry]

  /// Creates a list; duplicates are dropped when it is used.
  package init(_ entries: [Entry]) { self.entries = entries }
}

extension LocalServers {
  package init(_ servers: [Configuration.LocalServer]) {
    self.init(
      servers.map { server in
        switch server {
        case .system: .system
        case .endpoint(let endpoint): .address(SocketAddress(endpoint))
        }
      })
  }
}

extension SocketAddress {
  /// Converts a configured endpoint.
  package init(_ endpoint: Endpoint) {
    self.init(octets: endpoint.address.octets, port: endpoint.port)!
  }
}
