// LocalServers.swift -- the plain resolvers that a route uses.

import Configuration
import DNSWire
import EventLoop
import LocalDNS

/// The plain resolvers of a route, in order.
package struct LocalServers: Sendable, Hashable {
  /// One resolver, or the resolvers of the network.
  package enum Entry: Sendable, Hashable {
    /// The resolvers that the network announces.
    case system
    /// A resolver at a fixed address.
    case address(PlainResolver)
  }

  /// The resolvers; an empty list means no LocalDNS.
  package var entries: [Entry]

  /// Duplicates are dropped when the list is used.
  package init(_ entries: [Entry]) { self.entries = entries }

  /// The resolvers without duplicates.
  ///
  /// - Parameter system: those of the network.
  package func addresses(system: [PlainResolver]) -> [PlainResolver] {
    var addresses: [PlainResolver] = []
    for entry in entries {
      switch entry {
      case .system: addresses += system.filter { !addresses.contains($0) }
      case .address(let address): if !addresses.contains(address) { addresses.append(address) }
      }
    }
    return addresses
  }
}

extension LocalServers {
  package init(_ servers: [Configuration.LocalServer]) {
    self.init(
      servers.map { server in
        switch server {
        case .system: .system
        case .resolver(let resolver): .address(PlainResolver(resolver))
        }
      })
  }
}

extension PlainResolver {
  /// Converts a configured resolver.
  package init(_ resolver: Configuration.ResolverAddress) {
    let endpoint = resolver.endpoint
    self.init(
      SocketAddress(octets: endpoint.address.octets, port: endpoint.port)!, zone: endpoint.zone,
      isOverTCP: resolver.isOverTCP)
  }
}

extension SocketAddress {
  /// Converts a configured endpoint; without its zone if the machine has no such interface.
  package init(_ endpoint: Endpoint) {
    self.init(octets: endpoint.address.octets, port: endpoint.port)!
    if let zone = endpoint.zone { scope = SocketAddress.interface(zone) }
  }
}
