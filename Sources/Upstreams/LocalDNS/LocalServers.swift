// LocalServers.swift -- which plain resolvers a route asks.

import Configuration
import DNSWire
import EventLoop

/// The plain resolvers of a route, in order.
package struct LocalServers: Sendable, Hashable {
  /// One resolver, or those of the network.
  package enum Entry: Sendable, Hashable {
    /// What the network hands out.
    case system
    /// This one.
    case address(SocketAddress)
  }

  /// The resolvers; none for no LocalDNS.
  package var entries: [Entry]

  /// Those resolvers.
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
  /// A configured endpoint in the form that system calls take.
  package init(_ endpoint: Endpoint) {
    self.init(octets: endpoint.address.octets, port: endpoint.port)!
  }
}
